import { randomNumbers } from '../../base/random-numbers.ts'
import { type Client, collect } from '../../client/client.ts'
import { documents } from '../../contract/documents.ts'
import type { KnowledgeBase } from '../../contract/knowledge.ts'

const seed = 1
/** Shorter passages, such as headings, rarely answer a question. */
const passageCharsMin = 80

/** A passage about which to ask a question. */
export interface PickedPassage {
  /** File name, source ID or ID. */
  readonly document: string
  readonly text: string
}

/**
 * Yields one random passage of each document that the caller may see, in random order. The same documents have the same
 * order.
 */
export async function* pickPassages(
  client: Client,
  { workspaceId, knowledgeBaseId }: KnowledgeBase,
): AsyncGenerator<PickedPassage> {
  const random = randomNumbers(seed)
  const params = { workspaceId, knowledgeBaseId }
  const all = await collect(client.items(documents.list, { params }))
  const shuffled = all
    .filter(({ status }) => status === 'ready')
    .map(document => ({ document, order: random() }))
    .sort((a, b) => a.order - b.order)
  for (const { document } of shuffled) {
    const { documentId, sourceFilename, sourceDocId } = document
    const chunks = await client.call(documents.chunks, { params: { ...params, documentId } })
    const texts = chunks.flatMap(({ text }) => (text && text.length >= passageCharsMin ? [text] : []))
    const text = texts[Math.floor(random() * texts.length)]
    if (text !== undefined) yield { document: sourceFilename ?? sourceDocId ?? documentId, text }
  }
}

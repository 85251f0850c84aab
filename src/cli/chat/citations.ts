import { Citation } from '../../contract/chat.ts'
import type { Message } from '../../contract/conversations.ts'
import type { Passage } from '../passages/hits.ts'
import { documentName } from '../shown/resources.ts'

/** What an answer cites; what is no list of citations is none. */
export function citationsOf({ metadata }: Pick<Message, 'metadata'>): readonly Citation[] {
  try {
    const listed: unknown = JSON.parse(metadata.citations ?? '[]')
    return Array.isArray(listed) ? listed.flatMap(one => Citation.safeParse(one).data ?? []) : []
  } catch {
    return []
  }
}

/** What can be opened after a further answer: a number stays a passage's through a conversation. */
export function citedBy(before: readonly Citation[], now: readonly Citation[]): readonly Citation[] {
  const others = before.filter(one => !now.some(({ number }) => number === one.number))
  return [...others, ...now].sort((a, b) => a.number - b.number)
}

/** A passage that a search found, as an answer would cite it. */
export function citationOf(passage: Passage): Citation {
  const { number, knowledgeBaseId, documentId, id, chunkIndex, document } = passage
  const title = document ? documentName(document) : null
  const sourceFilename = document?.sourceFilename ?? null
  return { number, knowledgeBaseId, documentId, chunkId: id, chunkIndex, title, sourceFilename, page: null }
}

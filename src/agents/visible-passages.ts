import type { Caller } from '../access/caller.ts'
import { type DocumentReference, isDocumentVisible } from '../access/document-visibility.ts'
import type { Message } from '../contract/conversations.ts'
import type { RowStore } from '../storage/rows.ts'

type ChunkKey = [chunkId: string, knowledgeBaseId: string | null, documentId: string | null]

/**
 * Removes the citations and chunk IDs of passages that the caller may no longer see from the metadata of an answer.
 *
 * @see docs/access.md#row-level-access
 */
export async function withVisiblePassages(
  rows: RowStore,
  message: Message,
  caller: Pick<Caller, 'rowAccess'>,
): Promise<Message> {
  const { workspaceId, metadata } = message
  const { context_document_ids: chunkIds, context_chunks: chunksText, citations: citationsText } = metadata
  if ([chunkIds, chunksText, citationsText].every(text => text === undefined)) return message
  const access = await caller.rowAccess(workspaceId)
  if (!access.isEnabled) return message
  const decisions = new Map<string, Promise<boolean>>()
  const isVisible = (knowledgeBaseId: string | null, documentId: string | null) => {
    if (knowledgeBaseId === null) return Promise.resolve(true)
    const key = JSON.stringify([knowledgeBaseId, documentId])
    const reference = { workspaceId, knowledgeBaseId, documentId }
    const decision = decisions.get(key) ?? isDocumentVisible(rows, reference, access)
    decisions.set(key, decision)
    return decision
  }
  const chunks = await keepIf(parseList<ChunkKey>(chunksText), ([, base, document]) =>
    isVisible(base, document),
  )
  const citations = await keepIf(
    parseList<Omit<DocumentReference, 'workspaceId'>>(citationsText),
    ({ knowledgeBaseId, documentId }) => isVisible(knowledgeBaseId, documentId),
  )
  return {
    ...message,
    metadata: {
      ...metadata,
      ...(chunkIds !== undefined && {
        context_document_ids: chunks.map(([chunkId]) => chunkId).join(','),
      }),
      ...(chunksText !== undefined && { context_chunks: JSON.stringify(chunks) }),
      ...(citationsText !== undefined && { citations: JSON.stringify(citations) }),
    },
  }
}

function parseList<T>(text: string | undefined): T[] {
  return text === undefined ? [] : (JSON.parse(text) as T[])
}

async function keepIf<T>(list: readonly T[], condition: (entry: T) => Promise<boolean>): Promise<T[]> {
  const kept = await Promise.all(list.map(condition))
  return list.filter((_, at) => kept[at])
}

import type { Message } from '../contract/conversations.ts'
import type { PassageCheck, PassageReference } from '../knowledge/passage-visibility.ts'
import { withoutSummaryCitation } from './chat/conversation-summary.ts'

type ChunkKey = [chunkId: string, knowledgeBaseId: string | null, documentId: string | null]

/**
 * Removes the citations and chunk IDs of passages that the caller may not see from the metadata of a message. If there are
 * any, also removes the list of unsupported sentences, because it depends on their texts.
 *
 * @see docs/access.md#row-level-access
 */
export async function withVisiblePassages(message: Message, check: PassageCheck): Promise<Message> {
  if (check.seesAll) return message
  const { metadata, messageTs } = message
  const { context_document_ids: chunkIds, context_chunks: chunksText, citations: citationsText } = metadata
  const [allChunks, allCitations] = [
    parseList<ChunkKey>(chunksText),
    parseList<PassageReference>(citationsText),
  ]
  const chunks = await keepIf(allChunks, ([chunkId, knowledgeBaseId, documentId]) =>
    check.isVisible({ chunkId, knowledgeBaseId, documentId }, messageTs),
  )
  const citations = await keepIf(allCitations, citation => check.isVisible(citation, messageTs))
  const hidesPassages = chunks.length < allChunks.length || citations.length < allCitations.length
  const { unsupported, ...shown } = withoutSummaryCitation(metadata)
  return {
    ...message,
    metadata: {
      ...shown,
      ...(unsupported !== undefined && !hidesPassages && { unsupported }),
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

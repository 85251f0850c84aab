import { parseJson } from '../../base/parse-json.ts'
import type { Message } from '../../contract/conversations.ts'
import { isId } from '../id.ts'

/** A passage from a knowledge base that the model received for an answer. */
export interface UsedChunk {
  readonly chunkId: string
  readonly knowledgeBaseId: string
  readonly documentId: string
}

/**
 * Returns the passages that were used for an answer, according to its metadata. Returns only the best passage of each
 * document, and no passages of attachments.
 */
export function usedChunks({ metadata }: Pick<Message, 'metadata'>): UsedChunk[] {
  const chunks = new Map<string, UsedChunk>()
  for (const row of parseRows(metadata.context_chunks)) {
    const [chunkId, knowledgeBaseId = '', documentId] = Array.isArray(row) ? row.map(String) : []
    if (!chunkId || !isId(knowledgeBaseId) || !documentId || documentId === 'null') continue
    if (!chunks.has(documentId)) chunks.set(documentId, { chunkId, knowledgeBaseId, documentId })
  }
  return [...chunks.values()]
}

function parseRows(json = '[]'): readonly unknown[] {
  const rows = parseJson(json)
  return Array.isArray(rows) ? rows : []
}

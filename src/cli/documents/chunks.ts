import type { Client } from '../../client/client.ts'
import { pathOf } from '../../client/client.ts'
import { errorFromResponse } from '../../client/error-from-response.ts'
import { type Chunk, type Document, documents } from '../../contract/documents.ts'

const nextHeader = 'x-next-cursor'

/**
 * Yields the chunks of a document in order, across pages. The response body is an array; the cursor is in a
 * header.
 */
export async function* readDocumentChunks(
  client: Client,
  {
    workspaceId,
    knowledgeBaseId,
    documentId,
  }: Pick<Document, 'workspaceId' | 'knowledgeBaseId' | 'documentId'>,
): AsyncGenerator<Chunk> {
  const params = { workspaceId, knowledgeBaseId, documentId }
  let cursor: string | undefined
  do {
    const path = pathOf(documents.chunks, { params, query: { cursor } })
    const response = await client.raw({ method: 'GET', path })
    if (response.status !== 200) throw await errorFromResponse(response)
    yield* JSON.parse(await response.text()) as Chunk[]
    cursor = response.headers.get(nextHeader) ?? undefined
  } while (cursor)
}

/** Yields the chunks from an index onward. Yields all chunks if the index is null or does not exist. */
export async function* skipToChunk(
  chunks: AsyncIterable<Chunk>,
  index: number | null,
): AsyncGenerator<Chunk> {
  const earlier: Chunk[] = []
  let hasStarted = false
  for await (const chunk of chunks) {
    hasStarted ||= chunk.chunkIndex === index
    if (hasStarted) yield chunk
    else earlier.push(chunk)
  }
  if (!hasStarted) yield* earlier
}

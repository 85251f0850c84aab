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
  { workspaceId, knowledgeBaseId, documentId }: Document,
): AsyncGenerator<Chunk> {
  const params = { workspaceId, knowledgeBaseId, documentId }
  let cursor: string | undefined
  do {
    const path = pathOf(documents.chunks, { params, query: { cursor } })
    const answer = await client.raw({ method: 'GET', path })
    if (answer.status !== 200) throw await errorFromResponse(answer)
    yield* JSON.parse(await answer.text()) as Chunk[]
    cursor = answer.headers.get(nextHeader) ?? undefined
  } while (cursor)
}

/** Yields the chunks from an index on. Yields all chunks if the index is null or does not exist. */
export async function* startingAtChunk(
  chunks: AsyncIterable<Chunk>,
  index: number | null,
): AsyncGenerator<Chunk> {
  const before: Chunk[] = []
  let isThere = false
  for await (const chunk of chunks) {
    isThere ||= chunk.chunkIndex === index
    if (isThere) yield chunk
    else before.push(chunk)
  }
  if (!isThere) yield* before
}

import pMap from 'p-map'
import type { Client } from '../../client/client.ts'
import { type KnowledgeBase, kb } from '../../contract/knowledge.ts'

const CONCURRENCY_MAX = 8

export interface BaseSize {
  readonly documents: number
  readonly bytes: number
}

/**
 * Returns the document counts and sizes in bytes of knowledge bases by ID. Omits those that the runtime does not report,
 * such as those with documents that the caller cannot see.
 */
export async function fetchSizes(
  client: Client,
  bases: readonly KnowledgeBase[],
): Promise<Map<string, BaseSize>> {
  const found = await pMap(
    bases,
    async ({ workspaceId, knowledgeBaseId }) => {
      const params = { workspaceId, knowledgeBaseId }
      const stats = await client.call(kb.stats, { params }).catch(() => undefined)
      // Responses are not validated, and a server can leave out `bytes`.
      if (typeof stats?.bytes?.total !== 'number') return []
      return [[knowledgeBaseId, { documents: stats.documents, bytes: stats.bytes.total }] as const]
    },
    { concurrency: CONCURRENCY_MAX },
  )
  return new Map(found.flat())
}

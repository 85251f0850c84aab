import pMap from 'p-map'
import type { Client } from '../../client/client.ts'
import { type KnowledgeBase, type KnowledgeBaseStats, kb } from '../../contract/knowledge.ts'

const CONCURRENCY_MAX = 8

/**
 * Returns the statistics of knowledge bases by ID. Omits those that the runtime does not report, such as those with
 * documents that the caller cannot see.
 */
export async function fetchStats(
  client: Client,
  bases: readonly KnowledgeBase[],
): Promise<Map<string, KnowledgeBaseStats>> {
  const found = await pMap(
    bases,
    ({ workspaceId, knowledgeBaseId }) =>
      client.call(kb.stats, { params: { workspaceId, knowledgeBaseId } }).catch(() => undefined),
    { concurrency: CONCURRENCY_MAX },
  )
  return new Map(found.flatMap(stats => (stats ? [[stats.knowledgeBaseId, stats] as const] : [])))
}

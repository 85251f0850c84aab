import type { DecisionQuery, PolicyDecision } from '../../contract/policy.ts'
import type { ColumnValue, RowStore } from '../../storage/rows.ts'
import { tables } from '../../storage/tables.ts'
import { requireWorkspace } from '../require-workspace.ts'

const sliceSize = 500

/**
 * Returns at most `query.limit` policy decisions, newest first.
 *
 * @throws workspace_not_found
 */
export async function listDecisions(
  rows: RowStore,
  workspaceId: string,
  query: DecisionQuery,
): Promise<PolicyDecision[]> {
  await requireWorkspace(rows, workspaceId)
  const decisions: PolicyDecision[] = []
  let after: ColumnValue[] | undefined
  while (decisions.length < query.limit) {
    const slice = await rows.list(tables.policyAudit, {
      ...mostSelectiveIndex(workspaceId, query),
      after,
      limit: sliceSize,
      descending: true,
    })
    decisions.push(...slice.map(({ row }) => row).filter(row => matchesQuery(row, query)))
    if (slice.length < sliceSize) break
    after = [slice.at(-1)!.ordinal]
  }
  return decisions.slice(0, query.limit)
}

/** Returns an index of the rows that match one condition of the query: the most selective one. */
function mostSelectiveIndex(workspaceId: string, { principalId, knowledgeBaseId, auditDay }: DecisionQuery) {
  if (principalId !== undefined) return { index: 'byPrincipal', prefix: [workspaceId, principalId] }
  if (knowledgeBaseId !== undefined)
    return { index: 'byKnowledgeBase', prefix: [workspaceId, knowledgeBaseId] }
  if (auditDay !== undefined) return { index: 'byDay', prefix: [workspaceId, auditDay] }
  return { index: 'byWorkspace', prefix: [workspaceId] }
}

function matchesQuery(row: PolicyDecision, query: DecisionQuery): boolean {
  return (['principalId', 'knowledgeBaseId', 'auditDay'] as const).every(
    field => query[field] === undefined || query[field] === row[field],
  )
}

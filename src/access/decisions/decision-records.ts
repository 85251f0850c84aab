import { needs } from '../../contract/access.ts'
import type { DecisionPageQuery } from '../../contract/audit.ts'
import type { PolicyDecision } from '../../contract/policy.ts'
import type { Pager, RowList, RowPage } from '../../storage/cursor.ts'
import type { RowStore } from '../../storage/rows.ts'
import { tables } from '../../storage/tables.ts'
import { decideAccess } from '../authorize.ts'
import type { Caller } from '../caller.ts'
import { requireWorkspace } from '../require-workspace.ts'
import type { RowAccess } from '../row-access.ts'
import type { DecisionRecorder } from './decision-recorder.ts'

const filteredFields = ['principalId', 'knowledgeBaseId', 'auditDay', 'decision'] as const

/** Returns true for the decisions that a reader may see. */
type DecisionFilter = (decision: PolicyDecision) => boolean

export interface DecisionRecordsDependencies {
  readonly rows: RowStore
  readonly pager: Pager
  readonly recorder: Pick<DecisionRecorder, 'flushed'>
}

/** Reads the policy audit of a workspace. */
export class DecisionRecords {
  constructor(private readonly deps: DecisionRecordsDependencies) {}

  /**
   * Returns a page of the decisions that the caller may see, newest first. Includes all decisions that this process has
   * recorded so far.
   *
   * @throws workspace_not_found, invalid_cursor
   */
  async list(
    workspaceId: string,
    query: DecisionPageQuery,
    caller: Pick<Caller, 'auth' | 'rowAccess'>,
  ): Promise<RowPage<PolicyDecision>> {
    await requireWorkspace(this.deps.rows, workspaceId)
    const access = await caller.rowAccess(workspaceId)
    const managesAccess = decideAccess({ rule: needs('manage:access'), workspaceId }, caller).allow
    const isLimited = access.isEnabled && !managesAccess
    const knowsAll = isLimited ? await this.#findFullyVisible(workspaceId, access) : () => true
    await this.deps.recorder.flushed()
    const conditions = filteredFields.filter(field => query[field] !== undefined)
    const range = {
      ...selectiveList(workspaceId, query),
      descending: true,
      filter: JSON.stringify([isLimited, conditions.map(field => [field, query[field]])]),
    }
    const accepts = (row: PolicyDecision): row is PolicyDecision =>
      conditions.every(field => row[field] === query[field]) &&
      (knowsAll(row) || isOwn(row, access) || hasNoResource(row))
    const page = await this.deps.pager.filteredPage(tables.policyAudit, range, query, accepts)
    const items = page.items.map(row =>
      knowsAll(row) || isOwn(row, access) ? row : { ...row, compiledFilterJson: null },
    )
    return { ...page, items }
  }

  /** Returns a filter for the decisions about knowledge bases in which the caller may see all rows. */
  async #findFullyVisible(workspaceId: string, access: RowAccess): Promise<DecisionFilter> {
    const visibleIds = new Set<string>()
    const list = { index: 'byWorkspace', prefix: [workspaceId] }
    for await (const slice of this.deps.pager.slices(tables.knowledgeBases, list))
      for (const { row } of slice) if (access.seesAll(row)) visibleIds.add(row.knowledgeBaseId)
    return ({ knowledgeBaseId }) => visibleIds.has(knowledgeBaseId)
  }
}

/**
 * Returns true for decisions that the principal itself caused. Returns false for a caller that is no principal, because
 * many callers share these decisions.
 */
function isOwn({ principalId, viewedBy }: PolicyDecision, { actor }: RowAccess): boolean {
  return viewedBy === undefined && principalId !== null && principalId === actor.principalId
}

/** Returns true for decisions that neither name a document nor show that there is one. */
function hasNoResource({ resourceId, action }: PolicyDecision): boolean {
  return resourceId === '*' && (action === 'list' || action === 'search')
}

/** Returns an index of the rows that match one condition of the query: the most selective one. */
function selectiveList(
  workspaceId: string,
  { principalId, knowledgeBaseId, auditDay, decision }: DecisionPageQuery,
): RowList {
  if (principalId !== undefined) return { index: 'byPrincipal', prefix: [workspaceId, principalId] }
  if (decision === 'deny' || decision === 'allow')
    return { index: 'byDecision', prefix: [workspaceId, decision] }
  if (knowledgeBaseId !== undefined)
    return { index: 'byKnowledgeBase', prefix: [workspaceId, knowledgeBaseId] }
  if (auditDay !== undefined) return { index: 'byDay', prefix: [workspaceId, auditDay] }
  return { index: 'byWorkspace', prefix: [workspaceId] }
}

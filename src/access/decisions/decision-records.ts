import { needs } from '../../contract/access.ts'
import type { DecisionPageQuery } from '../../contract/audit.ts'
import type { DecisionQuery, PolicyDecision } from '../../contract/policy.ts'
import type { Pager, RowList, RowPage } from '../../storage/cursor.ts'
import type { RowStore } from '../../storage/rows.ts'
import { tables } from '../../storage/tables.ts'
import { decideAccess } from '../authorize.ts'
import type { Caller } from '../caller.ts'
import { requireWorkspace } from '../require-workspace.ts'
import type { RowAccess } from '../row-access.ts'
import type { DecisionRecorder } from './decision-recorder.ts'

/** The fields of a query, and the index of each. */
const indexes = {
  principalId: 'byPrincipal',
  knowledgeBaseId: 'byKnowledgeBase',
  auditDay: 'byDay',
  decision: 'byDecision',
} as const
type FilteredField = keyof typeof indexes
const filteredFields = Object.keys(indexes) as FilteredField[]

/** Number of decisions that a page reads, after which it ends even if it is not full. Reading them takes about 40 ms. */
const scannedDecisions = 5_000

/** Returns true for the decisions that a reader may see. */
type DecisionFilter = (decision: PolicyDecision) => boolean

type DecisionReader = Pick<Caller, 'auth' | 'rowAccess' | 'signal'>

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
   * recorded so far. A page that reads many other decisions ends early, so it can be empty.
   *
   * @throws workspace_not_found, invalid_cursor
   */
  async list(
    workspaceId: string,
    query: DecisionPageQuery,
    caller: DecisionReader,
  ): Promise<RowPage<PolicyDecision>> {
    await requireWorkspace(this.deps.rows, workspaceId)
    const access = await caller.rowAccess(workspaceId)
    const managesAccess = decideAccess({ rule: needs('manage:access'), workspaceId }, caller).allow
    const isLimited = access.isEnabled && !managesAccess
    const knowsAll = isLimited ? await this.#findFullyVisible(workspaceId, access) : () => true
    await this.deps.recorder.flushed()
    const conditions = filteredFields.filter(field => query[field] !== undefined)
    if (query.cursor === undefined && !(await this.#matchesEach(workspaceId, query, conditions)))
      return { items: [], nextCursor: null }
    const range = {
      ...selectiveList(workspaceId, query),
      descending: true,
      filter: JSON.stringify([isLimited, conditions.map(field => [field, query[field]])]),
    }
    const accepts = (row: PolicyDecision): row is PolicyDecision =>
      conditions.every(field => row[field] === query[field]) &&
      (knowsAll(row) || isOwn(row, access) || hasNoResource(row))
    const scan = { rowsMax: scannedDecisions, signal: caller.signal }
    const page = await this.deps.pager.filteredPage(tables.policyAudit, range, query, accepts, scan)
    const items = page.items.map(row =>
      knowsAll(row) || isOwn(row, access) ? row : { ...row, compiledFilterJson: null },
    )
    return { ...page, items }
  }

  /**
   * Returns the newest decisions that the caller may see, like the pages of `list`.
   *
   * @throws workspace_not_found
   */
  async newest(workspaceId: string, query: DecisionQuery, caller: DecisionReader): Promise<PolicyDecision[]> {
    const found: PolicyDecision[] = []
    let cursor: string | undefined
    do {
      const limit = query.limit - found.length
      const page = await this.list(workspaceId, { ...query, limit, cursor }, caller)
      found.push(...page.items)
      cursor = page.nextCursor ?? undefined
    } while (cursor !== undefined && found.length < query.limit)
    return found
  }

  /** Returns false if one of the conditions matches no decision, so no decision can match all of them. */
  async #matchesEach(
    workspaceId: string,
    query: DecisionPageQuery,
    conditions: readonly FilteredField[],
  ): Promise<boolean> {
    for (const field of conditions) {
      const list = { index: indexes[field], prefix: [workspaceId, query[field]!] }
      const matching = await this.deps.rows.list(tables.policyAudit, { ...list, limit: 1 })
      if (matching.length === 0) return false
    }
    return true
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

/** Returns true for decisions that do not reveal whether a document exists. */
function hasNoResource({ resourceId, action }: PolicyDecision): boolean {
  return resourceId === '*' && (action === 'list' || action === 'search')
}

/** Returns an index of the rows that match one condition of the query: the one that usually has the fewest rows. */
function selectiveList(
  workspaceId: string,
  { principalId, knowledgeBaseId, auditDay, decision }: DecisionPageQuery,
): RowList {
  if (principalId !== undefined) return { index: indexes.principalId, prefix: [workspaceId, principalId] }
  if (decision === 'deny' || decision === 'allow')
    return { index: indexes.decision, prefix: [workspaceId, decision] }
  if (auditDay !== undefined) return { index: indexes.auditDay, prefix: [workspaceId, auditDay] }
  if (knowledgeBaseId !== undefined)
    return { index: indexes.knowledgeBaseId, prefix: [workspaceId, knowledgeBaseId] }
  return { index: 'byWorkspace', prefix: [workspaceId] }
}

import type { Clock } from '../base/clock.ts'
import type { AuditQuery } from '../contract/audit.ts'
import type { AuditAction, AuditRecord } from '../contract/audit-record.ts'
import type { ServerEvent } from '../contract/route.ts'
import { grantsScope } from '../contract/scopes.ts'
import type { Pager, RowPage, RowRange } from '../storage/cursor.ts'
import type { ColumnValue, FeedPosition, RowStore } from '../storage/rows.ts'
import { tables } from '../storage/tables.ts'
import type { AuditTrail } from './audit-trail.ts'
import type { Caller } from './caller.ts'
import { requireWorkspace } from './require-workspace.ts'
import { RowFollower } from './row-follower.ts'
import type { AuthContext } from './subject.ts'

/** Interval at which records of other processes are polled, in milliseconds. */
const pollMs = 500
const sliceSize = 100
/** Number of records that a page reads, after which it ends even if it is not full. */
const scannedRecords = 5_000
/**
 * Actions whose records can contain facts about documents, jobs or conversations. Earlier versions stored error messages in
 * those of `mcp.invoke`.
 */
const rowActions: ReadonlySet<AuditAction> = new Set([
  'document.delete',
  'document.restore',
  'job.claim',
  'mcp.invoke',
  'tool.invoke',
  'tool.decide',
])

/** Returns true for the records that a caller may see. */
type AuditFilter = (record: AuditRecord) => record is AuditRecord

/** Reads the audit trail of one workspace, or of all workspaces including deleted ones. */
export class AuditRecords {
  constructor(private readonly deps: { rows: RowStore; pager: Pager; clock: Clock; trail: AuditTrail }) {}

  /**
   * Returns a page of records, newest first. The list includes all records that this process has added so far. A page that
   * reads many records that the caller may not see ends early, so it can be empty.
   *
   * @param workspaceId  null for all workspaces
   * @throws workspace_not_found
   * @throws invalid_cursor  when the cursor is from another workspace or query
   */
  async list(
    workspaceId: string | null,
    query: AuditQuery,
    { auth, signal }: Pick<Caller, 'auth' | 'signal'>,
  ): Promise<RowPage<AuditRecord>> {
    if (workspaceId !== null) await requireWorkspace(this.deps.rows, workspaceId)
    const isVisible = await this.#filterFor(workspaceId, auth)
    await this.deps.trail.flushed()
    const range = newestFirstRange(workspaceId, query)
    const { pager } = this.deps
    return isVisible
      ? pager.filteredPage(tables.audit, range, query, isVisible, { rowsMax: scannedRecords, signal })
      : pager.page(tables.audit, range, query)
  }

  /**
   * Streams records of all processes, in the order of the feed of the store.
   *
   * @param workspaceId  null for all workspaces
   * @param after        ID of the record after which to start; null to start with the next new record. If the ID is
   *   unknown, for example because the record was deleted, the stream starts with the oldest stored record
   * @throws workspace_not_found
   */
  async follow(
    workspaceId: string | null,
    { action }: Pick<AuditQuery, 'action'>,
    after: string | null,
    auth: AuthContext,
  ): Promise<AsyncIterable<ServerEvent>> {
    if (workspaceId !== null) await requireWorkspace(this.deps.rows, workspaceId)
    await this.deps.trail.flushed()
    let isVisible = await this.#filterFor(workspaceId, auth)
    const { rows, clock, trail } = this.deps
    const list =
      workspaceId === null
        ? { index: 'byOrdinal', prefix: [] }
        : { index: 'byWorkspace', prefix: [workspaceId] }
    return new RowFollower<AuditRecord>({
      from: await (after === null ? rows.feed.end(tables.audit) : this.positionOf(workspaceId, after)),
      read: async position => {
        isVisible = await this.#filterFor(workspaceId, auth)
        return rows.feed.read(tables.audit, { ...list, after: position, limit: sliceSize })
      },
      select: record => (action === undefined || record.action === action) && (isVisible?.(record) ?? true),
      toEvent: record => ({ id: record.auditId, event: 'audit', data: record }),
      wait(wake) {
        const cancels = [trail.onStored(wake), clock.after(pollMs, wake)]
        return () => {
          for (const cancel of cancels) cancel()
        }
      },
    })
  }

  /**
   * Returns the filter for a caller; undefined if it may see all records. With row-level access, records with facts about
   * documents, jobs or conversations are visible to their subject and to callers with `manage:access`, because these rows
   * can be hidden.
   */
  async #filterFor(workspaceId: string | null, { subject }: AuthContext): Promise<AuditFilter | undefined> {
    if (workspaceId === null || (subject && grantsScope(subject.scopes, 'manage:access'))) return undefined
    const workspace = await this.deps.rows.get(tables.workspaces, [workspaceId])
    if (workspace && !workspace.row.rlacEnabled) return undefined
    const isOwn = (record: AuditRecord) =>
      subject !== null && record.subject?.type === subject.type && record.subject.id === subject.id
    return (record): record is AuditRecord => !rowActions.has(record.action) || isOwn(record)
  }

  private async positionOf(workspaceId: string | null, auditId: string): Promise<FeedPosition> {
    const { rows } = this.deps
    const stored = await rows.get(tables.audit, [auditId])
    const isInTrail = stored && (workspaceId === null || stored.row.workspaceId === workspaceId)
    return (isInTrail && (await rows.feed.positionOf(tables.audit, [auditId]))) || rows.feed.start()
  }
}

function newestFirstRange(workspaceId: string | null, { action, since }: AuditQuery): RowRange {
  const indexPrefix = workspaceId === null ? 'by' : 'byWorkspace'
  const prefix: ColumnValue[] = workspaceId === null ? [] : [workspaceId]
  const order = { descending: true, through: since }
  if (action === undefined) return { index: `${indexPrefix}Time`, prefix, ...order }
  return { index: `${indexPrefix}ActionTime`, prefix: [...prefix, action], ...order }
}

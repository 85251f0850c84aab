import type { Caller } from '../access/caller.ts'
import { requireWorkspace, workspaceNotFound } from '../access/require-workspace.ts'
import { type Clock, timestamp } from '../base/clock.ts'
import { WbError } from '../contract/errors.ts'
import type { PageQuery } from '../contract/page.ts'
import { changeRow } from '../storage/change-row.ts'
import type { Pager, RowPage } from '../storage/cursor.ts'
import type { RowStore, Write } from '../storage/rows.ts'
import { tables } from '../storage/tables.ts'
import { type AnyService, type ServiceKind, serviceNotFound } from './service-kinds.ts'

export interface ServicesParts<Row extends AnyService> {
  readonly rows: RowStore
  readonly pager: Pager
  readonly clock: Clock
  /** @throws validation_error  requests to the address are not allowed; names the field */
  checkUrl(field: string, url: string): void
  /**
   * Checks a service before it is written.
   *
   * @param sent  fields that the caller sent
   * @throws WbError  the service is invalid
   */
  readonly checkBeforeWrite?: (service: Row, sent: Partial<Row>, signal: AbortSignal) => Promise<void>
}

/** The services of one kind. Omit `Create` for read-only use. */
export class Services<Row extends AnyService, Create extends Partial<Row> = never> {
  constructor(
    private readonly kind: ServiceKind<Row, Create>,
    private readonly parts: ServicesParts<Row>,
  ) {}

  /** @throws workspace_not_found */
  async list(workspaceId: string, query: PageQuery): Promise<RowPage<Row>> {
    await requireWorkspace(this.parts.rows, workspaceId)
    return this.parts.pager.page(this.kind.table, { index: 'byWorkspace', prefix: [workspaceId] }, query)
  }

  /**
   * Creates a service.
   *
   * @throws workspace_not_found
   * @throws conflict          the id is taken
   * @throws validation_error  requests to the endpoint are not allowed
   * @throws the errors of `checkBeforeWrite`
   */
  async create(workspaceId: string, fields: Create, { signal }: Pick<Caller, 'signal'>): Promise<Row> {
    await requireWorkspace(this.parts.rows, workspaceId)
    const now = timestamp(this.parts.clock)
    const row = this.kind.compose(fields, { workspaceId, createdAt: now, updatedAt: now })
    await this.validate(row, fields, signal)
    const outcome = await this.parts.rows.atomic([
      { op: 'require', table: tables.workspaces, key: [workspaceId] },
      { op: 'insert', table: this.kind.table, row },
    ])
    if (outcome.ok) return row
    if (outcome.at === 0) throw workspaceNotFound(workspaceId)
    throw new WbError('conflict', `${this.kind.noun} with id '${this.kind.idOf(row)}' already exists`)
  }

  /** @throws workspace_not_found, or the not-found code of the kind */
  async get(workspaceId: string, id: string): Promise<Row> {
    const stored = await this.parts.rows.get(this.kind.table, [workspaceId, id])
    if (stored) return stored.row
    await requireWorkspace(this.parts.rows, workspaceId)
    throw this.notFound(id)
  }

  /**
   * Changes a service.
   *
   * @throws the in-use code of the kind  a fixed field changes while the service is bound
   * @throws validation_error             requests to the endpoint are not allowed
   * @throws the errors of `checkBeforeWrite`
   */
  async update(
    workspaceId: string,
    id: string,
    patch: Partial<Row>,
    { signal }: Pick<Caller, 'signal'>,
  ): Promise<Row> {
    const before = await this.get(workspaceId, id)
    await this.validate({ ...before, ...patch }, patch, signal)
    const now = timestamp(this.parts.clock)
    const changed = await changeRow(
      this.parts.rows,
      this.kind.table,
      [workspaceId, id],
      row => ({ ...row, ...patch, updatedAt: now }),
      (stored, after) =>
        this.kind.fixedWhileBound.some(field => stored[field] !== after[field])
          ? this.requireUnbound(workspaceId, id)
          : [],
    )
    if ('absent' in changed) throw this.notFound(id)
    if ('failedCheck' in changed)
      throw this.inUse(changed.failedCheck.at, `; ${this.kind.fixedWhileBound.join(', ')} cannot change`)
    return changed.row
  }

  /** @throws the in-use code of the kind  the service is bound */
  async delete(workspaceId: string, id: string): Promise<void> {
    await this.get(workspaceId, id)
    const checks = this.requireUnbound(workspaceId, id)
    const outcome = await this.parts.rows.atomic([
      ...checks,
      { op: 'delete', table: this.kind.table, key: [workspaceId, id] },
    ])
    if (outcome.ok) return
    throw outcome.at === checks.length ? this.notFound(id) : this.inUse(outcome.at)
  }

  /** Returns the oldest service of the workspace. */
  async first(workspaceId: string): Promise<Row | undefined> {
    const [stored] = await this.parts.rows.list(this.kind.table, {
      index: 'byWorkspace',
      prefix: [workspaceId],
      limit: 1,
    })
    return stored?.row
  }

  notFound(id: string): WbError {
    return serviceNotFound(this.kind, id)
  }

  private async validate(row: Row, sent: Partial<Row>, signal: AbortSignal): Promise<void> {
    if (sent.endpointBaseUrl) this.parts.checkUrl('endpointBaseUrl', sent.endpointBaseUrl)
    await this.parts.checkBeforeWrite?.(row, sent, signal)
  }

  private requireUnbound(workspaceId: string, id: string): Write[] {
    return this.kind.boundBy.map(({ table, index }) => ({
      op: 'requireNone',
      table,
      index,
      prefix: [workspaceId, id],
    }))
  }

  private inUse(index: number, addition = ''): WbError {
    const { boundBy, inUse, noun } = this.kind
    return new WbError(inUse, `${boundBy[index]!.noun} uses this ${noun}${addition}`)
  }
}

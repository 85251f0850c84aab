import { authorizeStoredDestination } from '../access/authorize-destination.ts'
import type { Caller } from '../access/caller.ts'
import { requireWorkspace } from '../access/require-workspace.ts'
import { type Clock, timestamp } from '../base/clock.ts'
import { newId } from '../base/id.ts'
import { WbError } from '../contract/errors.ts'
import type { PageQuery } from '../contract/page.ts'
import { changeRow } from '../storage/change-row.ts'
import type { Pager, RowPage } from '../storage/cursor.ts'
import type { RowStore, Write } from '../storage/rows.ts'
import { type AnyService, type ServiceKind, serviceNotFound } from './service-kinds.ts'

export interface ServicesDependencies<Row extends AnyService> {
  readonly rows: RowStore
  readonly pager: Pager
  readonly clock: Clock
  /** @throws validation_error  requests to `url` are not allowed; the message names `field` */
  checkUrl(field: string, url: string): void
  /**
   * Checks a service before it is written.
   *
   * @param sent  fields that the caller sent
   * @throws WbError  the service is invalid
   */
  readonly checkBeforeWrite?: (service: Row, sent: Partial<Row>, signal: AbortSignal) => Promise<void>
}

type ServiceCaller = Pick<Caller, 'auth' | 'signal'>

/** The services of one kind. Omit `Create` if the caller does not create services. */
export class Services<Row extends AnyService, Create extends Partial<Row> = never> {
  constructor(
    private readonly kind: ServiceKind<Row>,
    private readonly deps: ServicesDependencies<Row>,
  ) {}

  /** @throws workspace_not_found */
  async list(workspaceId: string, query: PageQuery): Promise<RowPage<Row>> {
    await requireWorkspace(this.deps.rows, workspaceId)
    return this.deps.pager.page(this.kind.table, { index: 'byWorkspace', prefix: [workspaceId] }, query)
  }

  /**
   * Creates a service.
   *
   * @throws workspace_not_found
   * @throws forbidden         row-level access is on, and the caller lacks `manage:access`
   * @throws conflict          the ID is taken
   * @throws validation_error  requests to the endpoint are not allowed
   * @throws the errors of `checkBeforeWrite`
   */
  async create(workspaceId: string, fields: Create, caller: ServiceCaller): Promise<Row> {
    const workspaceCheck = await authorizeStoredDestination(this.deps.rows, workspaceId, caller)
    const { noun, table, idField } = this.kind
    const now = timestamp(this.deps.clock)
    const id = fields[idField] ?? newId()
    const row = { ...fields, [idField]: id, workspaceId, createdAt: now, updatedAt: now } as unknown as Row
    await this.validate(row, fields, caller.signal)
    const outcome = await this.deps.rows.atomic([workspaceCheck, { op: 'insert', table, row }])
    if (outcome.ok) return row
    if (outcome.at === 0) return this.create(workspaceId, fields, caller)
    throw new WbError('conflict', `${noun} with id '${id}' already exists`)
  }

  /** @throws workspace_not_found, `kind.notFound` */
  async get(workspaceId: string, id: string): Promise<Row> {
    const stored = await this.deps.rows.get(this.kind.table, [workspaceId, id])
    if (stored) return stored.row
    await requireWorkspace(this.deps.rows, workspaceId)
    throw this.notFound(id)
  }

  /**
   * Changes a service.
   *
   * @throws workspace_not_found, `kind.notFound`
   * @throws forbidden         row-level access is on, and the caller lacks `manage:access`
   * @throws `kind.inUse`      the patch changes a field in `kind.fixedWhileInUse` while a knowledge base or an agent uses
   *   the service
   * @throws validation_error  requests to the endpoint are not allowed
   * @throws the errors of `checkBeforeWrite`
   */
  async update(workspaceId: string, id: string, patch: Partial<Row>, caller: ServiceCaller): Promise<Row> {
    const workspaceCheck = await authorizeStoredDestination(this.deps.rows, workspaceId, caller)
    const before = await this.get(workspaceId, id)
    await this.validate({ ...before, ...patch }, patch, caller.signal)
    const now = timestamp(this.deps.clock)
    const changed = await changeRow(
      this.deps.rows,
      this.kind.table,
      [workspaceId, id],
      row => ({ ...row, ...patch, updatedAt: now }),
      (stored, after) => [
        workspaceCheck,
        ...(this.kind.fixedWhileInUse.some(field => stored[field] !== after[field])
          ? this.requireUnused(workspaceId, id)
          : []),
      ],
    )
    if ('absent' in changed) throw this.notFound(id)
    if ('failedCheck' in changed) {
      const { at } = changed.failedCheck
      if (at === 0) return this.update(workspaceId, id, patch, caller)
      throw this.inUse(
        at - 1,
        `; you cannot change these fields while it is in use: ${this.kind.fixedWhileInUse.join(', ')}`,
      )
    }
    return changed.row
  }

  /**
   * @throws workspace_not_found, `kind.notFound`
   * @throws forbidden     row-level access is on, and the caller lacks `manage:access`
   * @throws `kind.inUse`  a knowledge base or an agent uses the service
   */
  async delete(workspaceId: string, id: string, caller: Pick<Caller, 'auth'>): Promise<void> {
    await authorizeStoredDestination(this.deps.rows, workspaceId, caller)
    await this.get(workspaceId, id)
    const checks = this.requireUnused(workspaceId, id)
    const outcome = await this.deps.rows.atomic([
      ...checks,
      { op: 'delete', table: this.kind.table, key: [workspaceId, id] },
    ])
    if (outcome.ok) return
    throw outcome.at === checks.length ? this.notFound(id) : this.inUse(outcome.at)
  }

  /** Returns the oldest service of the workspace; undefined if the workspace has no services. */
  async first(workspaceId: string): Promise<Row | undefined> {
    const [stored] = await this.deps.rows.list(this.kind.table, {
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
    if (sent.endpointBaseUrl) this.deps.checkUrl('endpointBaseUrl', sent.endpointBaseUrl)
    await this.deps.checkBeforeWrite?.(row, sent, signal)
  }

  private requireUnused(workspaceId: string, id: string): Write[] {
    return this.kind.usedBy.map(({ table, index }) => ({
      op: 'requireNone',
      table,
      index,
      prefix: [workspaceId, id],
    }))
  }

  private inUse(usageIndex: number, messageSuffix = ''): WbError {
    const { usedBy, inUse, noun } = this.kind
    return new WbError(inUse, `${usedBy[usageIndex]!.noun} uses this ${noun}${messageSuffix}`)
  }
}

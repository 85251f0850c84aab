import { isDeepStrictEqual } from 'node:util'
import type { AuditDraft, AuditEvent } from '../access/audit-trail.ts'
import { authorize } from '../access/authorize.ts'
import type { BrowserSite, Caller } from '../access/caller.ts'
import { actorOf, type RowAccess } from '../access/row-access.ts'
import { type AuthContext, type Creator, isCreator } from '../access/subject.ts'
import type { AuditDetails } from '../contract/audit-record.ts'
import type { Route } from '../contract/route.ts'
import type { Write } from '../storage/rows.ts'
import type { AppContext, Exchange } from './exchange.ts'

const eventStreamType = 'text/event-stream'

interface RequestCallerDependencies {
  readonly context: AppContext
  readonly route: Route
  readonly exchange: Exchange
  /** Validated path parameters. */
  readonly params: object
  readonly auth: AuthContext
  /** Returns the current rights of the caller. Rejects if it no longer has access. */
  readonly reauthorize: () => Promise<AuthContext>
  readonly can: Caller['can']
}

/** The caller of a request, for handlers. Values that few handlers use are computed on demand. */
export class RequestCaller implements Caller {
  readonly #context: AppContext
  readonly #route: Route
  readonly #exchange: Exchange
  readonly #params: object
  readonly #reauthorize: RequestCallerDependencies['reauthorize']
  #draft: AuditDraft | undefined
  #isChangeRecorded = false
  readonly #recordedDecisions = new Set<string>()
  auth: AuthContext
  readonly can: Caller['can']
  isChangeChecked = false
  isCreatorChecked = false

  constructor({ context, route, exchange, params, auth, reauthorize, can }: RequestCallerDependencies) {
    this.#context = context
    this.#route = route
    this.#exchange = exchange
    this.#params = params
    this.#reauthorize = reauthorize
    this.auth = auth
    this.can = can
  }

  get signal(): AbortSignal {
    return this.#exchange.incoming.signal
  }
  get requestId(): string {
    return this.#exchange.trace.requestId
  }
  get site(): BrowserSite {
    const { incoming } = this.#exchange
    return { origin: this.#context.siteOrigin(incoming), cookies: incoming.cookie }
  }
  get client(): string {
    return this.#context.clientAddress(this.#exchange.incoming)
  }
  get follows(): Caller['follows'] {
    const { incoming } = this.#exchange
    const { events, replies } = this.#route
    const wantsEvents =
      replies[200] === eventStreamType || incoming.header('accept')?.includes(eventStreamType)
    // The response to a `HEAD` request has no body for events.
    return events && wantsEvents && incoming.method !== 'HEAD'
      ? { after: incoming.header('last-event-id') }
      : null
  }

  rowAccess(workspaceId: string): Promise<RowAccess> {
    return this.#context.rowAccess(actorOf(this.auth, workspaceId), workspaceId, this.#recordedDecisions)
  }

  onDrain(end: () => void): () => void {
    const context = this.#context
    if (context.isDraining()) end()
    return context.onDrain(end)
  }

  async reauthorize(): Promise<void> {
    this.auth = await this.#reauthorize()
  }

  checkChange(before: object, after: object): void {
    this.isChangeChecked = true
    const rule = this.#route.access
    const fields = rule.kind === 'needs' ? (rule.extraScope?.condition.fields ?? []) : []
    const changed = fields.filter(field => {
      const value = fieldValue(after, field)
      return value !== undefined && value !== fieldValue(before, field)
    })
    if (changed.length > 0) authorize({ rule, workspaceId: this.#exchange.workspaceId, changed }, this)
  }

  checkCreator(creator: Creator): void {
    this.isCreatorChecked = true
    const rule = this.#route.access
    const isOwnedByOther = !isCreator(this.auth, creator)
    if (rule.kind === 'ownRecords')
      authorize({ rule, workspaceId: this.#exchange.workspaceId, isOwnedByOther }, this)
  }

  record(details: AuditDetails, workspaceId?: string): Write {
    // A retried transaction creates a new draft. The last draft is the one that was stored.
    this.#draft = this.#context.audit.draft(this, this.#event(details, workspaceId))
    return this.#draft.write
  }

  recordChange(before: object, after: object, details: AuditDetails): Write[] {
    this.#isChangeRecorded = true
    this.#draft = undefined
    const { audit } = this.#route
    const watched = typeof audit === 'object' ? audit.fields : []
    const changed = watched.filter(
      field => !isDeepStrictEqual(fieldValue(before, field), fieldValue(after, field)),
    )
    return changed.length === 0 ? [] : [this.record({ ...details, reason: `changed ${changed.join(', ')}` })]
  }

  /**
   * Completes the audit of a successful request. Announces the record if the handler has stored it in its
   * transaction, otherwise writes it now.
   */
  completeAudit(details: AuditDetails | undefined): void {
    const recordsChange = typeof this.#route.audit === 'object'
    if (recordsChange && !this.#isChangeRecorded) throw new Error('the handler did not call recordChange')
    if (this.#draft) this.#draft.announce()
    else if (!recordsChange) this.#context.audit.note(this, this.#event(details ?? {}))
  }

  #event(details: AuditDetails, workspaceId = this.#exchange.workspaceId): AuditEvent {
    const { workspaceId: _, ...ids } = this.#params as Readonly<Record<string, string>>
    const audit = this.#route.audit!
    const action = typeof audit === 'object' ? audit.action : audit
    return { action, workspaceId, details: { ...ids, ...details } }
  }
}

function fieldValue(body: object, field: string): unknown {
  return (body as Record<string, unknown>)[field]
}

import { isDeepStrictEqual } from 'node:util'
import type { Draft, Event } from '../access/audit.ts'
import type { Caller, Site } from '../access/caller.ts'
import { authorize } from '../access/gate.ts'
import { type AuthContext, type Creator, isCreator } from '../access/subject.ts'
import type { AuditDetails } from '../contract/audit-record.ts'
import type { Route } from '../contract/route.ts'
import type { Write } from '../storage/rows.ts'
import type { Visibility } from '../storage/visibility.ts'
import type { Exchange, Shared } from './exchange.ts'

const eventStream = 'text/event-stream'

interface Parts {
  readonly shared: Shared
  readonly route: Route
  readonly current: Exchange
  /** Validated path parameters. */
  readonly params: object
  readonly auth: AuthContext
  readonly visibility: Visibility
  /** Rejects if the caller would now be refused. */
  readonly confirm: () => Promise<unknown>
  readonly can: Caller['can']
}

/** Caller of one request. Values that most handlers do not use are computed on demand. */
export class RequestCaller implements Caller {
  readonly #shared: Shared
  readonly #route: Route
  readonly #current: Exchange
  readonly #params: object
  readonly #confirm: Parts['confirm']
  #draft: Draft | undefined
  #isChangeAsked = false
  readonly auth: AuthContext
  readonly visibility: Visibility
  readonly can: Caller['can']
  isChangeChecked = false
  isCreatorChecked = false

  constructor({ shared, route, current, params, auth, visibility, confirm, can }: Parts) {
    this.#shared = shared
    this.#route = route
    this.#current = current
    this.#params = params
    this.#confirm = confirm
    this.auth = auth
    this.visibility = visibility
    this.can = can
  }

  get signal(): AbortSignal {
    return this.#current.incoming.signal
  }
  get requestId(): string {
    return this.#current.trace.requestId
  }
  get site(): Site {
    const { incoming } = this.#current
    return { origin: this.#shared.siteOrigin(incoming), cookies: incoming.cookie }
  }
  get client(): string {
    return this.#shared.clientOf(this.#current.incoming)
  }
  get follows(): Caller['follows'] {
    const { incoming } = this.#current
    const { events, replies } = this.#route
    const isAsked = replies[200] === eventStream || incoming.header('accept')?.includes(eventStream)
    // The response to a `HEAD` request has no body for events.
    return events && isAsked && incoming.method !== 'HEAD'
      ? { after: incoming.header('last-event-id') }
      : null
  }

  onDrain(end: () => void): () => void {
    const shared = this.#shared
    if (shared.isDraining()) end()
    return shared.onDrain(end)
  }

  async confirm(): Promise<void> {
    await this.#confirm()
  }

  checkChange(before: object, after: object): void {
    this.isChangeChecked = true
    const rule = this.#route.access
    const fields = rule.kind === 'needs' ? (rule.raise?.when.fields ?? []) : []
    const changed = fields.filter(field => {
      const value = fieldOf(after, field)
      return value !== undefined && value !== fieldOf(before, field)
    })
    if (changed.length > 0) authorize({ rule, workspaceId: this.#current.workspaceId, changed }, this)
  }

  checkCreator(creator: Creator): void {
    this.isCreatorChecked = true
    const rule = this.#route.access
    const isOfOther = !isCreator(this.auth, creator)
    if (rule.kind === 'own') authorize({ rule, workspaceId: this.#current.workspaceId, isOfOther }, this)
  }

  record(details: AuditDetails, workspaceId?: string): Write {
    // A retried transaction drafts a new record; the last draft is the one that was stored.
    this.#draft = this.#shared.audit.draft(this, this.#event(details, workspaceId))
    return this.#draft.write
  }

  recordChange(before: object, after: object, details: AuditDetails): Write[] {
    this.#isChangeAsked = true
    this.#draft = undefined
    const { audit } = this.#route
    const watched = typeof audit === 'object' ? audit.fields : []
    const changed = watched.filter(field => !isDeepStrictEqual(fieldOf(before, field), fieldOf(after, field)))
    return changed.length === 0 ? [] : [this.record({ ...details, reason: `changed ${changed.join(', ')}` })]
  }

  /**
   * Completes the audit of a successful request: announces the record that the handler stored in its
   * transaction, or writes one now.
   */
  recorded(details: AuditDetails | undefined): void {
    const isOfChange = typeof this.#route.audit === 'object'
    if (isOfChange && !this.#isChangeAsked)
      throw new Error('the handler did not ask for the record of a change')
    if (this.#draft) this.#draft.announce()
    else if (!isOfChange) this.#shared.audit.note(this, this.#event(details ?? {}))
  }

  #event(details: AuditDetails, workspaceId = this.#current.workspaceId): Event {
    const { workspaceId: _, ...ids } = this.#params as Readonly<Record<string, string>>
    const audit = this.#route.audit!
    const action = typeof audit === 'object' ? audit.action : audit
    return { action, workspaceId, details: { ...ids, ...details } }
  }
}

function fieldOf(body: object, field: string): unknown {
  return (body as Record<string, unknown>)[field]
}

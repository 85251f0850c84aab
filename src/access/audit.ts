import { type Clock, timestamp } from '../base/clock.ts'
import { newId } from '../base/id.ts'
import type { Log } from '../base/log.ts'
import { presentable } from '../base/redact.ts'
import type { AuditAction, AuditDetails, AuditRecord } from '../contract/audit-record.ts'
import { WbError } from '../contract/errors.ts'
import { params } from '../contract/ids.ts'
import type { RowStore, Write } from '../storage/rows.ts'
import { tables } from '../storage/tables.ts'
import { Losses, StoreQueue } from './audit-queue.ts'
import { logLines } from './audit-sinks.ts'
import type { AuthContext } from './subject.ts'

/** On whose behalf something was done; null is the runtime itself. */
export interface Actor {
  readonly auth: AuthContext
  readonly requestId: string | null
}

/** What was done. */
export interface Event {
  readonly action: AuditAction
  /** `success` when left out. */
  readonly outcome?: AuditRecord['outcome']
  readonly workspaceId?: string | undefined
  readonly details?: AuditDetails
}

/** A record that is about to be kept. */
export interface Draft {
  /** Belongs into the unit that it tells of. */
  readonly write: Write & { readonly op: 'insert' }
  /** Say it in the log, once the unit was applied. */
  announce(): void
}

export interface AuditTrailParts {
  readonly rows: Pick<RowStore, 'atomic'>
  readonly log: Log
  readonly clock: Clock
  /** Names this process where the runtime acts on its own. */
  readonly replicaId: string
}

/**
 * Who did what: in the log, and in the store.
 *
 * What a record must not miss is `draft`, part of the unit that it tells of, or `require`. Everything else is a `note`.
 *
 * @see docs/requirements.md#audit, docs/security.md#the-audit-trail
 */
export class AuditTrail {
  readonly #parts: AuditTrailParts
  readonly #lines: ReturnType<typeof logLines>
  readonly #losses: Losses
  readonly #acts: StoreQueue
  /** Apart, so that whoever is not let in displaces no record of what somebody did. */
  readonly #refusals: StoreQueue
  readonly #listeners = new Set<(records: number) => void>()

  constructor(parts: AuditTrailParts) {
    this.#parts = parts
    this.#lines = logLines(parts.log)
    this.#losses = new Losses(parts)
    const queue = { ...parts, losses: this.#losses, kept: (records: number) => this.#tell(records) }
    this.#acts = new StoreQueue({ ...queue, countsSame: false })
    this.#refusals = new StoreQueue({ ...queue, countsSame: true })
  }

  /** Noted records that the store does not have: too many came at once, or it could not be written. */
  get lost(): number {
    return this.#losses.total
  }

  draft(actor: Actor | null, event: Event): Draft {
    const row = this.#record(actor, event)
    return {
      write: { op: 'insert', table: tables.audit, row },
      announce: () => {
        this.#lines.take(row)
        this.#tell(1)
      },
    }
  }

  /**
   * Keep a record before the answer goes out.
   *
   * @throws control_plane_unavailable  it cannot be kept
   */
  async require(actor: Actor | null, event: Event): Promise<void> {
    const draft = this.draft(actor, event)
    const outcome = await this.#parts.rows.atomic([draft.write]).catch(unwritten)
    if (!outcome.ok) unwritten(outcome)
    draft.announce()
  }

  /** Keep a record while the answer goes out; one that cannot be kept is in the log alone. */
  note(actor: Actor | null, event: Event): void {
    const row = this.#record(actor, event)
    this.#lines.take(row)
    if (isRefusal(row)) this.#refusals.take({ ...row, refusal: 1 })
    else this.#acts.take(row)
  }

  /** Resolves when what was noted so far is kept, or lost. */
  async flushed(): Promise<void> {
    await Promise.all([this.#acts.flushed(), this.#refusals.flushed()])
  }

  /** Call back whenever this process has kept records. Returns a function that ends it. */
  onKept(listener: (records: number) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async close(): Promise<void> {
    await this.flushed()
    this.#losses.close()
  }

  #tell(records: number): void {
    for (const listener of this.#listeners) listener(records)
  }

  #record(actor: Actor | null, event: Event): AuditRecord {
    const { clock, replicaId } = this.#parts
    return {
      auditId: newId(),
      at: timestamp(clock),
      action: event.action,
      outcome: event.outcome ?? 'success',
      requestId: actor?.requestId ?? null,
      subject: actor
        ? subjectOf(actor.auth, event.workspaceId)
        : { type: 'system', id: replicaId, label: null },
      workspaceId: workspaceIn(event),
      details: event.details ? bounded(event.details) : null,
    }
  }
}

/** Whether it took no credential to cause a record, or none that was enough. */
function isRefusal({ action, subject }: AuditRecord): boolean {
  if (action === 'auth.api_denied' || action === 'auth.csrf_rejected') return true
  return action.startsWith('auth.') && subject?.type === 'anonymous'
}

/**
 * Keep a record and drop it again, in one unit: for what takes several units, the last of which keeps the record, and
 * must not begin where that one would fail.
 *
 * @throws control_plane_unavailable  the record cannot be kept
 */
export async function rehearse(rows: RowStore, record: Write): Promise<void> {
  const { auditId } = (record as { row: AuditRecord }).row
  const undone: Write = { op: 'delete', table: tables.audit, key: [auditId] }
  const outcome = await rows.atomic([record, undone]).catch(unwritten)
  if (!outcome.ok) unwritten(outcome)
}

/** @param cause  error of the store, whose message and hint are shown */
function unwritten(cause: unknown): never {
  const { hint, message } = cause instanceof WbError ? cause : {}
  const why = message === undefined ? '' : `: ${message}`
  throw new WbError(
    'control_plane_unavailable',
    `the audit record could not be written${why}`,
    { hint },
    { cause },
  )
}

/** Who reads the trail of a workspace learns nothing of other ones: who came from elsewhere has no label there. */
function subjectOf({ subject }: AuthContext, workspaceId: string | undefined): AuditRecord['subject'] {
  if (!subject) return { type: 'anonymous', id: null, label: null }
  const { type, id, label, workspaceScopes } = subject
  const isForeign = workspaceId !== undefined && workspaceScopes?.includes(workspaceId) === false
  return { type, id: presentable(id), label: label === null || isForeign ? null : presentable(label) }
}

/** The path of a request that was refused may name anything, a token too. */
function workspaceIn({ workspaceId }: Event): string | null {
  return params.workspaceId.safeParse(workspaceId).data ?? null
}

/** Texts of clients and providers, without secrets and no longer than a message needs to be. */
function bounded(details: AuditDetails): AuditDetails {
  const clean = Object.entries(details).map(([name, value]) => [
    name,
    typeof value === 'string' ? presentable(value) : value,
  ])
  return Object.fromEntries(clean) as AuditDetails
}

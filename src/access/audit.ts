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

/** The caller for whom an action was done. A null actor means the runtime itself. */
export interface Actor {
  readonly auth: AuthContext
  readonly requestId: string | null
}

/** An action to record. */
export interface Event {
  readonly action: AuditAction
  /** Outcome of the action; `success` by default. */
  readonly outcome?: AuditRecord['outcome']
  readonly workspaceId?: string | undefined
  readonly details?: AuditDetails
}

/** An audit record that is not yet stored. */
export interface Draft {
  /** Write for the transaction that makes the recorded change. */
  readonly write: Write & { readonly op: 'insert' }
  /** Logs the record. Call it after the transaction was applied. */
  announce(): void
}

export interface AuditTrailParts {
  readonly rows: Pick<RowStore, 'atomic'>
  readonly log: Log
  readonly clock: Clock
  /** ID of this process, recorded when the runtime itself acts. */
  readonly replicaId: string
}

/**
 * Audit trail, in the log and in the store.
 *
 * Use `draft` for a record in the same transaction as its change, `require` for a record that must be stored
 * before the response, and `note` for all others.
 *
 * @see docs/requirements.md#audit, docs/security.md#the-audit-trail
 */
export class AuditTrail {
  readonly #parts: AuditTrailParts
  readonly #lines: ReturnType<typeof logLines>
  readonly #losses: Losses
  readonly #acts: StoreQueue
  /** Separate queue, so that callers without access cannot displace records of other actions. */
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

  /** Number of noted records that were not stored, because the queue was full or the store failed. */
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
   * Stores a record before the response is sent.
   *
   * @throws control_plane_unavailable  when the record cannot be stored
   */
  async require(actor: Actor | null, event: Event): Promise<void> {
    const draft = this.draft(actor, event)
    const outcome = await this.#parts.rows.atomic([draft.write]).catch(unwritten)
    if (!outcome.ok) unwritten(outcome)
    draft.announce()
  }

  /** Stores a record in the background. If that fails, the record is only in the log. */
  note(actor: Actor | null, event: Event): void {
    const row = this.#record(actor, event)
    this.#lines.take(row)
    if (isRefusal(row)) this.#refusals.take({ ...row, refusal: 1 })
    else this.#acts.take(row)
  }

  /** Resolves when all records noted so far are stored or lost. */
  async flushed(): Promise<void> {
    await Promise.all([this.#acts.flushed(), this.#refusals.flushed()])
  }

  /** Calls back when this process has stored records. Returns a function that removes the listener. */
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

/** Returns true for a record that a caller without sufficient credentials can cause. */
function isRefusal({ action, subject }: AuditRecord): boolean {
  if (action === 'auth.api_denied' || action === 'auth.csrf_rejected') return true
  return action.startsWith('auth.') && subject?.type === 'anonymous'
}

/**
 * Checks that a record can be stored by writing and deleting it in one transaction. Call it before an
 * operation of several transactions, the last of which stores the record.
 *
 * @throws control_plane_unavailable  when the record cannot be stored
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

/**
 * Returns the subject to record. Readers of a workspace's trail must learn nothing about other workspaces, so
 * a subject without access to the workspace has no label.
 */
function subjectOf({ subject }: AuthContext, workspaceId: string | undefined): AuditRecord['subject'] {
  if (!subject) return { type: 'anonymous', id: null, label: null }
  const { type, id, label, workspaceScopes } = subject
  const isForeign = workspaceId !== undefined && workspaceScopes?.includes(workspaceId) === false
  return { type, id: presentable(id), label: label === null || isForeign ? null : presentable(label) }
}

/** Returns the workspace ID if valid. The path of a refused request may contain anything, even a token. */
function workspaceIn({ workspaceId }: Event): string | null {
  return params.workspaceId.safeParse(workspaceId).data ?? null
}

/** Redacts secrets in texts of clients and providers, and limits their length. */
function bounded(details: AuditDetails): AuditDetails {
  const clean = Object.entries(details).map(([name, value]) => [
    name,
    typeof value === 'string' ? presentable(value) : value,
  ])
  return Object.fromEntries(clean) as AuditDetails
}

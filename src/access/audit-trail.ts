import { type Clock, timestamp } from '../base/clock.ts'
import { newId } from '../base/id.ts'
import type { Log } from '../base/log.ts'
import { presentableMessage } from '../base/redact.ts'
import type { AuditAction, AuditDetails, AuditRecord } from '../contract/audit-record.ts'
import { WbError } from '../contract/errors.ts'
import { params } from '../contract/ids.ts'
import type { RowStore, Write } from '../storage/rows.ts'
import { type AuditRow, tables } from '../storage/tables.ts'
import { auditLogSink } from './audit-sinks.ts'
import { RecordLosses, type RecordMerging, RecordQueue } from './record-queue.ts'
import { toRecordedCaller } from './recorded-caller.ts'
import type { AuthContext } from './subject.ts'

/** Maximum number of records that wait to be written, for each of the two queues. */
const queuedRecordsMax = 1_000
const recordsPerGroupMax = 200

/** The caller that caused an action. Functions accept null instead for actions of the runtime itself. */
export interface AuditActor {
  readonly auth: AuthContext
  readonly requestId: string | null
}

/** An action to record. */
export interface AuditEvent {
  readonly action: AuditAction
  /** Outcome of the action; `success` by default. */
  readonly outcome?: AuditRecord['outcome']
  readonly workspaceId?: string | undefined
  readonly details?: AuditDetails
}

/** An audit record that is not yet stored. */
export interface AuditDraft {
  /** Write to include in the transaction of the recorded change. */
  readonly write: Write & { readonly op: 'insert' }
  /** Logs the record. Call it after the transaction was applied. */
  announce(): void
}

export interface AuditTrailDependencies {
  readonly rows: Pick<RowStore, 'atomic'>
  readonly log: Log
  readonly clock: Clock
  /** ID of this process, recorded for actions of the runtime itself. */
  readonly replicaId: string
}

/**
 * Writes audit records to the log and the store.
 *
 * Use `draft` for a record in the same transaction as its change, `require` for a record that must be stored
 * before the response, and `note` for all others.
 *
 * @see docs/requirements.md#audit, docs/security.md#the-audit-trail
 */
export class AuditTrail {
  readonly #deps: AuditTrailDependencies
  readonly #logSink: ReturnType<typeof auditLogSink>
  readonly #losses: RecordLosses
  readonly #actions: RecordQueue<AuditRow>
  /** A separate queue, so that callers without access cannot displace records of other actions. */
  readonly #refusals: RecordQueue<AuditRow>
  readonly #listeners = new Set<(records: number) => void>()

  constructor(deps: AuditTrailDependencies) {
    this.#deps = deps
    this.#logSink = auditLogSink(deps.log)
    this.#losses = new RecordLosses(deps, 'audit records were lost')
    const queue = {
      clock: deps.clock,
      losses: this.#losses,
      queuedMax: queuedRecordsMax,
      recordsPerGroupMax,
      delayMs: 0,
      write: (records: readonly AuditRow[]) => this.#store(records),
    }
    this.#actions = new RecordQueue(queue)
    this.#refusals = new RecordQueue({ ...queue, merging: refusalMerging })
  }

  /** Number of records passed to `note` that were not stored, because the queue was full or the store failed. */
  get lost(): number {
    return this.#losses.total
  }

  draft(actor: AuditActor | null, event: AuditEvent): AuditDraft {
    const row = this.#record(actor, event)
    return {
      write: { op: 'insert', table: tables.audit, row },
      announce: () => {
        this.#logSink.add(row)
        this.#notify(1)
      },
    }
  }

  /**
   * Stores a record before the response is sent.
   *
   * @throws control_plane_unavailable  when the record cannot be stored
   */
  async require(actor: AuditActor | null, event: AuditEvent): Promise<void> {
    const draft = this.draft(actor, event)
    const outcome = await this.#deps.rows.atomic([draft.write]).catch(throwUnwritable)
    if (!outcome.ok) throwUnwritable(outcome)
    draft.announce()
  }

  /** Stores a record in the background. If that fails, the record is only in the log. */
  note(actor: AuditActor | null, event: AuditEvent): void {
    const row = this.#record(actor, event)
    this.#logSink.add(row)
    if (isRefusal(row)) this.#refusals.add({ ...row, refusal: 1 })
    else this.#actions.add(row)
  }

  /** Resolves when all records passed to `note` so far are stored or lost. */
  async flushed(): Promise<void> {
    await Promise.all([this.#actions.flushed(), this.#refusals.flushed()])
  }

  /** Calls `listener` when this process has stored records. Returns a function that removes the listener. */
  onStored(listener: (records: number) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async close(): Promise<void> {
    await this.flushed()
    this.#losses.close()
  }

  /** @throws the failed outcome or the error of the write */
  async #store(records: readonly AuditRow[]): Promise<void> {
    const outcome = await this.#deps.rows.atomic(
      records.map((row): Write => ({ op: 'insert', table: tables.audit, row })),
    )
    if (!outcome.ok) throw outcome
    this.#notify(records.length)
  }

  #notify(records: number): void {
    for (const listener of this.#listeners) listener(records)
  }

  #record(actor: AuditActor | null, event: AuditEvent): AuditRecord {
    const { clock, replicaId } = this.#deps
    return {
      auditId: newId(),
      at: timestamp(clock),
      action: event.action,
      outcome: event.outcome ?? 'success',
      requestId: actor?.requestId ?? null,
      subject: actor
        ? auditSubject(actor.auth, event.workspaceId)
        : { type: 'system', id: replicaId, label: null },
      workspaceId: validWorkspaceId(event),
      details: event.details ? redactDetails(event.details) : null,
    }
  }
}

const refusalMerging: RecordMerging<AuditRow> = {
  contentKey: ({ action, outcome, subject, workspaceId, details }) =>
    JSON.stringify([action, outcome, subject, workspaceId, details]),
  withCount: (row, count) => ({ ...row, details: { ...row.details, count } }),
}

/** Returns true for records of denied requests, and of sign-in events of anonymous callers. */
function isRefusal({ action, subject }: AuditRecord): boolean {
  if (action === 'auth.api_denied' || action === 'auth.csrf_rejected') return true
  return action.startsWith('auth.') && subject?.type === 'anonymous'
}

/**
 * Checks that a record can be stored, by writing and deleting it in one transaction. Call it before an operation
 * that has several transactions and stores the record only in the last one.
 *
 * @throws control_plane_unavailable  when the record cannot be stored
 */
export async function requireWritableAudit(rows: RowStore, record: Write): Promise<void> {
  const { auditId } = (record as { row: AuditRecord }).row
  const deletion: Write = { op: 'delete', table: tables.audit, key: [auditId] }
  const outcome = await rows.atomic([record, deletion]).catch(throwUnwritable)
  if (!outcome.ok) throwUnwritable(outcome)
}

/**
 * @param cause  error of the store; its message and hint are shown
 * @throws control_plane_unavailable
 */
function throwUnwritable(cause: unknown): never {
  const { hint, message } = cause instanceof WbError ? cause : {}
  const reason = message === undefined ? '' : `: ${message}`
  throw new WbError(
    'control_plane_unavailable',
    `the audit record could not be written${reason}`,
    { hint },
    { cause },
  )
}

function auditSubject(auth: AuthContext, workspaceId: string | undefined): AuditRecord['subject'] {
  const { viewedPrincipalId } = auth
  const view = viewedPrincipalId === null ? {} : { viewAs: presentableMessage(viewedPrincipalId) }
  return { ...toRecordedCaller(auth, workspaceId), ...view }
}

/** Returns the workspace ID, or null if it is not valid, because the path of a rejected request can contain a token. */
function validWorkspaceId({ workspaceId }: AuditEvent): string | null {
  return params.workspaceId.safeParse(workspaceId).data ?? null
}

/** Redacts secrets in strings from clients and providers, and limits the length of these strings. */
function redactDetails(details: AuditDetails): AuditDetails {
  const clean = Object.entries(details).map(([name, value]) => [
    name,
    typeof value === 'string' ? presentableMessage(value) : value,
  ])
  return Object.fromEntries(clean) as AuditDetails
}

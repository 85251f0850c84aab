import { type Clock, timestamp } from '../base/clock.ts'
import { newId } from '../base/id.ts'
import type { Log } from '../base/log.ts'
import type { AuditAction, AuditDetails, AuditRecord } from '../contract/audit-record.ts'
import { WbError } from '../contract/errors.ts'
import type { RowStore, Write } from '../storage/rows.ts'
import { tables } from '../storage/tables.ts'
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
  readonly write: Write
  /** Say it in the log, once the unit was applied. */
  announce(): void
}

/** Who did what: in the log, and in the store. @see specification 6, contract: what is audited */
export class AuditTrail {
  constructor(
    private readonly parts: {
      rows: RowStore
      log: Log
      clock: Clock
      /** Names this process where the runtime acts on its own. */
      replicaId: string
    },
  ) {}

  draft(actor: Actor | null, event: Event): Draft {
    const { clock, log, replicaId } = this.parts
    const row: AuditRecord = {
      auditId: newId(),
      at: timestamp(clock),
      action: event.action,
      outcome: event.outcome ?? 'success',
      requestId: actor?.requestId ?? null,
      subject: actor ? subjectOf(actor.auth) : { type: 'system', id: replicaId, label: null },
      workspaceId: event.workspaceId ?? null,
      details: event.details ?? null,
    }
    return {
      write: { op: 'insert', table: tables.audit, row },
      announce: () => log.info({ audit: true, ...row }, `audit ${row.action} ${row.outcome}`),
    }
  }

  /**
   * Keep a record before the answer goes out.
   *
   * @throws control_plane_unavailable  it cannot be kept
   */
  async require(actor: Actor | null, event: Event): Promise<void> {
    const draft = this.draft(actor, event)
    const outcome = await this.parts.rows.atomic([draft.write])
    if (!outcome.ok) throw new WbError('control_plane_unavailable', 'the audit record could not be written')
    draft.announce()
  }

  /** Keep a record while the answer goes out; one that cannot be kept is in the log alone. */
  note(actor: Actor | null, event: Event): void {
    const draft = this.draft(actor, event)
    draft.announce()
    this.parts.rows.atomic([draft.write]).catch(error => {
      this.parts.log.warn({ error, action: event.action }, 'an audit record was lost')
    })
  }
}

function subjectOf({ subject }: AuthContext): AuditRecord['subject'] {
  if (!subject) return { type: 'anonymous', id: null, label: null }
  return { type: subject.type, id: subject.id, label: subject.label }
}

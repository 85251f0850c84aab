import type { Actor, AuditTrail } from '../../access/audit.ts'
import type { Caller } from '../../access/caller.ts'
import { type AuthContext, type Subject, verifiedAs } from '../../access/subject.ts'
import type { AuditAction, AuditDetails } from '../../contract/audit-record.ts'
import { type ErrorCode, WbError } from '../../contract/errors.ts'

/** A sign-in or what follows on it. */
export interface Act {
  readonly action: AuditAction
  /** Whose it is, where a sealed value says so. */
  readonly subjectId?: string | undefined
  /** Failures that are part of the way, and not recorded. */
  readonly unspoken?: readonly ErrorCode[]
}

/** Failures that have a separate reason in the audit trail. */
const reasons: Partial<Record<ErrorCode, string>> = {
  token_exchange_failed: 'idp_rejected',
  refresh_failed: 'idp_rejected',
}

const scheme = 'oidc'

/** Audit records of signing in. @see docs/requirements.md#S6-10 */
export class SignInTrail {
  constructor(
    private readonly audit: Pick<AuditTrail, 'require' | 'note'>,
    private readonly mode: AuthContext['mode'],
  ) {}

  /**
   * Record a login before it holds.
   *
   * @throws control_plane_unavailable  it cannot be recorded
   */
  async require(caller: Caller, action: AuditAction, subject: Subject): Promise<void> {
    await this.audit.require(this.#actor(caller, subject), { action, details: { scheme } })
  }

  /** Record what was done by a verified subject; without one, by whoever asked. */
  note(caller: Caller, action: AuditAction, subject: Subject | undefined, details: AuditDetails = {}): void {
    this.audit.note(this.#actor(caller, subject), { action, details: { scheme, ...details } })
  }

  /** Record that an act failed, if it does. */
  async watch<T>(caller: Caller, act: Act, run: () => Promise<T>): Promise<T> {
    try {
      return await run()
    } catch (error) {
      const code = error instanceof WbError ? error.code : 'internal_error'
      if (!act.unspoken?.includes(code)) {
        const subject = act.subjectId === undefined ? undefined : subjectNamed(act.subjectId)
        this.audit.note(this.#actor(caller, subject), {
          action: act.action,
          outcome: 'failure',
          details: { scheme, reason: reasons[code] ?? code },
        })
      }
      throw error
    }
  }

  #actor({ auth, requestId }: Caller, subject: Subject | undefined): Actor {
    return { auth: subject ? verifiedAs(this.mode, subject) : auth, requestId }
  }
}

/** A subject that a sealed value names, and of which nothing else is known: it may do nothing. */
export function subjectNamed(id: string): Subject {
  return {
    id,
    label: null,
    type: 'oidc',
    workspaceScopes: [],
    scopes: [],
    role: null,
    principalId: null,
    grantSpanMs: null,
  }
}

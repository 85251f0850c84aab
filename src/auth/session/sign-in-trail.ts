import type { AuditActor, AuditTrail } from '../../access/audit-trail.ts'
import type { Caller } from '../../access/caller.ts'
import { type AuthContext, type Subject, verifiedContext } from '../../access/subject.ts'
import type { AuditAction, AuditDetails } from '../../contract/audit-record.ts'
import { type ErrorCode, WbError } from '../../contract/errors.ts'

/** A step of a sign-in, or an action in its session. */
export interface SignInStep {
  readonly action: AuditAction
  /** ID of the subject, if it is known from a sealed value. */
  readonly subjectId?: string | undefined
  /** Codes of expected errors, which are not recorded. */
  readonly expectedCodes?: readonly ErrorCode[]
}

/** Reasons in audit records, for error codes whose reason is not the code itself. */
const reasons: Partial<Record<ErrorCode, string>> = {
  token_exchange_failed: 'idp_rejected',
  refresh_failed: 'idp_rejected',
}

const scheme = 'oidc'

/**
 * Writes the audit records of sign-ins.
 *
 * @see docs/requirements.md#S6-10
 */
export class SignInTrail {
  constructor(
    private readonly audit: Pick<AuditTrail, 'require' | 'note'>,
    private readonly mode: AuthContext['mode'],
  ) {}

  /**
   * Records a login before it takes effect.
   *
   * @throws control_plane_unavailable  when the login cannot be recorded
   */
  async recordOrThrow(caller: Caller, action: AuditAction, subject: Subject): Promise<void> {
    await this.audit.require(this.#actor(caller, subject), { action, details: { scheme } })
  }

  /** Records an action of a verified subject, or of the caller if `subject` is undefined. */
  note(caller: Caller, action: AuditAction, subject: Subject | undefined, details: AuditDetails = {}): void {
    this.audit.note(this.#actor(caller, subject), { action, details: { scheme, ...details } })
  }

  /** Runs a step, and records a failure. */
  async recordFailures<T>(caller: Caller, step: SignInStep, run: () => Promise<T>): Promise<T> {
    try {
      return await run()
    } catch (error) {
      const code = error instanceof WbError ? error.code : 'internal_error'
      if (!step.expectedCodes?.includes(code)) {
        const subject = step.subjectId === undefined ? undefined : unverifiedSubject(step.subjectId)
        this.audit.note(this.#actor(caller, subject), {
          action: step.action,
          outcome: 'failure',
          details: { scheme, reason: reasons[code] ?? code },
        })
      }
      throw error
    }
  }

  #actor({ auth, requestId }: Caller, subject: Subject | undefined): AuditActor {
    return { auth: subject ? verifiedContext(this.mode, subject) : auth, requestId }
  }
}

/** Returns a subject without rights, of which only the ID is known. */
export function unverifiedSubject(id: string): Subject {
  return {
    id,
    label: null,
    type: 'oidc',
    workspaceScopes: [],
    scopes: [],
    role: null,
    principalId: null,
    keyLifetimeMaxMs: null,
  }
}

import { timingSafeEqual } from 'node:crypto'
import type { AuditTrail } from '../access/audit-trail.ts'
import { type AuthContext, type Subject, verifiedContext } from '../access/subject.ts'
import type { RequestCredentials, TokenVerifier, VerifiedToken } from './authenticate.ts'
import { sha256Bytes } from './secret-hash.ts'

const subject: Subject = {
  id: 'bootstrap',
  label: 'bootstrap operator',
  type: 'bootstrap',
  workspaceScopes: null,
  scopes: null,
  role: null,
  principalId: null,
  keyLifetimeMaxMs: null,
}

/**
 * Verifies the bootstrap token, which can have any format. Every use is recorded in the audit trail.
 *
 * @see docs/requirements.md#S5.2-10
 */
export class BootstrapVerifier implements TokenVerifier {
  readonly #digest: Buffer
  readonly #auth: AuthContext

  constructor(readonly deps: { token: string; mode: 'apiKey' | 'oidc' | 'any'; audit: AuditTrail }) {
    this.#digest = sha256Bytes(deps.token)
    this.#auth = verifiedContext(deps.mode, subject)
  }

  verify(token: string, { requestId }: RequestCredentials): Promise<VerifiedToken> | undefined {
    // Compare digests, which have a fixed length, so that the comparison does not reveal the length of the token.
    if (!timingSafeEqual(sha256Bytes(token), this.#digest)) return undefined
    const details = { scheme: 'bootstrap' }
    this.deps.audit.note({ auth: this.#auth, requestId }, { action: 'auth.bootstrap_use', details })
    return Promise.resolve({ subject, expiresAtSeconds: null })
  }
}

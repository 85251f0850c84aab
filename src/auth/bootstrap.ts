import { timingSafeEqual } from 'node:crypto'
import type { AuditTrail } from '../access/audit.ts'
import { type AuthContext, type Subject, verifiedAs } from '../access/subject.ts'
import type { Presented, Verified, Verifier } from './authenticate.ts'
import { sha256 } from './hash.ts'

const subject: Subject = {
  id: 'bootstrap',
  label: 'bootstrap operator',
  type: 'bootstrap',
  workspaceScopes: null,
  scopes: null,
  role: null,
  principalId: null,
  grantSpanMs: null,
}

/**
 * Verifies the bootstrap token, which may have any format. Every use is audited.
 *
 * @see docs/requirements.md#S5.2-10
 */
export class BootstrapVerifier implements Verifier {
  readonly #digest: Buffer
  readonly #auth: AuthContext

  constructor(readonly parts: { token: string; mode: 'apiKey' | 'oidc' | 'any'; audit: AuditTrail }) {
    this.#digest = sha256(parts.token)
    this.#auth = verifiedAs(parts.mode, subject)
  }

  verify(token: string, { requestId }: Presented): Promise<Verified> | undefined {
    // Digests have a fixed length, so the comparison does not reveal the length of the token.
    if (!timingSafeEqual(sha256(token), this.#digest)) return undefined
    const details = { scheme: 'bootstrap' }
    this.parts.audit.note({ auth: this.#auth, requestId }, { action: 'auth.bootstrap_use', details })
    return Promise.resolve({ subject, expiresAtSeconds: null })
  }
}

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

/** The operator's own token, of any form; every use of it is recorded. @see docs/requirements.md#S5.2-10 */
export class BootstrapVerifier implements Verifier {
  readonly #digest: Buffer
  readonly #auth: AuthContext

  constructor(readonly parts: { token: string; mode: 'apiKey' | 'oidc' | 'any'; audit: AuditTrail }) {
    this.#digest = sha256(parts.token)
    this.#auth = verifiedAs(parts.mode, subject)
  }

  verify(token: string, { requestId }: Presented): Promise<Verified> | undefined {
    // Digests are of one length, so that the comparison tells nothing of the token's.
    if (!timingSafeEqual(sha256(token), this.#digest)) return undefined
    const details = { scheme: 'bootstrap' }
    this.parts.audit.note({ auth: this.#auth, requestId }, { action: 'auth.bootstrap_use', details })
    return Promise.resolve({ subject, expiresAtSeconds: null })
  }
}

import type { AuditTrail } from '../access/audit.ts'
import type { Presented, Verified, Verifier } from './authenticate.ts'

/** The operator's own token. @see specification 5.2.5 */
export class BootstrapVerifier implements Verifier {
  constructor(readonly parts: { token: string; mode: 'apiKey' | 'oidc' | 'any'; audit: AuditTrail }) {}

  verify(_token: string, _presented: Presented): Promise<Verified> | undefined {
    throw new Error('not written')
  }
}

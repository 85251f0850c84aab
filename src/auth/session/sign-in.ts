import type { AuditTrail } from '../../access/audit.ts'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { Config } from '../../config/schema.ts'
import type { JwtVerifier } from '../oidc/jwt.ts'
import type { IdentityProvider } from '../oidc/provider.ts'
import type { SessionCookies } from './cookie.ts'
import type { Seal } from './seal.ts'

/** What signing in with an identity provider takes. */
export interface SignInParts {
  readonly client: NonNullable<NonNullable<Config['auth']['oidc']>['client']>
  readonly provider: IdentityProvider
  readonly verifier: JwtVerifier
  readonly cookies: SessionCookies
  readonly seal: Seal
  readonly audit: AuditTrail
  readonly clock: Clock
  readonly log: Log
}

/** Signing in: by a browser and by a device. Without `parts` only keys are known here. */
export class SignIn {
  constructor(
    readonly mode: Config['auth']['mode'],
    readonly parts: SignInParts | undefined,
  ) {}
}

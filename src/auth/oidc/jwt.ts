import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { Verified, Verifier } from '../authenticate.ts'
import type { IdentityProvider, OidcConfig } from './provider.ts'

/** Verifies access tokens of the identity provider. @see specification 5.3, security decision 11 */
export class JwtVerifier implements Verifier {
  constructor(
    readonly parts: {
      oidc: OidcConfig
      provider: Pick<IdentityProvider, 'keySetUrl'>
      fetch: typeof fetch
      clock: Clock
      log: Log
    },
  ) {}

  verify(_token: string): Promise<Verified> | undefined {
    throw new Error('not written')
  }

  /**
   * The same for a token that just came from the provider.
   *
   * @throws unauthorized                   the token does not hold
   * @throws identity_provider_unavailable  the keys cannot be had
   */
  check(_token: string): Promise<Verified> {
    throw new Error('not written')
  }
}

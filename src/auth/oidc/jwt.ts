import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { WbError } from '../../contract/errors.ts'
import type { Verified, Verifier } from '../authenticate.ts'
import type { AccessTokens } from './access-tokens.ts'
import { boundedFetch } from './ask.ts'
import type { OidcConfig } from './protocol.ts'
import type { IdentityProvider } from './provider.ts'

/** Three non-empty parts in base64url. */
const shape = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/

/**
 * Verifies access tokens of the identity provider.
 *
 * @see docs/requirements.md#verification-of-jwts, docs/security.md#rule-11
 */
export class JwtVerifier implements Verifier {
  #opening: Promise<AccessTokens> | undefined

  constructor(
    readonly parts: {
      oidc: OidcConfig
      provider: Pick<IdentityProvider, 'keySetUrl'>
      fetch: typeof fetch
      clock: Clock
      log: Log
    },
  ) {}

  verify(token: string): Promise<Verified> | undefined {
    return shape.test(token) ? this.#checked(token) : undefined
  }

  /**
   * Like {@link verify}, for a token that the provider has just issued.
   *
   * @throws unauthorized                   when the token is not valid
   * @throws identity_provider_unavailable  when the keys cannot be loaded
   */
  async check(token: string): Promise<Verified> {
    if (!shape.test(token)) throw new WbError('unauthorized', 'the access token of the provider is not a JWT')
    return (await this.#tokens()).verify(token)
  }

  /** Converts unavailability of the provider to `unauthorized`, because the token could not be verified. */
  async #checked(token: string): Promise<Verified> {
    try {
      return await this.check(token)
    } catch (error) {
      if (!(error instanceof WbError) || error.code !== 'identity_provider_unavailable') throw error
      throw new WbError('unauthorized', error.message, { hint: error.hint })
    }
  }

  /** Loads the verifier with the first token, because most commands need none. */
  #tokens(): Promise<AccessTokens> {
    const { provider, ...parts } = this.parts
    this.#opening ??= import('./access-tokens.ts').then(
      ({ AccessTokens }) =>
        new AccessTokens({ ...parts, ask: boundedFetch(parts), keySetUrl: () => provider.keySetUrl() }),
    )
    return this.#opening
  }
}

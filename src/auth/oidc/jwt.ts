import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { WbError } from '../../contract/errors.ts'
import type { Verified, Verifier } from '../authenticate.ts'
import type { AccessTokens } from './access-tokens.ts'
import { boundedFetch } from './ask.ts'
import type { OidcConfig } from './protocol.ts'
import type { IdentityProvider } from './provider.ts'

/** Three parts in base64url, none of them empty. */
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
   * The same for a token that just came from the provider.
   *
   * @throws unauthorized                   the token does not hold
   * @throws identity_provider_unavailable  the keys cannot be had
   */
  async check(token: string): Promise<Verified> {
    if (!shape.test(token)) throw new WbError('unauthorized', 'the access token of the provider is not a JWT')
    return (await this.#tokens()).verify(token)
  }

  /** Whatever keeps a token from being verified, its bearer is not authorized. */
  async #checked(token: string): Promise<Verified> {
    try {
      return await this.check(token)
    } catch (error) {
      if (!(error instanceof WbError) || error.code !== 'identity_provider_unavailable') throw error
      throw new WbError('unauthorized', error.message, { hint: error.hint })
    }
  }

  /** Loaded with the first token, as most commands see none. */
  #tokens(): Promise<AccessTokens> {
    const { provider, ...parts } = this.parts
    this.#opening ??= import('./access-tokens.ts').then(
      ({ AccessTokens }) =>
        new AccessTokens({ ...parts, ask: boundedFetch(parts), keySetUrl: () => provider.keySetUrl() }),
    )
    return this.#opening
  }
}

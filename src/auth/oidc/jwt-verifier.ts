import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { WbError } from '../../contract/errors.ts'
import type { TokenVerifier, VerifiedToken } from '../authenticate.ts'
import type { AccessTokenVerifier } from './access-token-verifier.ts'
import type { OidcConfig } from './protocol.ts'
import type { IdentityProvider } from './provider.ts'
import { createProviderFetch } from './provider-fetch.ts'

/** The format of a JWT: three non-empty parts in base64url. */
const jwtPattern = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/

/**
 * Verifies access tokens from the identity provider.
 *
 * @see docs/requirements.md#verification-of-jwts, docs/security.md#rule-11
 */
export class JwtVerifier implements TokenVerifier {
  #verifier: Promise<AccessTokenVerifier> | undefined

  constructor(
    readonly deps: {
      oidc: OidcConfig
      provider: Pick<IdentityProvider, 'keySetUrl'>
      fetch: typeof fetch
      clock: Clock
      log: Log
    },
  ) {}

  verify(token: string): Promise<VerifiedToken> | undefined {
    return jwtPattern.test(token) ? this.#verifyOrReject(token) : undefined
  }

  /**
   * Verifies a token that the provider has just issued. Unlike {@link verify}, throws if the token is not a JWT, and
   * reports an unavailable provider.
   *
   * @throws unauthorized                   when the token is not valid
   * @throws identity_provider_unavailable  when the keys cannot be loaded
   */
  async check(token: string): Promise<VerifiedToken> {
    if (!jwtPattern.test(token))
      throw new WbError('unauthorized', "the identity provider's access token is not a JWT")
    return (await this.#loadVerifier()).verify(token)
  }

  /**
   * Like {@link check}, but throws `unauthorized` if the provider is unavailable, because the token was not verified.
   */
  async #verifyOrReject(token: string): Promise<VerifiedToken> {
    try {
      return await this.check(token)
    } catch (error) {
      if (!(error instanceof WbError) || error.code !== 'identity_provider_unavailable') throw error
      throw new WbError('unauthorized', error.message, { hint: error.hint })
    }
  }

  /** Returns the verifier. Loads it for the first token only, because most commands do not need it. */
  #loadVerifier(): Promise<AccessTokenVerifier> {
    const { provider, ...deps } = this.deps
    this.#verifier ??= import('./access-token-verifier.ts').then(
      ({ AccessTokenVerifier }) =>
        new AccessTokenVerifier({
          ...deps,
          fetchProvider: createProviderFetch(deps),
          keySetUrl: () => provider.keySetUrl(),
        }),
    )
    return this.#verifier
  }
}

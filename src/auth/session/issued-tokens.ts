import { LRUCache } from 'lru-cache'
import type { Clock } from '../../base/clock.ts'
import { type ErrorCode, WbError } from '../../contract/errors.ts'
import type { VerifiedToken } from '../authenticate.ts'
import type { JwtVerifier } from '../oidc/jwt-verifier.ts'
import type { ProviderTokens } from '../oidc/protocol.ts'
import type { IdentityProvider } from '../oidc/provider.ts'
import { hashSecret } from '../secret-hash.ts'

/** Tokens from the identity provider that this API accepts, and the verified facts about them. */
export interface IssuedTokens {
  readonly tokens: ProviderTokens
  readonly verified: VerifiedToken
}

/**
 * Verifies an access token that the provider has just issued.
 *
 * @param rejection  code and status of the error for an invalid token
 * @throws the code of `rejection`        when the token is not valid
 * @throws identity_provider_unavailable  when the keys cannot be loaded
 */
export async function verifyIssuedTokens(
  verifier: Pick<JwtVerifier, 'check'>,
  tokens: ProviderTokens,
  rejection: { code: ErrorCode; status?: number },
): Promise<IssuedTokens> {
  try {
    return { tokens, verified: await verifier.check(tokens.accessToken) }
  } catch (error) {
    if (!(error instanceof WbError) || error.code !== 'unauthorized') throw error
    const message = `the identity provider issued a token that this runtime does not accept: ${error.message}`
    const { code, status } = rejection
    throw new WbError(code, message, status === undefined ? {} : { status })
  }
}

/** Maximum time for which unverified tokens are stored while the provider's keys are unavailable, in milliseconds. */
const unverifiedTtlMs = 600_000
const unverifiedMax = 256

/** Exchanges a refresh token for new tokens. */
export class TokenRenewer {
  /**
   * Tokens that could not be verified yet, by the hash of the refresh token that was exchanged for them. They
   * must not be lost, because the old refresh token is no longer valid.
   */
  readonly #unverified: LRUCache<string, ProviderTokens>

  constructor(
    private readonly deps: {
      provider: Pick<IdentityProvider, 'refresh'>
      verifier: Pick<JwtVerifier, 'check'>
      clock: Clock
    },
  ) {
    this.#unverified = new LRUCache({
      max: unverifiedMax,
      ttl: unverifiedTtlMs,
      ttlResolution: 0,
      perf: deps.clock,
    })
  }

  /**
   * Exchanges a refresh token, and verifies the new tokens.
   *
   * @param subject  ID of the subject that the new tokens must have
   * @throws refresh_failed                 when the provider rejects the refresh token
   * @throws token_validation_failed        when this API does not accept the new token, or its subject differs
   * @throws identity_provider_unavailable  when the provider cannot be reached or its keys cannot be loaded
   */
  async renew(refreshToken: string, subject: string): Promise<IssuedTokens> {
    const key = hashSecret(refreshToken)
    const tokens = this.#unverified.get(key) ?? (await this.deps.provider.refresh(refreshToken))
    if ('errorCode' in tokens)
      throw new WbError('refresh_failed', 'the identity provider did not renew the sign-in', { ...tokens })
    this.#unverified.set(key, tokens)
    const issued = await this.#verify(tokens, subject).catch(error => {
      if (!isProviderUnavailable(error)) this.#unverified.delete(key)
      throw error
    })
    this.#unverified.delete(key)
    return issued
  }

  async #verify(tokens: ProviderTokens, subject: string): Promise<IssuedTokens> {
    const issued = await verifyIssuedTokens(this.deps.verifier, tokens, { code: 'token_validation_failed' })
    if (issued.verified.subject.id !== subject)
      throw new WbError('token_validation_failed', 'the identity provider returned a token for another user')
    return issued
  }
}

function isProviderUnavailable(error: unknown): boolean {
  return error instanceof WbError && error.code === 'identity_provider_unavailable'
}

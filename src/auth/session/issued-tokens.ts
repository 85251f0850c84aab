import { LRUCache } from 'lru-cache'
import type { Clock } from '../../base/clock.ts'
import { type ErrorCode, WbError } from '../../contract/errors.ts'
import type { VerifiedToken } from '../authenticate.ts'
import type { JwtVerifier } from '../oidc/jwt-verifier.ts'
import type { ProviderTokens } from '../oidc/protocol.ts'
import type { IdentityProvider } from '../oidc/provider.ts'
import { hashSecret } from '../secret-hash.ts'

/** Tokens from the identity provider that the API would accept, and the verified facts about them. */
export interface IssuedTokens {
  readonly tokens: ProviderTokens
  readonly verified: VerifiedToken
}

/**
 * Verifies an access token that the provider has just issued.
 *
 * @throws `refusal`                      when the token is not valid
 * @throws identity_provider_unavailable  when the keys cannot be loaded
 */
export async function verifyIssuedTokens(
  verifier: Pick<JwtVerifier, 'check'>,
  tokens: ProviderTokens,
  refusal: { code: ErrorCode; status?: number },
): Promise<IssuedTokens> {
  try {
    return { tokens, verified: await verifier.check(tokens.accessToken) }
  } catch (error) {
    if (!(error instanceof WbError) || error.code !== 'unauthorized') throw error
    const message = `the identity provider issued a token that is not valid here: ${error.message}`
    throw new WbError(refusal.code, message, refusal.status === undefined ? {} : { status: refusal.status })
  }
}

/** Time for which tokens are kept until the keys are available, in milliseconds. */
const unverifiedTtlMs = 600_000
const unverifiedMax = 256

/** Exchanges a refresh token for new tokens. */
export class TokenRenewer {
  /**
   * Tokens that could not be verified yet, by refresh token. The refresh token is already used up, so they
   * must not be lost.
   */
  readonly #unverified: LRUCache<string, ProviderTokens>

  constructor(
    private readonly parts: {
      provider: Pick<IdentityProvider, 'refresh'>
      verifier: Pick<JwtVerifier, 'check'>
      clock: Clock
    },
  ) {
    this.#unverified = new LRUCache({
      max: unverifiedMax,
      ttl: unverifiedTtlMs,
      ttlResolution: 0,
      perf: parts.clock,
    })
  }

  /**
   * Renews tokens.
   *
   * @param subject  ID of the subject that the new tokens must have
   * @throws refresh_failed                 when the provider refuses
   * @throws token_validation_failed        when the API would not accept the new token, or its subject
   *   differs
   * @throws identity_provider_unavailable  when the provider cannot be reached or its keys cannot be loaded
   */
  async renew(refreshToken: string, subject: string): Promise<IssuedTokens> {
    const key = hashSecret(refreshToken)
    const tokens = this.#unverified.get(key) ?? (await this.parts.provider.refresh(refreshToken))
    if ('refused' in tokens)
      throw new WbError('refresh_failed', 'the identity provider refused to renew the sign-in', { ...tokens })
    this.#unverified.set(key, tokens)
    const issued = await this.#verify(tokens, subject).catch(error => {
      if (!isProviderUnavailable(error)) this.#unverified.delete(key)
      throw error
    })
    this.#unverified.delete(key)
    return issued
  }

  async #verify(tokens: ProviderTokens, subject: string): Promise<IssuedTokens> {
    const issued = await verifyIssuedTokens(this.parts.verifier, tokens, { code: 'token_validation_failed' })
    if (issued.verified.subject.id !== subject)
      throw new WbError(
        'token_validation_failed',
        'the identity provider renewed the sign-in of another user',
      )
    return issued
  }
}

function isProviderUnavailable(error: unknown): boolean {
  return error instanceof WbError && error.code === 'identity_provider_unavailable'
}

import { LRUCache } from 'lru-cache'
import type { Clock } from '../../base/clock.ts'
import { type ErrorCode, WbError } from '../../contract/errors.ts'
import type { Verified } from '../authenticate.ts'
import { fingerprint } from '../hash.ts'
import type { JwtVerifier } from '../oidc/jwt.ts'
import type { Tokens } from '../oidc/protocol.ts'
import type { IdentityProvider } from '../oidc/provider.ts'

/** Tokens from the identity provider that the API would accept, and the verified facts about them. */
export interface Issued {
  readonly tokens: Tokens
  readonly verified: Verified
}

/**
 * Verifies an access token that the provider has just issued.
 *
 * @throws `refusal`                      when the token is not valid
 * @throws identity_provider_unavailable  when the keys cannot be loaded
 */
export async function checkIssued(
  verifier: Pick<JwtVerifier, 'check'>,
  tokens: Tokens,
  refusal: { code: ErrorCode; status?: number },
): Promise<Issued> {
  try {
    return { tokens, verified: await verifier.check(tokens.accessToken) }
  } catch (error) {
    if (!(error instanceof WbError) || error.code !== 'unauthorized') throw error
    const message = `the identity provider issued a token that does not hold here: ${error.message}`
    throw new WbError(refusal.code, message, refusal.status === undefined ? {} : { status: refusal.status })
  }
}

/** Time for which tokens are kept until the keys are available, in milliseconds. */
const unprovenMs = 600_000
const unprovenMax = 256

/** Exchanges a refresh token for new tokens. */
export class Renewer {
  /**
   * Tokens that could not be verified yet, by refresh token. The refresh token is already used up, so they
   * must not be lost.
   */
  readonly #unproven: LRUCache<string, Tokens>

  constructor(
    private readonly parts: {
      provider: Pick<IdentityProvider, 'refresh'>
      verifier: Pick<JwtVerifier, 'check'>
      clock: Clock
    },
  ) {
    this.#unproven = new LRUCache({ max: unprovenMax, ttl: unprovenMs, ttlResolution: 0, perf: parts.clock })
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
  async renew(refreshToken: string, subject: string): Promise<Issued> {
    const key = fingerprint(refreshToken)
    const tokens = this.#unproven.get(key) ?? (await this.parts.provider.refresh(refreshToken))
    if ('refused' in tokens)
      throw new WbError('refresh_failed', 'the identity provider does not renew this sign-in', { ...tokens })
    this.#unproven.set(key, tokens)
    const issued = await this.#checked(tokens, subject).catch(error => {
      if (!isUnavailable(error)) this.#unproven.delete(key)
      throw error
    })
    this.#unproven.delete(key)
    return issued
  }

  async #checked(tokens: Tokens, subject: string): Promise<Issued> {
    const issued = await checkIssued(this.parts.verifier, tokens, { code: 'token_validation_failed' })
    if (issued.verified.subject.id !== subject)
      throw new WbError(
        'token_validation_failed',
        'the identity provider renewed the sign-in of someone else',
      )
    return issued
  }
}

function isUnavailable(error: unknown): boolean {
  return error instanceof WbError && error.code === 'identity_provider_unavailable'
}

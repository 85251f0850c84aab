import { LRUCache } from 'lru-cache'
import type { Clock } from '../../base/clock.ts'
import { type ErrorCode, WbError } from '../../contract/errors.ts'
import type { Verified } from '../authenticate.ts'
import { fingerprint } from '../hash.ts'
import type { JwtVerifier } from '../oidc/jwt.ts'
import type { Tokens } from '../oidc/protocol.ts'
import type { IdentityProvider } from '../oidc/provider.ts'

/** Tokens of the identity provider that the API would accept, and what it found out about them. */
export interface Issued {
  readonly tokens: Tokens
  readonly verified: Verified
}

/**
 * What the API's own verifier says of an access token that the provider just issued.
 *
 * @throws `refusal`                      it does not hold
 * @throws identity_provider_unavailable  the keys cannot be had
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

/** How long tokens wait whose keys could not be had. */
const unprovenMs = 600_000
const unprovenMax = 256

/** Asks the provider for new tokens in exchange for a refresh token. */
export class Renewer {
  /** A refresh token is spent with the answer, so that what came is kept until it could be verified. */
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
   * @param subject  whose they have to be
   * @throws refresh_failed                 the provider refuses
   * @throws token_validation_failed        the API would not accept the new token, or it is of another subject
   * @throws identity_provider_unavailable  the provider or its keys cannot be had
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

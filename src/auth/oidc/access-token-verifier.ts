import { errors, type JWTVerifyGetKey, type JWTVerifyOptions, type JWTVerifyResult, jwtVerify } from 'jose'
import { LRUCache } from 'lru-cache'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { WbError } from '../../contract/errors.ts'
import type { VerifiedToken } from '../authenticate.ts'
import { createKeyedHash } from '../secret-hash.ts'
import { subjectOfClaims } from './claims.ts'
import { KeySet, type PublishedKeys } from './key-set.ts'
import type { OidcConfig } from './protocol.ts'
import type { ProviderFetch } from './provider-fetch.ts'
import { hasOtherPurpose } from './token-purpose.ts'

/**
 * Accepted signature algorithms, all of them asymmetric. With a symmetric algorithm, anyone could sign a token with
 * the public key as the secret.
 */
const algorithms = ['RS', 'PS', 'ES'].flatMap(family => [256, 384, 512].map(bits => `${family}${bits}`))
algorithms.push('EdDSA', 'Ed25519')

/** Maximum number of cached tokens, and their maximum total length in characters. */
const cachedTokensMax = 10_000
const cachedCharsMax = 16_777_216

/** Result of verifying a token. It is valid as long as the keys have the same generation. */
interface CachedToken {
  readonly keyId: string | undefined
  readonly generation: number
  readonly expiresAtSeconds: number
  readonly validFromSeconds: number
  readonly verified: VerifiedToken
}

/**
 * Verifies JWTs, and caches the results.
 *
 * @see docs/requirements.md#S5.3-07, docs/security.md#rule-11
 */
export class AccessTokenVerifier {
  readonly #keys: KeySet
  readonly #options: JWTVerifyOptions
  readonly #verified = new LRUCache<string, CachedToken>({
    max: cachedTokensMax,
    maxSize: cachedCharsMax,
  })
  readonly #hash = createKeyedHash()

  constructor(
    private readonly deps: {
      oidc: OidcConfig
      keySetUrl(): Promise<URL>
      fetchProvider: ProviderFetch
      clock: Clock
      log: Log
    },
  ) {
    const { oidc } = deps
    this.#keys = new KeySet({ ...deps, url: deps.keySetUrl })
    this.#options = {
      algorithms,
      issuer: oidc.issuer,
      audience: oidc.audience,
      clockTolerance: oidc.clockToleranceSeconds,
    }
  }

  /**
   * Verifies a token, and returns its subject and expiry.
   *
   * @throws unauthorized                   when the token is not valid
   * @throws identity_provider_unavailable  when the keys cannot be loaded
   */
  async verify(token: string): Promise<VerifiedToken> {
    const id = this.#hash(token)
    const cached = this.#verified.get(id)
    if (cached) {
      const { generation } = await this.#keys.keysFor(cached.keyId)
      if (generation === cached.generation) return this.#requireCurrent(cached)
      this.#verified.delete(id)
    }
    const result = await this.#verifySignature(token)
    this.#verified.set(id, result, { size: token.length })
    return result.verified
  }

  /** Checks whether a cached token is valid at the current time. Called for each request. */
  #requireCurrent({ expiresAtSeconds, validFromSeconds, verified }: CachedToken): VerifiedToken {
    const nowSeconds = Math.floor(this.deps.clock.now() / 1_000)
    const { clockToleranceSeconds } = this.deps.oidc
    if (expiresAtSeconds <= nowSeconds - clockToleranceSeconds) throw invalidToken(messages.expired)
    if (validFromSeconds > nowSeconds + clockToleranceSeconds) throw invalidToken(messages.notYetValid)
    return verified
  }

  async #verifySignature(token: string): Promise<CachedToken> {
    const { oidc, clock } = this.deps
    let keys: PublishedKeys | undefined
    const { payload, protectedHeader } = await verifyWithKey(
      async (header, jws) => {
        keys = await this.#keys.keysFor(header.kid)
        return keys.find(header, jws)
      },
      token,
      { ...this.#options, currentDate: new Date(clock.now()) },
    )
    const { exp, nbf } = payload
    // The library accepts tokens without an expiry.
    if (exp === undefined || !(exp < expirySecondsMax)) throw invalidToken(messages.noExpiry)
    if (hasOtherPurpose(protectedHeader, payload)) throw invalidToken(messages.notAccessToken)
    return {
      keyId: protectedHeader.kid,
      generation: keys!.generation,
      expiresAtSeconds: exp,
      validFromSeconds: nbf ?? 0,
      verified: { subject: subjectOfClaims(payload, oidc), expiresAtSeconds: Math.floor(exp) },
    }
  }
}

/** End of the year 9999, in seconds since 1970. Later expiries are invalid. */
const expirySecondsMax = 253_402_300_800

/** Messages for callers, which replace those of the library. */
const messages = {
  expired: 'the token is expired',
  notYetValid: 'the token is not yet valid',
  noExpiry: 'the token has no expiry',
  signature: 'the signature of the token was not verified',
  issuer: 'the issuer of the token is not accepted',
  audience: 'the audience of the token is not accepted',
  extension: 'the token requires an extension that is not supported',
  malformed: 'the token is malformed',
  notAccessToken: 'the token is not an access token',
} as const

const claimMessages = new Map<string, string>([
  ['iss', messages.issuer],
  ['aud', messages.audience],
  ['nbf', messages.notYetValid],
  ['exp', messages.noExpiry],
])

function invalidToken(message: string): WbError {
  return new WbError('unauthorized', message)
}

/** @throws unauthorized  when the token is not valid */
async function verifyWithKey(
  find: JWTVerifyGetKey,
  token: string,
  options: JWTVerifyOptions,
): Promise<JWTVerifyResult> {
  try {
    return await jwtVerify(token, find, options).catch(error => {
      if (error instanceof errors.JWKSMultipleMatchingKeys) return verifyWithAnyKey(error, token, options)
      throw error
    })
  } catch (error) {
    if (error instanceof WbError) throw error
    throw invalidToken(verificationMessage(error))
  }
}

/** Verifies a token without a key ID by trying each key that matches its algorithm. */
async function verifyWithAnyKey(
  keys: errors.JWKSMultipleMatchingKeys,
  token: string,
  options: JWTVerifyOptions,
): Promise<JWTVerifyResult> {
  for await (const key of keys) {
    try {
      return await jwtVerify(token, key, options)
    } catch (error) {
      if (!(error instanceof errors.JWSSignatureVerificationFailed)) throw error
    }
  }
  throw new errors.JWSSignatureVerificationFailed()
}

function verificationMessage(error: unknown): string {
  if (error instanceof errors.JWTExpired) return messages.expired
  if (error instanceof errors.JWTClaimValidationFailed) {
    const hasWrongType = error.reason === 'invalid' && error.claim !== 'exp'
    return (!hasWrongType && claimMessages.get(error.claim)) || messages.malformed
  }
  if (error instanceof errors.JWSInvalid || error instanceof errors.JWTInvalid) return messages.malformed
  if (error instanceof errors.JOSENotSupported) return messages.extension
  // The signature does not match, or was not checked because the key or the algorithm cannot be used.
  return messages.signature
}

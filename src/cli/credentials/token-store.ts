import type { Clock } from '../../base/clock.ts'
import { unexpectedResponse } from '../../client/unreachable.ts'
import type { DeviceTokens } from '../../contract/auth.ts'
import { WbError } from '../../contract/errors.ts'
import type { Keychain } from '../../keychain/keychain.ts'
import { plainLine } from '../terminal/terminal-text.ts'

/** Content of a keychain entry, as JSON. */
export interface StoredTokens {
  readonly token: string
  /** Token for `/auth/device/refresh`; undefined for an API key. */
  readonly refreshToken?: string
  /** Expiration in milliseconds since 1970; undefined if unknown. */
  readonly expiresAt?: number
  /** Time from which the token is renewed, in milliseconds since 1970. */
  readonly renewAt?: number
}

/**
 * Time before expiration at which a token is renewed. A token with a short lifetime is renewed in the last
 * quarter of it.
 */
const renewalLeadMs = 60_000

/** Maximum lifetime of a token: ten years. */
const lifeSecondsMax = 315_360_000

/**
 * Validates tokens from the runtime, and converts them to the stored format.
 *
 * @throws Unreachable  the tokens are malformed
 */
export function parseTokens(issued: DeviceTokens, nowMs: number): StoredTokens {
  const { access_token: token, refresh_token: refreshToken, expires_in: seconds } = issued
  const isValid =
    isToken(token) &&
    (refreshToken === undefined || isToken(refreshToken)) &&
    (seconds === undefined || Number.isFinite(seconds))
  if (!isValid) throw unexpectedResponse('the runtime returned invalid tokens')
  const lifeMs = seconds === undefined ? undefined : Math.min(Math.max(seconds, 0), lifeSecondsMax) * 1_000
  return {
    token,
    ...(refreshToken !== undefined && { refreshToken }),
    ...(lifeMs !== undefined && {
      expiresAt: nowMs + lifeMs,
      renewAt: nowMs + lifeMs - Math.min(renewalLeadMs, lifeMs / 4),
    }),
  }
}

function isToken(value: unknown): boolean {
  return typeof value === 'string' && /^[\x21-\x7e]+$/.test(value)
}

export interface TokenStoreOptions {
  readonly keychain: Pick<Keychain, 'getPassword' | 'setPassword'>
  readonly account: string
  /** Command that signs in again. */
  readonly loginCommand: string
  readonly clock: Clock
  /** Runs work while holding the lock of the user's logins. */
  withLock<T>(work: () => Promise<T>): Promise<T>
  renew(refreshToken: string): Promise<DeviceTokens>
}

/** Service name of all keychain entries. */
export const keychainService = 'workbase'

/** The tokens of a stored login. Renews them before they expire. */
export class TokenStore {
  #tokens: Promise<StoredTokens> | undefined

  constructor(private readonly options: TokenStoreOptions) {}

  /**
   * Returns a token for a request. Renews it if it is about to expire; only one process renews at a time.
   *
   * @param rejected  token that the runtime rejected; it is renewed even if it has not expired
   * @throws KeychainUnavailable
   * @throws WbError unauthorized  the entry is missing, or the login has ended
   */
  async token(rejected?: string): Promise<string> {
    const { clock } = this.options
    this.#tokens ??= this.#load()
    const tokens = await this.#tokens
    const isDue = clock.now() >= (tokens.renewAt ?? tokens.expiresAt ?? Infinity)
    if (!isDue && tokens.token !== rejected) return tokens.token
    if (tokens.refreshToken === undefined) {
      if (clock.now() >= (tokens.expiresAt ?? Infinity)) throw this.#endedError()
      return tokens.token
    }
    const renewed = this.options.withLock(() => this.#renew(tokens))
    // If the renewal fails, keep the old tokens, which may still be valid.
    this.#tokens = renewed.catch(() => tokens)
    return (await renewed).token
  }

  /** Returns the stored tokens without renewing them. */
  async tokens(): Promise<StoredTokens> {
    this.#tokens ??= this.#load()
    return this.#tokens
  }

  /** Renews the tokens, unless another process has done so in the meantime. */
  async #renew(previous: StoredTokens): Promise<StoredTokens> {
    const { keychain, account, clock, renew } = this.options
    const current = await this.#load()
    if (current.token !== previous.token || current.refreshToken === undefined) return current
    try {
      const next = parseTokens(await renew(current.refreshToken), clock.now())
      // Store the new tokens before the lock is released, because the old refresh token may no longer be valid.
      await keychain.setPassword(
        keychainService,
        account,
        JSON.stringify({ ...previousRefreshToken(current), ...next }),
      )
      return next
    } catch (error) {
      if (isLoginEnded(error)) throw this.#endedError(error)
      // The current token is still valid, and the provider may respond again before it expires.
      if (error instanceof WbError && clock.now() < (current.expiresAt ?? 0)) return current
      throw error
    }
  }

  async #load(): Promise<StoredTokens> {
    const { keychain, account } = this.options
    const text = await keychain.getPassword(keychainService, account)
    const tokens = text === null ? undefined : parseStoredTokens(text)
    if (tokens) return tokens
    throw new WbError('unauthorized', 'the keychain no longer contains this login', {
      next: [this.options.loginCommand],
    })
  }

  #endedError(cause?: WbError): WbError {
    const reason = cause ? `: ${plainLine(cause.message)}` : ''
    return new WbError(
      'unauthorized',
      `the login has ended${reason}`,
      { next: [this.options.loginCommand] },
      { cause },
    )
  }
}

/** Returns the old refresh token, for providers that do not issue a new one. */
function previousRefreshToken({ refreshToken }: StoredTokens): Partial<StoredTokens> {
  return refreshToken === undefined ? {} : { refreshToken }
}

function isLoginEnded(error: unknown): error is WbError {
  return error instanceof WbError && (error.status === 400 || error.status === 401)
}

function parseStoredTokens(text: string): StoredTokens | undefined {
  try {
    const tokens = JSON.parse(text) as Partial<StoredTokens> | null
    return typeof tokens?.token === 'string' ? (tokens as StoredTokens) : undefined
  } catch {
    return undefined
  }
}

import type { Clock } from '../../base/clock.ts'
import { parseJson } from '../../base/parse-json.ts'
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
 * A token is renewed this long before it expires. If its lifetime is shorter than four minutes, it is renewed when a
 * quarter of the lifetime remains.
 */
const renewalLeadMs = 60_000

/** Maximum lifetime of a token: ten years. */
const lifetimeSecondsMax = 315_360_000

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
  const lifetimeMs =
    seconds === undefined ? undefined : Math.min(Math.max(seconds, 0), lifetimeSecondsMax) * 1_000
  return {
    token,
    ...(refreshToken !== undefined && { refreshToken }),
    ...(lifetimeMs !== undefined && {
      expiresAt: nowMs + lifetimeMs,
      renewAt: nowMs + lifetimeMs - Math.min(renewalLeadMs, lifetimeMs / 4),
    }),
  }
}

function isToken(value: unknown): boolean {
  return typeof value === 'string' && /^[\x21-\x7e]+$/.test(value)
}

export interface TokenStoreOptions {
  readonly keychain: Pick<Keychain, 'getPassword' | 'setPassword'>
  readonly account: string
  /** Command with which the user can sign in again. */
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
   * Returns a token for a request. Renews the token if it is about to expire. Only one process renews it at a time.
   *
   * @param rejected  token that the runtime rejected; it is renewed even if it has not expired
   * @throws KeychainUnavailable
   * @throws WbError unauthorized  the entry is missing, or the login has ended
   */
  async token(rejected?: string): Promise<string> {
    const { clock } = this.options
    this.#tokens ??= this.#load()
    const tokens = await this.#tokens
    const isRenewalDue = clock.now() >= (tokens.renewAt ?? tokens.expiresAt ?? Infinity)
    if (!isRenewalDue && tokens.token !== rejected) return tokens.token
    if (tokens.refreshToken === undefined) {
      if (clock.now() >= (tokens.expiresAt ?? Infinity)) throw this.#loginEndedError()
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

  /** Renews the tokens, unless another process has renewed them in the meantime. */
  async #renew(previous: StoredTokens): Promise<StoredTokens> {
    const { keychain, account, clock, renew } = this.options
    const current = await this.#load()
    if (current.token !== previous.token || current.refreshToken === undefined) return current
    try {
      const renewed = parseTokens(await renew(current.refreshToken), clock.now())
      // Store the new tokens before the lock is released, because the old refresh token may no longer be valid.
      await keychain.setPassword(
        keychainService,
        account,
        JSON.stringify({ ...previousRefreshToken(current), ...renewed }),
      )
      return renewed
    } catch (error) {
      if (isLoginEnded(error)) throw this.#loginEndedError(error)
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

  #loginEndedError(cause?: WbError): WbError {
    const reason = cause ? `: ${plainLine(cause.message)}` : ''
    return new WbError(
      'unauthorized',
      `the login has ended${reason}`,
      { next: [this.options.loginCommand] },
      { cause },
    )
  }
}

/** Returns the old refresh token, which is kept if the provider does not issue a new one. */
function previousRefreshToken({ refreshToken }: StoredTokens): Partial<StoredTokens> {
  return refreshToken === undefined ? {} : { refreshToken }
}

function isLoginEnded(error: unknown): error is WbError {
  return error instanceof WbError && (error.status === 400 || error.status === 401)
}

function parseStoredTokens(text: string): StoredTokens | undefined {
  const tokens = parseJson(text) as Partial<StoredTokens> | null | undefined
  return typeof tokens?.token === 'string' ? (tokens as StoredTokens) : undefined
}

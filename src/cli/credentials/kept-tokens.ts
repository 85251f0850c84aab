import type { Clock } from '../../base/clock.ts'
import { unexpectedResponse } from '../../client/unreachable.ts'
import type { DeviceTokens } from '../../contract/auth.ts'
import { WbError } from '../../contract/errors.ts'
import type { Keychain } from '../../keychain/keychain.ts'
import { plainLine } from '../terminal/terminal-text.ts'

/** What a keychain entry holds, as JSON. */
export interface Tokens {
  readonly token: string
  /** Good for `/auth/device/refresh` alone; none for a key. */
  readonly refreshToken?: string
  /** When the token ends, in milliseconds since 1970; left out where nothing says so. */
  readonly expiresAt?: number
  /** From when on it is renewed. */
  readonly renewAt?: number
}

/** A token is renewed this long before its end, or in the last quarter of a shorter life. */
const renewBeforeMs = 60_000

/** Nothing is good for longer: ten years. */
const lifeSecondsMax = 315_360_000

/**
 * What the runtime handed out, as it is kept.
 *
 * @throws Unreachable  it is nothing that could be sent
 */
export function tokensOf(issued: DeviceTokens, nowMs: number): Tokens {
  const { access_token: token, refresh_token: refreshToken, expires_in: seconds } = issued
  const isSound =
    isToken(token) &&
    (refreshToken === undefined || isToken(refreshToken)) &&
    (seconds === undefined || Number.isFinite(seconds))
  if (!isSound) throw unexpectedResponse('the runtime handed out tokens that are none')
  const lifeMs = seconds === undefined ? undefined : Math.min(Math.max(seconds, 0), lifeSecondsMax) * 1_000
  return {
    token,
    ...(refreshToken !== undefined && { refreshToken }),
    ...(lifeMs !== undefined && {
      expiresAt: nowMs + lifeMs,
      renewAt: nowMs + lifeMs - Math.min(renewBeforeMs, lifeMs / 4),
    }),
  }
}

function isToken(value: unknown): boolean {
  return typeof value === 'string' && /^[\x21-\x7e]+$/.test(value)
}

export interface KeptTokensParts {
  readonly keychain: Pick<Keychain, 'getPassword' | 'setPassword'>
  readonly account: string
  /** Says how to sign in again. */
  readonly loginLine: string
  readonly clock: Clock
  /** Alone among all processes of this person. */
  alone<T>(work: () => Promise<T>): Promise<T>
  renew(refreshToken: string): Promise<DeviceTokens>
}

/** Name of all entries in keychains. */
export const keychainService = 'workbase'

/** The tokens of a stored login, renewed when they end. */
export class KeptTokens {
  #read: Promise<Tokens> | undefined

  constructor(private readonly parts: KeptTokensParts) {}

  /**
   * A token that is good for a request now. Near its end it is renewed first, by one process for all.
   *
   * @param refused  a token that the runtime did not accept, which is renewed, if it can be, whatever its end
   * @throws KeychainUnavailable
   * @throws WbError unauthorized  the entry is gone, or the login has ended
   */
  async token(refused?: string): Promise<string> {
    const { clock } = this.parts
    this.#read ??= this.#stored()
    const tokens = await this.#read
    const isDue = clock.now() >= (tokens.renewAt ?? tokens.expiresAt ?? Infinity)
    if (!isDue && tokens.token !== refused) return tokens.token
    if (tokens.refreshToken === undefined) {
      if (clock.now() >= (tokens.expiresAt ?? Infinity)) throw this.#ended()
      return tokens.token
    }
    const renewed = this.parts.alone(() => this.#renewed(tokens))
    // What could not be renewed is still what is known.
    this.#read = renewed.catch(() => tokens)
    return (await renewed).token
  }

  /** What is in the keychain. */
  async tokens(): Promise<Tokens> {
    this.#read ??= this.#stored()
    return this.#read
  }

  /** Another process may have been quicker: its token is as good. */
  async #renewed(before: Tokens): Promise<Tokens> {
    const { keychain, account, clock, renew } = this.parts
    const now = await this.#stored()
    if (now.token !== before.token || now.refreshToken === undefined) return now
    try {
      const next = tokensOf(await renew(now.refreshToken), clock.now())
      // Before the lock is let go: the old one is good for nothing any more.
      await keychain.setPassword(keychainService, account, JSON.stringify({ ...kept(now), ...next }))
      return next
    } catch (error) {
      if (isOver(error)) throw this.#ended(error)
      // A provider that is away may be back before the token ends.
      if (error instanceof WbError && clock.now() < (now.expiresAt ?? 0)) return now
      throw error
    }
  }

  async #stored(): Promise<Tokens> {
    const { keychain, account } = this.parts
    const text = await keychain.getPassword(keychainService, account)
    const tokens = text === null ? undefined : parsed(text)
    if (tokens) return tokens
    throw new WbError('unauthorized', 'the keychain no longer holds this login', {
      next: [this.parts.loginLine],
    })
  }

  #ended(cause?: WbError): WbError {
    const why = cause ? `: ${plainLine(cause.message)}` : ''
    return new WbError(
      'unauthorized',
      `the login has ended${why}`,
      { next: [this.parts.loginLine] },
      { cause },
    )
  }
}

/** A provider that does not rotate its refresh tokens sends none. */
function kept({ refreshToken }: Tokens): Partial<Tokens> {
  return refreshToken === undefined ? {} : { refreshToken }
}

function isOver(error: unknown): error is WbError {
  return error instanceof WbError && (error.status === 400 || error.status === 401)
}

function parsed(text: string): Tokens | undefined {
  try {
    const tokens = JSON.parse(text) as Partial<Tokens> | null
    return typeof tokens?.token === 'string' ? (tokens as Tokens) : undefined
  } catch {
    return undefined
  }
}

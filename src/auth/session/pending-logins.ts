import type { Clock } from '../../base/clock.ts'
import { fingerprint } from '../hash.ts'

/** A browser that was sent to the identity provider and did not come back yet. */
export interface PendingLogin {
  readonly codeVerifier: string
  readonly nonce: string
  readonly redirectUri: string
  readonly redirectAfter: string
  /** SHA-256 of the cookie that binds the login to its browser. */
  readonly browserHash: Buffer
}

/**
 * Pending logins by their state. Each replica keeps its own; a shared store can replace this one.
 *
 * @see docs/requirements.md#S5.7-23
 */
export interface PendingLogins {
  /** @param client  address of the browser */
  put(state: string, login: PendingLogin, client: string): Promise<void>
  /** Returns the login of a state, which stays pending; undefined if the state is unknown, used or expired. */
  find(state: string): Promise<PendingLogin | undefined>
  /** Returns the login of a state and removes it, so that only one of several calls gets it. */
  take(state: string): Promise<PendingLogin | undefined>
}

/** How long a login may take. @see docs/requirements.md#S8-11 */
export const pendingLoginSeconds = 600
/** Where more wait, the address with the most gives up its oldest. About 4 MB. */
const pendingLoginsMax = 4_096

/** In the memory of this process. */
export function pendingLogins(clock: Clock): PendingLogins {
  return new MemoryLogins(clock)
}

interface Waiting {
  readonly login: PendingLogin
  readonly client: string
  readonly endsAt: number
}

/**
 * Anybody can begin a login, and need not end it: whoever begins thousands drives out their own, and nobody else's for
 * as long as that one has fewer.
 */
class MemoryLogins implements PendingLogins {
  readonly #clock: Clock
  /** The oldest first. */
  readonly #waiting = new Map<string, Waiting>()
  /** Names of what waits for each address, the oldest first. */
  readonly #byClient = new Map<string, Set<string>>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  async put(state: string, login: PendingLogin, client: string): Promise<void> {
    const now = this.#clock.now()
    this.#dropUntil(now)
    if (this.#waiting.size >= pendingLoginsMax) this.#remove(this.#oldestOfMost())
    const name = fingerprint(state)
    this.#waiting.set(name, { login, client, endsAt: now + pendingLoginSeconds * 1_000 })
    const own = this.#byClient.get(client)
    if (own) own.add(name)
    else this.#byClient.set(client, new Set([name]))
  }

  async find(state: string): Promise<PendingLogin | undefined> {
    return this.#inTime(this.#waiting.get(fingerprint(state)))
  }

  async take(state: string): Promise<PendingLogin | undefined> {
    return this.#inTime(this.#remove(fingerprint(state)))
  }

  #inTime(found: Waiting | undefined): PendingLogin | undefined {
    return found && found.endsAt >= this.#clock.now() ? found.login : undefined
  }

  #dropUntil(now: number): void {
    for (const [name, { endsAt }] of this.#waiting) {
      if (endsAt >= now) return
      this.#remove(name)
    }
  }

  /** Of addresses with equally many, the one that was there first. */
  #oldestOfMost(): string {
    const [first, ...others] = this.#byClient.values()
    const most = others.reduce((found, own) => (own.size > found.size ? own : found), first!)
    return most.values().next().value!
  }

  #remove(name: string): Waiting | undefined {
    const found = this.#waiting.get(name)
    if (!found) return undefined
    this.#waiting.delete(name)
    const own = this.#byClient.get(found.client)!
    own.delete(name)
    if (own.size === 0) this.#byClient.delete(found.client)
    return found
  }
}

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

/** Where logins wait, by their state. One replica keeps its own; a shared store can stand here. @see specification 5.7.7 */
export interface PendingLogins {
  /** @param client  address of the browser */
  put(state: string, login: PendingLogin, client: string): Promise<void>
  /** What waits under a state, which does so no more; undefined when it is unknown, used or too old. */
  take(state: string): Promise<PendingLogin | undefined>
}

/** How long a login may take. @see specification 8 */
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

  async take(state: string): Promise<PendingLogin | undefined> {
    const found = this.#remove(fingerprint(state))
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

import type { Clock } from '../../base/clock.ts'
import { hashSecret } from '../secret-hash.ts'

/** A sign-in of a browser that has not yet returned from the identity provider. */
export interface PendingLogin {
  readonly codeVerifier: string
  readonly nonce: string
  readonly redirectUri: string
  readonly redirectAfter: string
  /** SHA-256 of the cookie that binds the login to its browser. */
  readonly browserHash: Buffer
}

/**
 * Pending logins by state. Each replica stores its own; a shared store can replace this one.
 *
 * @see docs/requirements.md#S5.7-23
 */
export interface PendingLogins {
  /** @param client  IP address of the browser */
  put(state: string, login: PendingLogin, client: string): Promise<void>
  /**
   * Returns the login of a state, and keeps it pending; undefined if the state is unknown, used or expired.
   */
  find(state: string): Promise<PendingLogin | undefined>
  /** Returns the login of a state and removes it, so only one of several calls gets it. */
  take(state: string): Promise<PendingLogin | undefined>
}

/**
 * Time limit for a login, in seconds.
 *
 * @see docs/requirements.md#S8-11
 */
export const pendingLoginSeconds = 600
/**
 * Maximum number of pending logins, about 4 MB. Above it, the oldest login of the address with the most is
 * removed.
 */
const pendingLoginsMax = 4_096

/** Creates a store in the memory of this process. */
export function createPendingLogins(clock: Clock): PendingLogins {
  return new MemoryPendingLogins(clock)
}

interface StoredPendingLogin {
  readonly login: PendingLogin
  readonly client: string
  readonly expiresAtMs: number
}

/**
 * Pending logins in memory. Anyone can start a login without completing it. An address that starts thousands
 * evicts its own logins, not those of addresses with fewer.
 */
class MemoryPendingLogins implements PendingLogins {
  readonly #clock: Clock
  /** Logins by hash of the state, the oldest first. */
  readonly #byState = new Map<string, StoredPendingLogin>()
  /** Hashes of the states of each address, the oldest first. */
  readonly #byClient = new Map<string, Set<string>>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  async put(state: string, login: PendingLogin, client: string): Promise<void> {
    const now = this.#clock.now()
    this.#removeExpired(now)
    if (this.#byState.size >= pendingLoginsMax) this.#removeByHash(this.#loginToEvict())
    const stateHash = hashSecret(state)
    this.#byState.set(stateHash, { login, client, expiresAtMs: now + pendingLoginSeconds * 1_000 })
    const ofClient = this.#byClient.get(client)
    if (ofClient) ofClient.add(stateHash)
    else this.#byClient.set(client, new Set([stateHash]))
  }

  async find(state: string): Promise<PendingLogin | undefined> {
    return this.#unlessExpired(this.#byState.get(hashSecret(state)))
  }

  async take(state: string): Promise<PendingLogin | undefined> {
    return this.#unlessExpired(this.#removeByHash(hashSecret(state)))
  }

  #unlessExpired(found: StoredPendingLogin | undefined): PendingLogin | undefined {
    return found && found.expiresAtMs >= this.#clock.now() ? found.login : undefined
  }

  #removeExpired(now: number): void {
    for (const [name, { expiresAtMs }] of this.#byState) {
      if (expiresAtMs >= now) return
      this.#removeByHash(name)
    }
  }

  /**
   * Returns the oldest login of the address with the most. Among equal addresses, the one that started first
   * is chosen.
   */
  #loginToEvict(): string {
    const [first, ...others] = this.#byClient.values()
    const most = others.reduce((found, own) => (own.size > found.size ? own : found), first!)
    return most.values().next().value!
  }

  #removeByHash(stateHash: string): StoredPendingLogin | undefined {
    const found = this.#byState.get(stateHash)
    if (!found) return undefined
    this.#byState.delete(stateHash)
    const ofClient = this.#byClient.get(found.client)!
    ofClient.delete(stateHash)
    if (ofClient.size === 0) this.#byClient.delete(found.client)
    return found
  }
}

import type { Clock } from '../../base/clock.ts'
import { hashSecret } from '../secret-hash.ts'

/** A browser sign-in that has started, but has not been completed at the identity provider. */
export interface PendingLogin {
  readonly codeVerifier: string
  readonly nonce: string
  readonly redirectUri: string
  readonly redirectAfter: string
  /** SHA-256 of the cookie that binds the login to its browser. */
  readonly browserHash: Buffer
}

/**
 * Pending logins by state. The current implementation stores only the logins that this process started. The functions
 * are asynchronous, so that an implementation can use a shared store.
 *
 * @see docs/requirements.md#S5.7-23
 */
export interface PendingLogins {
  /** @param client  IP address of the browser */
  put(state: string, login: PendingLogin, client: string): Promise<void>
  /**
   * Returns the login of a state without removing it; undefined if the state is unknown, used or expired.
   */
  find(state: string): Promise<PendingLogin | undefined>
  /** Removes and returns the login of a state. Only one of several concurrent calls gets the login. */
  take(state: string): Promise<PendingLogin | undefined>
}

/**
 * Time limit for a login, in seconds.
 *
 * @see docs/requirements.md#S8-11
 */
export const pendingLoginSeconds = 600
/**
 * Maximum number of pending logins, which take about 4 MB. When it is reached, the oldest login of the IP address with
 * the most logins is removed.
 */
const pendingLoginsMax = 4_096

/** Creates a store of pending logins in the memory of this process. */
export function createPendingLogins(clock: Clock): PendingLogins {
  return new MemoryPendingLogins(clock)
}

interface StoredPendingLogin {
  readonly login: PendingLogin
  readonly client: string
  readonly expiresAtMs: number
}

/**
 * Pending logins in memory. Anyone can start logins without completing them. An IP address that starts thousands of
 * logins can cause the removal only of logins from the same address.
 */
class MemoryPendingLogins implements PendingLogins {
  readonly #clock: Clock
  /** Logins by the hash of their state, the oldest first. */
  readonly #byState = new Map<string, StoredPendingLogin>()
  /** Hashed states by IP address, the oldest first. */
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
    const clientHashes = this.#byClient.get(client)
    if (clientHashes) clientHashes.add(stateHash)
    else this.#byClient.set(client, new Set([stateHash]))
  }

  async find(state: string): Promise<PendingLogin | undefined> {
    return this.#unlessExpired(this.#byState.get(hashSecret(state)))
  }

  async take(state: string): Promise<PendingLogin | undefined> {
    return this.#unlessExpired(this.#removeByHash(hashSecret(state)))
  }

  #unlessExpired(stored: StoredPendingLogin | undefined): PendingLogin | undefined {
    return stored && stored.expiresAtMs >= this.#clock.now() ? stored.login : undefined
  }

  #removeExpired(now: number): void {
    for (const [stateHash, { expiresAtMs }] of this.#byState) {
      if (expiresAtMs >= now) return
      this.#removeByHash(stateHash)
    }
  }

  /**
   * Returns the hashed state of the oldest login of the IP address with the most logins. If several addresses have the
   * most logins, uses the first one in the map.
   */
  #loginToEvict(): string {
    const [first, ...others] = this.#byClient.values()
    const largest = others.reduce((max, hashes) => (hashes.size > max.size ? hashes : max), first!)
    return largest.values().next().value!
  }

  #removeByHash(stateHash: string): StoredPendingLogin | undefined {
    const stored = this.#byState.get(stateHash)
    if (!stored) return undefined
    this.#byState.delete(stateHash)
    const clientHashes = this.#byClient.get(stored.client)!
    clientHashes.delete(stateHash)
    if (clientHashes.size === 0) this.#byClient.delete(stored.client)
    return stored
  }
}

import { LRUCache } from 'lru-cache'
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
  put(state: string, login: PendingLogin): Promise<void>
  /** What waits under a state, which does so no more; undefined when it is unknown, used or too old. */
  take(state: string): Promise<PendingLogin | undefined>
}

/** How long a login may take. @see specification 8 */
export const pendingLoginSeconds = 600
/** The oldest give way. */
export const pendingLoginsMax = 1_024

/** In the memory of this process. */
export function pendingLogins(clock: Clock): PendingLogins {
  const waiting = new LRUCache<string, PendingLogin>({
    max: pendingLoginsMax,
    ttl: pendingLoginSeconds * 1000,
    ttlResolution: 0,
    perf: clock,
  })
  return {
    async put(state, login) {
      waiting.set(fingerprint(state), login)
    },
    async take(state) {
      const key = fingerprint(state)
      const login = waiting.get(key)
      waiting.delete(key)
      return login
    },
  }
}

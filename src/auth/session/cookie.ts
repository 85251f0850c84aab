import type { Site } from '../../access/caller.ts'
import type { Seal } from './seal.ts'

/** What a browser's session is made of. */
export interface StoredSession {
  readonly accessToken: string
  /** Seconds since 1970. */
  readonly issuedAt: number
  readonly refreshToken?: string
}

/** Sessions in the cookies of a browser. @see specification 2.5, security decision 12 */
export class SessionCookies {
  constructor(readonly parts: { seal: Seal; name: string }) {}

  /** @returns undefined when there is none that holds */
  read(_site: Site): StoredSession | undefined {
    throw new Error('not written')
  }
}

import type { BrowserSite, Caller } from '../../access/caller.ts'
import type { Clock } from '../../base/clock.ts'
import { type ErrorCode, WbError } from '../../contract/errors.ts'
import { hashSecret } from '../secret-hash.ts'
import { sessionFromTokens, sessionLifetimeSeconds } from './browser-login.ts'
import type { IssuedTokens, TokenRenewer } from './issued-tokens.ts'
import type { SessionCookies, StoredSession } from './session-cookies.ts'
import { MemoryRenewals } from './shared-renewals.ts'
import { type SignInTrail, unverifiedSubject } from './sign-in-trail.ts'

/** A renewed session. */
export interface RefreshedSession {
  /** Expiry of the access token in seconds since 1970; null for an opaque token. */
  readonly expiresAtSeconds: number | null
  /** `Set-Cookie` lines. */
  readonly cookies: readonly string[]
}

interface RenewedTokens extends IssuedTokens {
  readonly session: StoredSession
}

export interface BrowserSessionDependencies {
  readonly cookies: SessionCookies
  readonly renewer: TokenRenewer
  readonly trail: SignInTrail
  readonly clock: Clock
}

/** Codes of the errors that end a session. */
const sessionEndingCodes: readonly ErrorCode[] = [
  'no_refresh_token',
  'refresh_failed',
  'token_validation_failed',
]

/**
 * Renews and ends browser sessions.
 *
 * @see docs/requirements.md#S5.7-17, docs/requirements.md#S5.7-22
 */
export class BrowserSession {
  readonly #renewals: MemoryRenewals<RenewedTokens>

  constructor(private readonly deps: BrowserSessionDependencies) {
    this.#renewals = new MemoryRenewals({
      clock: deps.clock,
      keyOf: ({ session }) => sessionKey(session),
      lifetimeSeconds: ({ tokens }) => tokens.expiresInSeconds,
    })
  }

  /**
   * Renews the session. Concurrent requests, for example from two tabs, get the same session.
   *
   * @throws no_refresh_token, refresh_failed, token_validation_failed  when the session is over; its cookies
   *   are cleared
   * @throws identity_provider_unavailable, session_too_large           when renewal failed; the cookies are
   *   unchanged
   */
  async refresh(caller: Caller): Promise<RefreshedSession> {
    const { cookies, trail } = this.deps
    const { site } = caller
    const session = cookies.read(site)
    const step = { action: 'auth.refresh', subjectId: session?.subject } as const
    const { verified, lines } = await trail
      .recordFailures(caller, step, async () => {
        const { tokens, verified, session: next } = await this.#renew(session)
        return { verified, lines: cookies.write(site, next, sessionLifetimeSeconds(tokens)) }
      })
      .catch(error => this.#end(site, error))
    trail.note(caller, step.action, verified.subject)
    return { expiresAtSeconds: verified.expiresAtSeconds, cookies: lines }
  }

  async #renew(session: StoredSession | undefined): Promise<RenewedTokens> {
    const refreshToken = session?.refreshToken
    if (!session || refreshToken === undefined)
      throw new WbError('no_refresh_token', 'there is no session to renew')
    return this.#renewals.once(sessionKey(session), async () => {
      const { renewer, clock } = this.deps
      const issued = await renewer.renew(refreshToken, session.subject)
      return {
        ...issued,
        session: { refreshToken, ...sessionFromTokens(issued.tokens, issued.verified, clock) },
      }
    })
  }

  /** Throws the given error. If the error ends the session, adds the headers that clear the cookies. */
  #end(site: BrowserSite, error: unknown): never {
    if (!(error instanceof WbError) || !sessionEndingCodes.includes(error.code)) throw error
    const headers = { 'set-cookie': this.deps.cookies.clear(site) }
    throw new WbError(error.code, error.message, { ...error.facts, headers })
  }

  /**
   * Ends the session in this runtime, but not at the identity provider. Returns the `Set-Cookie` lines that clear
   * the cookies.
   */
  end(caller: Caller): readonly string[] {
    const { cookies, trail } = this.deps
    const session = cookies.read(caller.site)
    if (session) trail.note(caller, 'auth.logout', unverifiedSubject(session.subject))
    return cookies.clear(caller.site)
  }
}

/**
 * Returns the key under which renewals of a session are shared. It includes the access token, because some
 * providers never change the refresh token.
 */
function sessionKey({ accessToken, refreshToken }: StoredSession): string {
  return hashSecret([accessToken, refreshToken].join('\n'))
}

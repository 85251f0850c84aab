import { timingSafeEqual } from 'node:crypto'
import type { BrowserSite, Caller } from '../../access/caller.ts'
import type { Clock } from '../../base/clock.ts'
import { randomOctets } from '../../base/id.ts'
import { authorizationErrors } from '../../contract/auth.ts'
import { WbError } from '../../contract/errors.ts'
import type { VerifiedToken } from '../authenticate.ts'
import type { JwtVerifier } from '../oidc/jwt-verifier.ts'
import type { OidcClient, ProviderTokens } from '../oidc/protocol.ts'
import type { IdentityProvider } from '../oidc/provider.ts'
import { sha256Bytes } from '../secret-hash.ts'
import { clearCookieLine, cookieValues, needsSecureCookies, setCookieLine } from './cookie-header.ts'
import { verifyIssuedTokens } from './issued-tokens.ts'
import { type PendingLogin, type PendingLogins, pendingLoginSeconds } from './pending-logins.ts'
import { safeRedirectPath } from './safe-redirect.ts'
import type { SessionCookies, StoredSession } from './session-cookies.ts'
import type { SignInTrail } from './sign-in-trail.ts'

/** A response that redirects the browser and sets cookies. */
export interface Redirection {
  readonly location: string
  /** `Set-Cookie` lines. */
  readonly cookies: readonly string[]
}

/**
 * Query parameters that the identity provider adds to the callback URL.
 *
 * @see RFC 6749 4.1.2, RFC 9207
 */
export interface CallbackQuery {
  readonly code?: string | undefined
  readonly state?: string | undefined
  readonly error?: string | undefined
  readonly iss?: string | undefined
}

export interface BrowserLoginDependencies {
  readonly client: Pick<OidcClient, 'redirectPath' | 'sessionCookieName'>
  readonly provider: Pick<IdentityProvider, 'authorizationUrl' | 'exchangeCode'>
  readonly verifier: Pick<JwtVerifier, 'check'>
  readonly cookies: SessionCookies
  readonly pending: PendingLogins
  readonly trail: SignInTrail
  readonly clock: Clock
}

const secretBytes = 32

/**
 * Default lifetime of a session in seconds, for providers that do not specify a lifetime.
 *
 * @see docs/requirements.md#S2.5-05
 */
const sessionSecondsDefault = 3_600

/**
 * Browser sign-in with the authorization code flow.
 *
 * @see docs/requirements.md#browser-login, docs/security.md#rule-12, RFC 7636
 */
export class BrowserLogin {
  constructor(private readonly deps: BrowserLoginDependencies) {}

  /**
   * Starts a sign-in, and returns the redirect to the identity provider.
   *
   * @throws identity_provider_unavailable
   */
  async start(
    redirectAfter: string | undefined,
    { site, client: clientAddress }: Caller,
  ): Promise<Redirection> {
    const { client, provider, pending } = this.deps
    const redirectUri = new URL(client.redirectPath, site.origin).href
    const [state, nonce, codeVerifier, browserSecret] = [
      randomSecret(),
      randomSecret(),
      randomSecret(),
      randomSecret(),
    ]
    const codeChallenge = sha256Bytes(codeVerifier).toString('base64url')
    const address = await provider.authorizationUrl({ redirectUri, state, nonce, codeChallenge })
    const login: PendingLogin = {
      codeVerifier,
      nonce,
      redirectUri,
      redirectAfter: safeRedirectPath(redirectAfter),
      browserHash: sha256Bytes(browserSecret),
    }
    await pending.put(state, login, clientAddress)
    const { name, ...scope } = this.#bindingCookie(state, redirectUri, site)
    const line = setCookieLine(name, browserSecret, { ...scope, maxAgeSeconds: pendingLoginSeconds })
    return { location: address.href, cookies: [line] }
  }

  /**
   * Completes a sign-in after the redirect from the identity provider.
   *
   * @throws invalid_callback, invalid_state, token_exchange_failed, token_validation_failed,
   *   session_too_large
   * @throws access_denied              or another code that the provider sent
   * @throws identity_provider_unavailable
   * @throws control_plane_unavailable  when the login cannot be recorded
   */
  finish(query: CallbackQuery, caller: Caller): Promise<Redirection> {
    return this.deps.trail.recordFailures(caller, { action: 'auth.login' }, () => this.#finish(query, caller))
  }

  async #finish(query: CallbackQuery, caller: Caller): Promise<Redirection> {
    const { provider, verifier, cookies, trail, clock } = this.deps
    const state = requireState(query)
    const login = await this.#takePending(state, caller.site)
    const { redirectUri, nonce, codeVerifier } = login
    const callbackUrl = callbackUrlWith(redirectUri, query)
    const tokens = await provider.exchangeCode({ callbackUrl, redirectUri, state, nonce, codeVerifier })
    if ('errorCode' in tokens)
      throw new WbError('token_exchange_failed', 'the identity provider rejected the sign-in', {
        ...tokens,
      })
    const rejection = { code: 'token_validation_failed', status: 502 } as const
    const { verified } = await verifyIssuedTokens(verifier, tokens, rejection)
    const session = cookies.write(
      caller.site,
      sessionFromTokens(tokens, verified, clock),
      sessionLifetimeSeconds(tokens),
    )
    await trail.recordOrThrow(caller, 'auth.login', verified.subject)
    const { name, ...scope } = this.#bindingCookie(state, redirectUri, caller.site)
    return { location: login.redirectAfter, cookies: [...session, clearCookieLine(name, scope)] }
  }

  /**
   * Removes and returns the pending login of a state. If another browser started it, the login stays pending for
   * that browser.
   *
   * @throws invalid_state  when no login is pending for the state, or another browser started it
   */
  async #takePending(state: string, site: BrowserSite): Promise<PendingLogin> {
    const { pending } = this.deps
    const login = await pending.find(state)
    if (!login) throw loginNotFound()
    const { name } = this.#bindingCookie(state, login.redirectUri, site)
    const [browserSecret, ...others] = cookieValues(site.cookies, name)
    if (
      browserSecret === undefined ||
      others.length > 0 ||
      !timingSafeEqual(sha256Bytes(browserSecret), login.browserHash)
    )
      throw new WbError('invalid_state', 'the sign-in was started by another browser')
    if (!(await pending.take(state))) throw loginNotFound()
    return login
  }

  /**
   * Returns the name and scope of the cookie that binds a login to its browser. Each login has a separate cookie, so
   * two tabs can sign in at the same time.
   */
  #bindingCookie(state: string, redirectUri: string, { origin }: BrowserSite) {
    const { sessionCookieName } = this.deps.client
    // Browsers accept a cookie with this prefix only for the path `/`.
    const path = sessionCookieName.startsWith('__Host-') ? '/' : new URL(redirectUri).pathname
    return {
      name: `${sessionCookieName}_login_${state.slice(0, 12)}`,
      path,
      secure: needsSecureCookies(origin),
    }
  }
}

/** Returns the session to store for tokens from the provider. */
export function sessionFromTokens(
  tokens: ProviderTokens,
  verified: VerifiedToken,
  clock: Clock,
): StoredSession {
  const { accessToken, refreshToken } = tokens
  return {
    accessToken,
    subject: verified.subject.id,
    issuedAt: Math.floor(clock.now() / 1000),
    ...(refreshToken !== undefined && { refreshToken }),
  }
}

/** Returns the lifetime of a browser session, in seconds. */
export function sessionLifetimeSeconds({ expiresInSeconds = sessionSecondsDefault }: ProviderTokens): number {
  return Math.max(0, Math.floor(expiresInSeconds))
}

/**
 * Returns the state of a successful callback.
 *
 * @throws access_denied     or another known code that the provider sent
 * @throws invalid_callback  when the provider sent an unknown code, or a required parameter is missing
 */
function requireState({ error, code, state }: CallbackQuery): string {
  if (error !== undefined) {
    const errorCode = authorizationErrors.find(known => known === error) ?? 'invalid_callback'
    throw new WbError(errorCode, 'the identity provider reported an error instead of a sign-in')
  }
  if (!code || !state) throw new WbError('invalid_callback', 'the query must contain code and state')
  return state
}

function callbackUrlWith(redirectUri: string, query: CallbackQuery): URL {
  const url = new URL(redirectUri)
  for (const name of ['code', 'state', 'iss'] as const) {
    const value = query[name]
    if (value !== undefined) url.searchParams.set(name, value)
  }
  return url
}

function loginNotFound(): WbError {
  return new WbError('invalid_state', 'no sign-in is pending for this callback')
}

function randomSecret(): string {
  return randomOctets(secretBytes).toString('base64url')
}

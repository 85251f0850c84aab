import type { BrowserSite } from '../access/caller.ts'
import {
  type AuthContext,
  anonymousContext,
  type CredentialTerms,
  type Subject,
  verifiedContext,
} from '../access/subject.ts'
import type { Config } from '../config/schema.ts'
import { WbError } from '../contract/errors.ts'
import { bearerToken } from './bearer-token.ts'

/** The credentials in a request, and the facts about the request that are needed to verify them. */
export interface RequestCredentials {
  readonly authorization: string | null
  readonly cookie: string | null
  /** IP address of the client; for IPv6, its /64 network. Empty for requests from this process. */
  readonly client: string
  readonly requestId: string
  /** Returns the origin that the browser uses for this runtime. Called only if the request has a cookie. */
  siteOrigin(): string
}

/** Authenticates the caller of a request. */
export type Authenticate = (credentials: RequestCredentials) => Promise<AuthContext> | AuthContext

/** Verified facts about a token. */
export interface VerifiedToken extends Omit<CredentialTerms, 'canRefresh'> {
  readonly subject: Subject
}

/** Verifies tokens of one format. */
export interface TokenVerifier {
  /**
   * @returns undefined if the token has another format
   * @throws unauthorized  when the token is not valid
   * @throws rate_limited  when too many tokens from this client are waiting to be verified
   */
  verify(token: string, credentials: RequestCredentials): Promise<VerifiedToken> | undefined
}

/** Reads sessions from browser cookies. */
export interface SessionReader {
  read(site: BrowserSite): { readonly accessToken: string; readonly refreshToken?: string } | undefined
}

export interface AuthenticateDependencies extends Pick<Config['auth'], 'mode' | 'anonymousPolicy'> {
  /** Verifiers in the order in which they are tried. */
  readonly verifiers: readonly TokenVerifier[]
  /** Reader of browser sessions; undefined if browsers cannot sign in. */
  readonly sessions: SessionReader | undefined
}

/**
 * Returns the authentication function for a configuration. It reads the token from the `Authorization` header or, if
 * there is no such header, from the session cookies.
 *
 * @see docs/requirements.md#S5.1-03, docs/requirements.md#modes
 */
export function createAuthenticate(deps: AuthenticateDependencies): Authenticate {
  const { mode, verifiers, sessions } = deps
  const anonymous = anonymousContext(mode)

  function authenticateAnonymous(): AuthContext {
    if (deps.anonymousPolicy === 'allow') return anonymous
    throw new WbError('unauthorized', 'this runtime rejects requests without credentials')
  }

  async function authenticateToken(
    token: string,
    credentials: RequestCredentials,
    canRefresh: boolean,
  ): Promise<AuthContext> {
    for (const verifier of verifiers) {
      const verified = await verifier.verify(token, credentials)
      if (!verified) continue
      const { subject, ...terms } = verified
      return verifiedContext(mode, subject, { ...terms, canRefresh })
    }
    throw new WbError('unauthorized', 'the token does not match any configured authentication method')
  }

  if (mode === 'disabled')
    return ({ authorization }) => (authorization === null ? authenticateAnonymous() : anonymous)
  return credentials => {
    const { authorization, cookie } = credentials
    if (authorization !== null) return authenticateToken(bearerToken(authorization), credentials, false)
    const session =
      cookie === null ? undefined : sessions?.read({ origin: credentials.siteOrigin(), cookies: cookie })
    if (!session) return authenticateAnonymous()
    return authenticateToken(session.accessToken, credentials, session.refreshToken !== undefined)
  }
}

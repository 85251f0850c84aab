import type { BrowserOrigin } from '../access/caller.ts'
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

/** The credentials that a request contains, and the context to check them in. */
export interface RequestCredentials {
  readonly authorization: string | null
  readonly cookie: string | null
  /** IP address of the client, an IPv6 address as its /64; empty for requests of this process. */
  readonly client: string
  readonly requestId: string
  /** Returns the origin at which a browser reaches the runtime. Called only if the request has a cookie. */
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
   * @throws rate_limited  when too many unverified tokens of this client are waiting
   */
  verify(token: string, credentials: RequestCredentials): Promise<VerifiedToken> | undefined
}

/** Reads sessions from the cookies of browsers. */
export interface SessionReader {
  read(site: BrowserOrigin): { readonly accessToken: string; readonly refreshToken?: string } | undefined
}

export interface AuthenticateParts extends Pick<Config['auth'], 'mode' | 'anonymousPolicy'> {
  /** Verifiers in the order in which they are tried. */
  readonly verifiers: readonly TokenVerifier[]
  /** Reader of browser sessions; undefined if browsers cannot sign in. */
  readonly sessions: SessionReader | undefined
}

/**
 * Returns the authentication function for a configuration. It reads the `Authorization` header, or if that is
 * absent, the bearer token in a session cookie.
 *
 * @see docs/requirements.md#S5.1-03, docs/requirements.md#modes
 */
export function createAuthenticate(parts: AuthenticateParts): Authenticate {
  const { mode, verifiers, sessions } = parts
  const withoutCredential = anonymousContext(mode)

  function withoutToken(): AuthContext {
    if (parts.anonymousPolicy === 'allow') return withoutCredential
    throw new WbError('unauthorized', 'this runtime rejects requests without credentials')
  }

  async function fromToken(
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
    throw new WbError('unauthorized', 'the token matches no configured scheme')
  }

  if (mode === 'disabled')
    return ({ authorization }) => (authorization === null ? withoutToken() : withoutCredential)
  return credentials => {
    const { authorization, cookie } = credentials
    if (authorization !== null) return fromToken(bearerToken(authorization), credentials, false)
    const session =
      cookie === null ? undefined : sessions?.read({ origin: credentials.siteOrigin(), cookies: cookie })
    if (!session) return withoutToken()
    return fromToken(session.accessToken, credentials, session.refreshToken !== undefined)
  }
}

import type { Site } from '../access/caller.ts'
import { type AuthContext, anonymousIn, type Session, type Subject, verifiedAs } from '../access/subject.ts'
import type { Config } from '../config/schema.ts'
import { WbError } from '../contract/errors.ts'
import { bearerToken } from './bearer.ts'

/** What a request shows of who it is from. */
export interface Presented {
  readonly authorization: string | null
  readonly cookie: string | null
  /** IP address of the client, an IPv6 one as its /64; empty within this process. */
  readonly address: string
  readonly requestId: string
  /** Scheme, host and port under which a browser sees the runtime; asked for only where a cookie is read. */
  siteOrigin(): string
}

/** How requests prove who they are. */
export type Authenticate = (presented: Presented) => Promise<AuthContext> | AuthContext

/** What a verifier found out about a token. */
export interface Verified extends Omit<Session, 'canRefresh'> {
  readonly subject: Subject
}

/** Verifies tokens of one kind. */
export interface Verifier {
  /**
   * @returns undefined for a token that has the shape of another kind
   * @throws unauthorized  the token does not hold
   * @throws rate_limited  too many unproven tokens of this address wait
   */
  verify(token: string, presented: Presented): Promise<Verified> | undefined
}

/** Where the bearer token of a browser lies. */
export interface Sessions {
  read(site: Site): { readonly accessToken: string; readonly refreshToken?: string } | undefined
}

export interface AuthenticatorParts extends Pick<Config['auth'], 'mode' | 'anonymousPolicy'> {
  /** In the order in which they look at a token. */
  readonly verifiers: readonly Verifier[]
  /** Where browsers can sign in. */
  readonly sessions: Sessions | undefined
}

/**
 * How requests prove who they are by this configuration: by the `Authorization` header, else by a session cookie,
 * which stands for a bearer token.
 *
 * @see docs/requirements.md#S5.1-03, docs/requirements.md#modes
 */
export function authenticator(parts: AuthenticatorParts): Authenticate {
  const { mode, verifiers, sessions } = parts
  const stranger = anonymousIn(mode)

  function withoutToken(): AuthContext {
    if (parts.anonymousPolicy === 'allow') return stranger
    throw new WbError('unauthorized', 'this runtime refuses requests without credentials')
  }

  async function verified(token: string, presented: Presented, canRefresh: boolean): Promise<AuthContext> {
    for (const verifier of verifiers) {
      const found = await verifier.verify(token, presented)
      if (!found) continue
      const { subject, ...session } = found
      return verifiedAs(mode, subject, { ...session, canRefresh })
    }
    throw new WbError('unauthorized', 'the token matches no configured scheme')
  }

  if (mode === 'disabled') return ({ authorization }) => (authorization === null ? withoutToken() : stranger)
  return presented => {
    const { authorization, cookie } = presented
    if (authorization !== null) return verified(bearerToken(authorization), presented, false)
    const session =
      cookie === null ? undefined : sessions?.read({ origin: presented.siteOrigin(), cookies: cookie })
    if (!session) return withoutToken()
    return verified(session.accessToken, presented, session.refreshToken !== undefined)
  }
}

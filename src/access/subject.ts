import { inBoth, type Role, type Scope } from '../contract/scopes.ts'

/**
 * A verified caller. Null scopes mean every scope, null workspace scopes every workspace.
 *
 * @see docs/requirements.md#S2.1-08
 */
export interface Subject {
  readonly id: string
  readonly label: string | null
  readonly type: 'apiKey' | 'oidc' | 'bootstrap' | 'system'
  readonly workspaceScopes: readonly string[] | null
  readonly scopes: readonly Scope[] | null
  /** Scopes that an access token names, which limit those of its subject; absent if it names none. */
  readonly tokenScopes?: readonly Scope[]
  /** The role that a claim of an OIDC token was mapped to; null when roles are not mapped. */
  readonly role: Role | null
  /** Who it is under row-level access. */
  readonly principalId: string | null
  /** Keys that it mints last at most this long, in milliseconds; null is for ever. @see docs/security.md#rule-7 */
  readonly grantSpanMs: number | null
}

/** What the auth step knows of a token beside its subject. */
export interface Session {
  /** End of a JWT, in seconds since 1970; null for opaque tokens. */
  readonly expiresAtSeconds: number | null
  /** The token came in a cookie that holds a refresh token too. */
  readonly canRefresh: boolean
  /** End of an API key, ISO-8601 in UTC, null for never; left out for other tokens. */
  readonly keyExpiresAt?: string | null
}

/** What is said of requests, and by this file only: the class is not exported, and a copy of an instance is none. */
class Context {
  declare protected readonly brand: true
  /** A verifier matched the presented token. */
  readonly authenticated: boolean
  /** No token was presented, or nothing is verified, and that was allowed. */
  readonly anonymous: boolean

  constructor(
    readonly mode: 'disabled' | 'apiKey' | 'oidc' | 'any',
    readonly subject: Subject | null,
    readonly session: Session,
  ) {
    this.authenticated = subject !== null
    this.anonymous = subject === null
  }
}

/** The result of authenticating a request. @see docs/requirements.md#auth-context */
export type AuthContext = Context

const noSession: Session = { expiresAtSeconds: null, canRefresh: false }

/** A caller that nobody asked who it is. */
export function anonymousIn(mode: AuthContext['mode']): AuthContext {
  return new Context(mode, null, noSession)
}

/** A caller that a verifier vouches for. */
export function verifiedAs(
  mode: AuthContext['mode'],
  subject: Subject,
  session: Session = noSession,
): AuthContext {
  return new Context(mode, subject, session)
}

/** Who a caller is, in one word that nobody else has; null where nobody asked. */
export function subjectName({ subject }: AuthContext): string | null {
  return subject && `${subject.type}:${subject.id}`
}

/** Creator of a record. */
export interface Creator {
  /** Name of the subject, as `subjectName` returns it; null for an anonymous caller, absent on old records. */
  readonly createdBy?: string | null
  readonly ownerPrincipalId: string | null
}

/** Returns true if a caller, or another credential of the same principal, created a record. */
export function isCreator(auth: AuthContext, { createdBy, ownerPrincipalId }: Creator): boolean {
  const name = subjectName(auth)
  const principalId = auth.subject?.principalId ?? null
  return (name !== null && name === createdBy) || (principalId !== null && principalId === ownerPrincipalId)
}

/** Returns the caller with its role in one workspace. The scopes of its token still limit it. */
export function inRole(auth: AuthContext, role: Role, scopes: readonly Scope[]): AuthContext {
  const { mode, subject, session } = auth
  if (!subject) return auth
  const { tokenScopes } = subject
  const limited = tokenScopes ? inBoth(scopes, tokenScopes) : scopes
  return new Context(mode, { ...subject, role, scopes: limited }, session)
}

/**
 * Who owns the data directory, in the process that opened it. No request over a connection becomes this.
 *
 * @param id  names the process in the audit trail
 * @see docs/security.md#rule-8
 */
export function operatorOf(mode: AuthContext['mode'], id: string): AuthContext {
  return verifiedAs(mode, {
    id,
    label: 'operator',
    type: 'system',
    workspaceScopes: null,
    scopes: null,
    role: null,
    principalId: null,
    grantSpanMs: null,
  })
}

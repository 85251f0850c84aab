import { commonScopes, type Role, type Scope } from '../contract/scopes.ts'

/**
 * The verified identity of a caller. If `scopes` is null, it has all scopes. If `workspaceScopes` is null, it has
 * access to all workspaces.
 *
 * @see docs/requirements.md#S2.1-08
 */
export interface Subject {
  readonly id: string
  readonly label: string | null
  readonly type: 'apiKey' | 'oidc' | 'bootstrap' | 'system'
  readonly workspaceScopes: readonly string[] | null
  readonly scopes: readonly Scope[] | null
  /** Scopes in the access token, which limit the scopes of the subject; absent if the token contains no scopes. */
  readonly tokenScopes?: readonly Scope[]
  /** Role that a claim of an OIDC token is mapped to; null if roles are not mapped. */
  readonly role: Role | null
  /** ID of the principal under row-level access. */
  readonly principalId: string | null
  /**
   * Maximum lifetime of the API keys that this subject creates, in milliseconds; null for unlimited.
   *
   * @see docs/security.md#rule-7
   */
  readonly keyLifetimeMaxMs: number | null
}

/** Properties of a token other than its subject. */
export interface CredentialTerms {
  /** Expiry of a JWT, in seconds since 1970; null for opaque tokens. */
  readonly expiresAtSeconds: number | null
  /** True if the token came in a cookie that also contains a refresh token. */
  readonly canRefresh: boolean
  /** Expiry of an API key as an ISO 8601 timestamp in UTC, null for never; absent for other tokens. */
  readonly keyExpiresAt?: string | null
}

/**
 * Result of authentication. Only this file can create instances: the class is not exported, and the compiler rejects
 * other objects, because they lack the brand.
 */
class AuthenticationResult {
  declare protected readonly brand: true
  /** True if a verifier accepted the token. */
  readonly authenticated: boolean
  /** True if the request was accepted without authentication. */
  readonly anonymous: boolean

  constructor(
    readonly mode: 'disabled' | 'apiKey' | 'oidc' | 'any',
    readonly subject: Subject | null,
    readonly session: CredentialTerms,
    /** ID of the principal that the caller views the workspace as; null if it views the workspace as itself. */
    readonly viewedPrincipalId: string | null = null,
  ) {
    this.authenticated = subject !== null
    this.anonymous = subject === null
  }
}

/**
 * The result of authenticating a request.
 *
 * @see docs/requirements.md#auth-context
 */
export type AuthContext = AuthenticationResult

const noTerms: CredentialTerms = { expiresAtSeconds: null, canRefresh: false }

/** Returns a caller that was accepted without authentication. */
export function anonymousContext(mode: AuthContext['mode']): AuthContext {
  return new AuthenticationResult(mode, null, noTerms)
}

/** Returns a caller whose token was verified. */
export function verifiedContext(
  mode: AuthContext['mode'],
  subject: Subject,
  session: CredentialTerms = noTerms,
): AuthContext {
  return new AuthenticationResult(mode, subject, session)
}

/** Returns a caller that sees what a principal sees. Its scopes do not change. */
export function viewingAs({ mode, subject, session }: AuthContext, principalId: string): AuthContext {
  return new AuthenticationResult(mode, subject, session, principalId)
}

/** Returns the ID of the principal that a caller acts as; null if it is not a principal. */
export function principalIdOf({ viewedPrincipalId, subject }: AuthContext): string | null {
  return viewedPrincipalId ?? subject?.principalId ?? null
}

/** Returns a string that identifies a subject; null for an anonymous caller. */
export function subjectName({ subject }: AuthContext): string | null {
  return subject && `${subject.type}:${subject.id}`
}

export interface Creator {
  /** Result of {@link subjectName} for the creator; null for an anonymous caller, absent in old records. */
  readonly createdBy?: string | null
  readonly ownerPrincipalId: string | null
}

/** Returns true if a record was created by the caller, or with another credential of the same principal. */
export function isCreator(auth: AuthContext, { createdBy, ownerPrincipalId }: Creator): boolean {
  const name = subjectName(auth)
  const principalId = auth.subject?.principalId ?? null
  return (name !== null && name === createdBy) || (principalId !== null && principalId === ownerPrincipalId)
}

/** Returns the caller with another role. The scopes of its token still limit it. */
export function withRole(auth: AuthContext, role: Role, scopes: readonly Scope[]): AuthContext {
  const { mode, subject, session } = auth
  if (!subject) return auth
  const { tokenScopes } = subject
  const limited = tokenScopes ? commonScopes(scopes, tokenScopes) : scopes
  return new AuthenticationResult(mode, { ...subject, role, scopes: limited }, session)
}

/**
 * Returns the owner of the data directory as a caller, for use in the process that opened the data directory. Requests
 * over a connection never have this subject.
 *
 * @param id  ID of the process in the audit trail
 * @see docs/security.md#rule-8
 */
export function operatorContext(mode: AuthContext['mode'], id: string): AuthContext {
  return verifiedContext(mode, {
    id,
    label: 'operator',
    type: 'system',
    workspaceScopes: null,
    scopes: null,
    role: null,
    principalId: null,
    keyLifetimeMaxMs: null,
  })
}

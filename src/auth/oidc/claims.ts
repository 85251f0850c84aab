import type { Subject } from '../../access/subject.ts'
import { WbError } from '../../contract/errors.ts'
import { commonScopes, type Role, roles, type Scope, scopes, scopesOfRole } from '../../contract/scopes.ts'
import type { OidcConfig } from './protocol.ts'

/** The value of `visibleTo` for all principals. No user may have it as an ID. */
const everyone = '*'

/** Claims of a verified token, as parsed JSON. */
export type Claims = Readonly<Record<string, unknown>>

/**
 * Returns the subject of a token. The configuration specifies which claims to read.
 *
 * @throws unauthorized  when the token has no subject
 * @see docs/requirements.md#S5.3-08, docs/requirements.md#S5.6-01
 */
export function subjectOfClaims(payload: Claims, mapping: ClaimMapping): Subject {
  const { claims, roleMapping } = mapping
  const id = payload[claims.subject]
  if (typeof id !== 'string' || id === '') throw new WbError('unauthorized', 'the token has no subject')
  const label = payload[claims.label]
  const role = roleMapping && roleOfClaim(payload[roleMapping.claim], roleMapping)
  const roleScopes = role && scopesOfRole[role]
  const tokenScopes = mapping.scopes.length > 0 ? tokenScopesOf(payload) : []
  return {
    id,
    label: typeof label === 'string' && label !== '' ? label : id,
    type: 'oidc',
    workspaceScopes: workspaceScopesOf(payload[claims.workspaceScopes]),
    ...(tokenScopes.length > 0
      ? { scopes: commonScopes(roleScopes, tokenScopes), tokenScopes }
      : { scopes: roleScopes }),
    role,
    principalId: id === everyone ? null : id,
    keyLifetimeMaxMs: null,
  }
}

type ClaimMapping = Pick<OidcConfig, 'claims' | 'roleMapping' | 'scopes'>

/**
 * Returns those scopes of a token that this API defines. Reads `scope` (RFC 9068 section 2.2.3), and `scp`, which
 * some providers use.
 */
function tokenScopesOf({ scope, scp }: Claims): Scope[] {
  const names = [scope, scp].flatMap(value =>
    stringsIn(typeof value === 'string' ? value.split(/\s+/) : value),
  )
  return scopes.filter(apiScope => names.includes(apiScope))
}

/** Returns the workspaces that a claim lists; null for all workspaces, and an empty list if the value is invalid. */
function workspaceScopesOf(value: unknown): string[] | null {
  if (value === null) return null
  return stringsIn(typeof value === 'string' ? value.split(/\s+/) : value)
}

/** Returns the non-empty strings of a list; an empty list for any other value. */
function stringsIn(value: unknown): string[] {
  return Array.isArray(value)
    ? value.filter((entry): entry is string => typeof entry === 'string' && entry !== '')
    : []
}

/** Returns the highest role that the mapping assigns to a value of the claim; the default role if it assigns none. */
function roleOfClaim(value: unknown, mapping: NonNullable<ClaimMapping['roleMapping']>): Role {
  const values = stringsIn(typeof value === 'string' ? [value] : value)
  // A value such as `constructor` selects an inherited property, which is ignored because it is not a role.
  const mappedRoles = values.map(name => mapping.values[name])
  return roles.findLast(role => mappedRoles.includes(role)) ?? mapping.default
}

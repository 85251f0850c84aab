import type { Subject } from '../../access/subject.ts'
import { WbError } from '../../contract/errors.ts'
import { commonScopes, type Role, roles, type Scope, scopes, scopesOfRole } from '../../contract/scopes.ts'
import type { OidcConfig } from './protocol.ts'

/** JSON claims of a verified token. */
export type Claims = Readonly<Record<string, unknown>>

/**
 * Returns the subject of a token, by the claims that the configuration specifies.
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
  const ofRole = role && scopesOfRole[role]
  const tokenScopes = mapping.scopes.length > 0 ? tokenScopesOf(payload) : []
  return {
    id,
    label: typeof label === 'string' && label !== '' ? label : id,
    type: 'oidc',
    workspaceScopes: workspaceScopesOf(payload[claims.workspaceScopes]),
    ...(tokenScopes.length > 0
      ? { scopes: commonScopes(ofRole, tokenScopes), tokenScopes }
      : { scopes: ofRole }),
    role,
    principalId: id,
    grantSpanMs: null,
  }
}

type ClaimMapping = Pick<OidcConfig, 'claims' | 'roleMapping' | 'scopes'>

/**
 * Returns the scopes of this API in a token: from `scope` (RFC 9068 section 2.2.3) and from `scp`, which some
 * providers use.
 */
function tokenScopesOf({ scope, scp }: Claims): Scope[] {
  const named = [scope, scp].flatMap(value =>
    stringsIn(typeof value === 'string' ? value.split(/\s+/) : value),
  )
  return scopes.filter(own => named.includes(own))
}

/** Returns the workspaces of a claim: null for every workspace, none if the value is invalid. */
function workspaceScopesOf(value: unknown): string[] | null {
  if (value === null) return null
  return stringsIn(typeof value === 'string' ? value.split(/\s+/) : value)
}

function stringsIn(value: unknown): string[] {
  return Array.isArray(value)
    ? value.filter((entry): entry is string => typeof entry === 'string' && entry !== '')
    : []
}

/** Returns the highest role that the values of a claim are mapped to. */
function roleOfClaim(value: unknown, mapping: NonNullable<ClaimMapping['roleMapping']>): Role {
  const values = stringsIn(typeof value === 'string' ? [value] : value)
  // Inherited names like `constructor` map to a value that is not a role.
  const mapped = values.map(name => mapping.values[name])
  return roles.findLast(role => mapped.includes(role)) ?? mapping.default
}

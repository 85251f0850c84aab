import type { Subject } from '../../access/subject.ts'
import { WbError } from '../../contract/errors.ts'
import { inBoth, type Role, roles, type Scope, scopes, scopesOfRole } from '../../contract/scopes.ts'
import type { OidcConfig } from './protocol.ts'

/** What a verified token says, as JSON. */
export type Claims = Readonly<Record<string, unknown>>

/**
 * Who a token speaks of, by the claims that the configuration names.
 *
 * @throws unauthorized  it names nobody
 * @see docs/requirements.md#S5.3-08, docs/requirements.md#S5.6-01
 */
export function subjectOf(payload: Claims, mapping: Mapping): Subject {
  const { claims, roleMapping } = mapping
  const id = payload[claims.subject]
  if (typeof id !== 'string' || id === '') throw new WbError('unauthorized', 'the token names no subject')
  const label = payload[claims.label]
  const role = roleMapping && roleOfClaim(payload[roleMapping.claim], roleMapping)
  const ofRole = role && scopesOfRole[role]
  const tokenScopes = mapping.scopes.length > 0 ? tokenScopesOf(payload) : []
  return {
    id,
    label: typeof label === 'string' && label !== '' ? label : id,
    type: 'oidc',
    workspaceScopes: workspaceScopesOf(payload[claims.workspaceScopes]),
    ...(tokenScopes.length > 0 ? { scopes: inBoth(ofRole, tokenScopes), tokenScopes } : { scopes: ofRole }),
    role,
    principalId: id,
    grantSpanMs: null,
  }
}

type Mapping = Pick<OidcConfig, 'claims' | 'roleMapping' | 'scopes'>

/** Scopes of this API among those of a token: of `scope` (RFC 9068 section 2.2.3) and of `scp`, which some providers use. */
function tokenScopesOf({ scope, scp }: Claims): Scope[] {
  const named = [scope, scp].flatMap(value => textsOf(typeof value === 'string' ? value.split(/\s+/) : value))
  return scopes.filter(own => named.includes(own))
}

/** Null is every workspace; what says nothing that is understood is none. */
function workspaceScopesOf(value: unknown): string[] | null {
  if (value === null) return null
  return textsOf(typeof value === 'string' ? value.split(/\s+/) : value)
}

function textsOf(value: unknown): string[] {
  return Array.isArray(value)
    ? value.filter((entry): entry is string => typeof entry === 'string' && entry !== '')
    : []
}

/** The highest of the roles that the values of a claim are mapped to. */
function roleOfClaim(value: unknown, mapping: NonNullable<Mapping['roleMapping']>): Role {
  const named = textsOf(typeof value === 'string' ? [value] : value)
  // A name like `constructor` finds something too, which is no role.
  const mapped = named.map(name => mapping.values[name])
  return roles.findLast(role => mapped.includes(role)) ?? mapping.default
}

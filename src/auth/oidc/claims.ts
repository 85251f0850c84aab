import type { Subject } from '../../access/subject.ts'
import { WbError } from '../../contract/errors.ts'
import { type Role, roles, scopesOfRole } from '../../contract/scopes.ts'
import type { OidcConfig } from './protocol.ts'

/** What a verified token says, as JSON. */
export type Claims = Readonly<Record<string, unknown>>

/**
 * Who a token speaks of, by the claims that the configuration names.
 *
 * @throws unauthorized  it names nobody
 * @see docs/requirements.md#S5.3-08, docs/requirements.md#S5.6-01
 */
export function subjectOf(payload: Claims, { claims, roleMapping }: Mapping): Subject {
  const id = payload[claims.subject]
  if (typeof id !== 'string' || id === '') throw new WbError('unauthorized', 'the token names no subject')
  const label = payload[claims.label]
  const role = roleMapping && roleOfClaim(payload[roleMapping.claim], roleMapping)
  return {
    id,
    label: typeof label === 'string' && label !== '' ? label : id,
    type: 'oidc',
    workspaceScopes: workspaceScopesOf(payload[claims.workspaceScopes]),
    scopes: role && scopesOfRole[role],
    role,
    principalId: id,
    grantSpanMs: null,
  }
}

type Mapping = Pick<OidcConfig, 'claims' | 'roleMapping'>

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

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
 * @see specification 2.2, 5.6
 */
export function subjectOf(payload: Claims, { claims, roleMapping }: Mapping): Subject {
  const id = claim(payload, claims.subject)
  if (typeof id !== 'string' || id === '') throw new WbError('unauthorized', 'the token names no subject')
  const label = claim(payload, claims.label)
  const role = roleMapping && roleOfClaim(claim(payload, roleMapping.claim), roleMapping)
  return {
    id,
    label: typeof label === 'string' && label !== '' ? label : null,
    type: 'oidc',
    workspaceScopes: workspaceScopesOf(claim(payload, claims.workspaceScopes)),
    scopes: role && scopesOfRole[role],
    role,
    principalId: id,
    grantSpanMs: null,
  }
}

type Mapping = Pick<OidcConfig, 'claims' | 'roleMapping'>

/** Names of claims come from outside, so that none of them may be found on a prototype. */
function claim(payload: Claims, name: string): unknown {
  return Object.hasOwn(payload, name) ? payload[name] : undefined
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
  const mapped = named.flatMap(name => (Object.hasOwn(mapping.values, name) ? mapping.values[name]! : []))
  return roles.findLast(role => mapped.includes(role)) ?? mapping.default
}

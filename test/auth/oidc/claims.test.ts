import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { subjectOfClaims } from '../../../src/auth/oidc/claims.ts'
import { roles, type Scope, scopesOfRole } from '../../../src/contract/scopes.ts'
import { oidcConfig } from './stage.ts'

const { claims } = oidcConfig('https://x.test')
type RoleMapping = NonNullable<Parameters<typeof subjectOfClaims>[1]['roleMapping']>

const plain = { claims, roleMapping: null, scopes: [] }
const workspaces = (value: unknown) =>
  subjectOfClaims({ sub: 'alice', wb_workspace_scopes: value }, plain).workspaceScopes

function mapped(said: object, more: Partial<RoleMapping> = {}) {
  const values = { 'wb-viewers': 'viewer', 'wb-editors': 'editor', 'wb-admins': 'admin' } as const
  const roleMapping: RoleMapping = { claim: 'groups', values, default: 'viewer', ...more }
  return subjectOfClaims({ sub: 'alice', ...said }, { claims, roleMapping, scopes: [] })
}

describe('who it is', () => {
  test('S2.1-05 S2.2-16 S5.3-08: the id is in the claim that the configuration names', () => {
    const named = { claims: { ...claims, subject: 'oid' }, roleMapping: null, scopes: [] }
    expect(subjectOfClaims({ sub: 'alice', oid: 'a-1' }, named)).toMatchObject({
      id: 'a-1',
      principalId: 'a-1',
    })
    expect(subjectOfClaims({ sub: 'alice', oid: 'a-1' }, plain)).toMatchObject({ id: 'alice', type: 'oidc' })
  })

  test('S2.1-05: a token without a subject is refused', () => {
    for (const sub of [undefined, null, '', 7, true, ['alice'], { id: 'alice' }])
      expect(() => subjectOfClaims({ sub }, plain)).toThrow('the token has no subject')
    expect(() => subjectOfClaims({}, plain)).toThrow('the token has no subject')
  })

  test('S2.1-06 S2.2-17 S5.3-08: the label is in the claim that the configuration names, or the id', () => {
    const named = { claims: { ...claims, label: 'name' }, roleMapping: null, scopes: [] }
    expect(subjectOfClaims({ sub: 'alice', email: 'a@x.test', name: 'Alice' }, named).label).toBe('Alice')
    expect(subjectOfClaims({ sub: 'alice', email: 'a@x.test', name: 'Alice' }, plain).label).toBe('a@x.test')
    for (const email of [undefined, null, '', 7, ['a']])
      expect(subjectOfClaims({ sub: 'alice', email }, plain).label).toBe('alice')
  })

  test('no claim is found on the prototype of what was parsed', () => {
    for (const name of ['constructor', 'toString', '__proto__', 'hasOwnProperty']) {
      const named = {
        claims: { subject: name, label: name, workspaceScopes: name },
        roleMapping: null,
        scopes: [],
      }
      expect(() => subjectOfClaims({ sub: 'alice' }, named)).toThrow('the token has no subject')
      const said = JSON.parse(`{"${name}":"alice"}`) as Record<string, unknown>
      expect(subjectOfClaims(said, named)).toMatchObject({
        id: 'alice',
        label: 'alice',
        workspaceScopes: ['alice'],
      })
    }
  })
})

describe('which workspaces', () => {
  test('S2.2-18 S5.3-08: the workspaces are in the claim that the configuration names', () => {
    const named = { claims: { ...claims, workspaceScopes: 'spaces' }, roleMapping: null, scopes: [] }
    expect(
      subjectOfClaims({ sub: 'a', spaces: ['w1'], wb_workspace_scopes: null }, named).workspaceScopes,
    ).toEqual(['w1'])
  })

  test('S2.2-20: JSON null is every workspace, and nothing else is', () => {
    expect(workspaces(null)).toBeNull()
    fc.assert(
      fc.property(
        fc.jsonValue().filter(value => value !== null),
        value => Array.isArray(workspaces(value)),
      ),
    )
  })

  test('a missing claim, or one of another type, is no workspace', () => {
    expect(subjectOfClaims({ sub: 'alice' }, plain).workspaceScopes).toEqual([])
    for (const value of [undefined, 7, true, { w1: true }, '', ' ']) expect(workspaces(value)).toEqual([])
  })

  test('S2.2-19: a text with spaces says the same as an array', () => {
    const id = fc.stringMatching(/^[a-z0-9-]{1,12}$/)
    const space = fc.constantFrom(' ', '  ', '\t', '\n')
    fc.assert(
      fc.property(fc.array(id), space, (ids, between) => {
        expect(workspaces(ids)).toEqual(ids)
        expect(workspaces(between + ids.join(between) + between)).toEqual(ids)
      }),
    )
  })

  test('S2.2-19: of an array the texts count that are not empty', () => {
    expect(workspaces(['w1', '', null, 7, ['w2'], { id: 'w3' }, 'w4 w5'])).toEqual(['w1', 'w4 w5'])
  })
})

describe('which role', () => {
  test('S5.6-03: without a mapping every scope is held, and no role is told', () => {
    expect(subjectOfClaims({ sub: 'alice', groups: ['wb-viewers'] }, plain)).toMatchObject({
      scopes: null,
      role: null,
    })
  })

  test.each([
    ['wb-viewers', 'viewer'],
    ['wb-editors', 'editor'],
    ['wb-admins', 'admin'],
  ] as const)('S2.2-21 S2.2-22 S5.6-01: %s, single or in an array, is %s', (group, role) => {
    for (const groups of [group, [group], ['other', group, 7]])
      expect(mapped({ groups })).toMatchObject({ role, scopes: scopesOfRole[role] })
  })

  test('S2.2-21: a single value is taken whole', () => {
    expect(mapped({ groups: 'wb-editors wb-admins' }).role).toBe('viewer')
  })

  test('S2.2-23: of several the highest wins, in any order', () => {
    const groups = fc.shuffledSubarray(['wb-viewers', 'wb-editors', 'wb-admins', 'other'])
    fc.assert(
      fc.property(groups, named => {
        const highest = roles.findLast(role => named.includes(`wb-${role}s`)) ?? 'viewer'
        expect(mapped({ groups: named }).role).toBe(highest)
      }),
    )
  })

  test('S2.2-24: what is missing or not mapped is the default', () => {
    for (const role of roles)
      for (const groups of [
        undefined,
        null,
        [],
        '',
        'other',
        ['other'],
        7,
        { 'wb-admins': true },
        [['wb-admins']],
      ])
        expect(mapped({ groups }, { default: role }).role).toBe(role)
    expect(mapped({}).role).toBe('viewer')
  })

  test('a low role that is mapped wins over a high default', () => {
    expect(mapped({ groups: 'wb-viewers' }, { default: 'admin' }).role).toBe('viewer')
  })

  test('no value is found on the prototype of the mapping', () => {
    for (const name of ['constructor', '__proto__', 'toString', 'valueOf', 'hasOwnProperty'])
      expect(mapped({ groups: [name] })).toMatchObject({ role: 'viewer', scopes: ['read'] })
  })

  test('whatever a claim says, the role is one of three, and the scopes are its own', () => {
    fc.assert(
      fc.property(fc.jsonValue(), groups => {
        const { role, scopes } = mapped({ groups })
        expect(roles).toContain(role)
        expect(scopes).toEqual(scopesOfRole[role!])
      }),
    )
  })
})

describe('which scopes of the token', () => {
  const limited = { ...plain, scopes: ['read', 'write:ingest'] as Scope[] }
  const viewers = { claim: 'groups', values: {}, default: 'editor' } as const

  test('scopes of this API that a token names limit its subject, wherever the provider writes them', () => {
    for (const named of [
      { scope: 'openid read write:ingest' },
      { scp: ['read', 'write:ingest'] },
      { scope: 'read', scp: 'write:ingest' },
    ])
      expect(subjectOfClaims({ sub: 'alice', ...named }, limited)).toMatchObject({
        scopes: ['read', 'write:ingest'],
        tokenScopes: ['read', 'write:ingest'],
      })
  })

  test('scopes of a token and of a role are held only together', () => {
    const scopesOf = (scope: string) =>
      subjectOfClaims({ sub: 'alice', scope }, { ...limited, roleMapping: viewers }).scopes
    expect(scopesOf('write:kb manage')).toEqual(['write:kb'])
    expect(scopesOf('manage')).toEqual([])
    expect(scopesOf('openid')).toEqual(['read', 'write'])
  })

  test('a token that names none is not limited, nor is one where the configuration names none', () => {
    for (const said of [{}, { scope: 'openid profile' }, { scope: 7 }, { scp: { read: true } }])
      expect(subjectOfClaims({ sub: 'alice', ...said }, limited)).toMatchObject({ scopes: null })
    const subject = subjectOfClaims({ sub: 'alice', scope: 'read' }, plain)
    expect(subject).toMatchObject({ scopes: null })
    expect(subject).not.toHaveProperty('tokenScopes')
  })
})

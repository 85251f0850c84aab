import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { subjectOfClaims } from '../../../src/auth/oidc/claims.ts'
import { roles, type Scope, scopesOfRole } from '../../../src/contract/scopes.ts'
import { oidcConfig } from './oidc-fixture.ts'

const { claims } = oidcConfig('https://x.test')
type RoleMapping = NonNullable<Parameters<typeof subjectOfClaims>[1]['roleMapping']>

const plain = { claims, roleMapping: null, scopes: [] }
const workspaces = (value: unknown) =>
  subjectOfClaims({ sub: 'alice', wb_workspace_scopes: value }, plain).workspaceScopes

function subjectWith(said: object, more: Partial<RoleMapping> = {}) {
  const values = { 'wb-viewers': 'viewer', 'wb-editors': 'editor', 'wb-admins': 'admin' } as const
  const roleMapping: RoleMapping = { claim: 'groups', values, default: 'viewer', ...more }
  return subjectOfClaims({ sub: 'alice', ...said }, { claims, roleMapping, scopes: [] })
}

describe('subject and label', () => {
  test('S2.1-05 S2.2-16 S5.3-08: the ID comes from the configured claim', () => {
    const named = { claims: { ...claims, subject: 'oid' }, roleMapping: null, scopes: [] }
    expect(subjectOfClaims({ sub: 'alice', oid: 'a-1' }, named)).toMatchObject({
      id: 'a-1',
      principalId: 'a-1',
    })
    expect(subjectOfClaims({ sub: 'alice', oid: 'a-1' }, plain)).toMatchObject({ id: 'alice', type: 'oidc' })
  })

  test('S5.3-08: the ID that stands for all principals is not a principal', () => {
    expect(subjectOfClaims({ sub: '*' }, plain)).toMatchObject({ id: '*', principalId: null })
  })

  test('S2.1-05: a token without a subject is rejected', () => {
    for (const sub of [undefined, null, '', 7, true, ['alice'], { id: 'alice' }])
      expect(() => subjectOfClaims({ sub }, plain)).toThrow('the token has no subject')
    expect(() => subjectOfClaims({}, plain)).toThrow('the token has no subject')
  })

  test('S2.1-06 S2.2-17 S5.3-08: the label comes from the configured claim, or else is the ID', () => {
    const named = { claims: { ...claims, label: 'name' }, roleMapping: null, scopes: [] }
    expect(subjectOfClaims({ sub: 'alice', email: 'a@x.test', name: 'Alice' }, named).label).toBe('Alice')
    expect(subjectOfClaims({ sub: 'alice', email: 'a@x.test', name: 'Alice' }, plain).label).toBe('a@x.test')
    for (const email of [undefined, null, '', 7, ['a']])
      expect(subjectOfClaims({ sub: 'alice', email }, plain).label).toBe('alice')
  })

  test('claims are not read from the prototype of the parsed payload', () => {
    for (const name of ['constructor', 'toString', '__proto__', 'hasOwnProperty']) {
      const named = {
        claims: { subject: name, label: name, workspaceScopes: name },
        roleMapping: null,
        scopes: [],
      }
      expect(() => subjectOfClaims({ sub: 'alice' }, named)).toThrow('the token has no subject')
      const payload = JSON.parse(`{"${name}":"alice"}`) as Record<string, unknown>
      expect(subjectOfClaims(payload, named)).toMatchObject({
        id: 'alice',
        label: 'alice',
        workspaceScopes: ['alice'],
      })
    }
  })
})

describe('workspaces', () => {
  test('S2.2-18 S5.3-08: come from the configured claim', () => {
    const named = { claims: { ...claims, workspaceScopes: 'spaces' }, roleMapping: null, scopes: [] }
    expect(
      subjectOfClaims({ sub: 'a', spaces: ['w1'], wb_workspace_scopes: null }, named).workspaceScopes,
    ).toEqual(['w1'])
  })

  test('S2.2-20: are unlimited only for JSON null', () => {
    expect(workspaces(null)).toBeNull()
    fc.assert(
      fc.property(
        fc.jsonValue().filter(value => value !== null),
        value => Array.isArray(workspaces(value)),
      ),
    )
  })

  test('are empty if the claim is missing or has another type', () => {
    expect(subjectOfClaims({ sub: 'alice' }, plain).workspaceScopes).toEqual([])
    for (const value of [undefined, 7, true, { w1: true }, '', ' ']) expect(workspaces(value)).toEqual([])
  })

  test('S2.2-19: can be a text with spaces instead of an array', () => {
    const id = fc.stringMatching(/^[a-z0-9-]{1,12}$/)
    const space = fc.constantFrom(' ', '  ', '\t', '\n')
    fc.assert(
      fc.property(fc.array(id), space, (ids, between) => {
        expect(workspaces(ids)).toEqual(ids)
        expect(workspaces(between + ids.join(between) + between)).toEqual(ids)
      }),
    )
  })

  test('S2.2-19: include only the non-empty texts of an array', () => {
    expect(workspaces(['w1', '', null, 7, ['w2'], { id: 'w3' }, 'w4 w5'])).toEqual(['w1', 'w4 w5'])
  })
})

describe('role', () => {
  test('S5.6-03: without a mapping, is unset and grants every scope', () => {
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
      expect(subjectWith({ groups })).toMatchObject({ role, scopes: scopesOfRole[role] })
  })

  test('S2.2-21: is mapped from the whole text of a single value', () => {
    expect(subjectWith({ groups: 'wb-editors wb-admins' }).role).toBe('viewer')
  })

  test('S2.2-23: is the highest of several mapped values, in any order', () => {
    const groups = fc.shuffledSubarray(['wb-viewers', 'wb-editors', 'wb-admins', 'other'])
    fc.assert(
      fc.property(groups, named => {
        const highest = roles.findLast(role => named.includes(`wb-${role}s`)) ?? 'viewer'
        expect(subjectWith({ groups: named }).role).toBe(highest)
      }),
    )
  })

  test('S2.2-24: is the default if the claim is missing or not mapped', () => {
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
        expect(subjectWith({ groups }, { default: role }).role).toBe(role)
    expect(subjectWith({}).role).toBe('viewer')
  })

  test('is a mapped lower role instead of a higher default', () => {
    expect(subjectWith({ groups: 'wb-viewers' }, { default: 'admin' }).role).toBe('viewer')
  })

  test('is not read from the prototype of the mapping', () => {
    for (const name of ['constructor', '__proto__', 'toString', 'valueOf', 'hasOwnProperty'])
      expect(subjectWith({ groups: [name] })).toMatchObject({ role: 'viewer', scopes: ['read'] })
  })

  test('is one of the three roles with its scopes, whatever the claim contains', () => {
    fc.assert(
      fc.property(fc.jsonValue(), groups => {
        const { role, scopes } = subjectWith({ groups })
        expect(roles).toContain(role)
        expect(scopes).toEqual(scopesOfRole[role!])
      }),
    )
  })
})

describe('scopes of the token', () => {
  const limited = { ...plain, scopes: ['read', 'write:ingest'] as Scope[] }
  const viewers = { claim: 'groups', values: {}, default: 'editor' } as const

  test('limit the subject, in each claim where providers write them', () => {
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

  test('are combined with the role: both must grant a scope', () => {
    const scopesOf = (scope: string) =>
      subjectOfClaims({ sub: 'alice', scope }, { ...limited, roleMapping: viewers }).scopes
    expect(scopesOf('write:kb manage')).toEqual(['write:kb'])
    expect(scopesOf('manage')).toEqual([])
    expect(scopesOf('openid')).toEqual(['read', 'write'])
  })

  test('do not limit a token without them, or without a configured claim', () => {
    for (const payload of [{}, { scope: 'openid profile' }, { scope: 7 }, { scp: { read: true } }])
      expect(subjectOfClaims({ sub: 'alice', ...payload }, limited)).toMatchObject({ scopes: null })
    const subject = subjectOfClaims({ sub: 'alice', scope: 'read' }, plain)
    expect(subject).toMatchObject({ scopes: null })
    expect(subject).not.toHaveProperty('tokenScopes')
  })
})

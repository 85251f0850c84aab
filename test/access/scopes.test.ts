import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  commonScopes,
  grantsScope,
  type Role,
  roleOfScopes,
  roles,
  type Scope,
  scopes,
  scopesOfRole,
  sortScopes,
} from '../../src/contract/scopes.ts'

const list = fc.array(fc.constantFrom(...scopes))

test('S2.4-01: the scopes are listed in canonical order', () => {
  expect(scopes).toEqual([
    'read',
    'read:content',
    'read:chat',
    'read:audit',
    'write',
    'write:ingest',
    'write:kb',
    'write:services',
    'write:agents',
    'manage',
    'manage:keys',
    'manage:access',
    'manage:workspace',
    'tools:invoke',
  ])
})

describe('roles', () => {
  test('S2.4-02: each role combines whole tiers and includes all scopes of the lower roles', () => {
    expect(scopesOfRole).toEqual({
      viewer: ['read'],
      editor: ['read', 'write'],
      admin: ['read', 'write', 'manage'],
    })
    expect(roles).toEqual(['viewer', 'editor', 'admin'])
  })

  test.each<[role: Role, tiers: string[]]>([
    ['viewer', ['read']],
    ['editor', ['read', 'write']],
    ['admin', ['read', 'write', 'manage']],
  ])('S5.6-01: a %s holds the scopes of its tiers, and never tools:invoke', (role, tiers) => {
    for (const scope of scopes)
      expect(grantsScope(scopesOfRole[role], scope), scope).toBe(tiers.includes(scope.split(':')[0]!))
  })

  test('S2.6-06: roleOfScopes returns a role only for exactly its set of scopes, in any order', () => {
    fc.assert(
      fc.property(list, held => {
        const set = new Set<Scope>(held)
        const role = roles.find(
          one => scopesOfRole[one].length === set.size && scopesOfRole[one].every(scope => set.has(scope)),
        )
        return roleOfScopes(held) === (role ?? null)
      }),
    )
    for (const role of roles) expect(roleOfScopes([...scopesOfRole[role]].reverse())).toBe(role)
  })

  test.each<[held: Scope[]]>([
    [[]],
    [['write']],
    [['manage']],
    [['read', 'manage']],
    [['read', 'read:content']],
    [['read', 'write', 'tools:invoke']],
    [['read:content', 'read:chat', 'read:audit']],
  ])('S2.6-06: %j is not a role', held => {
    expect(roleOfScopes(held)).toBeNull()
  })
})

describe('sortScopes', () => {
  test('S2.4-01: sorts and deduplicates scopes without folding or expanding them', () => {
    fc.assert(
      fc.property(list, held => {
        const ordered = sortScopes(held)
        const places = ordered.map(scope => scopes.indexOf(scope))
        expect(new Set(ordered)).toEqual(new Set(held))
        expect(places).toEqual([...new Set(places)].sort((a, b) => a - b))
      }),
    )
  })

  test('keeps a tier and its own fine-grained scope', () => {
    expect(sortScopes(['write:kb', 'write', 'write:kb'])).toEqual(['write', 'write:kb'])
  })
})

test('the intersection of two sets of scopes contains the scopes that both grant', () => {
  fc.assert(
    fc.property(fc.option(list), list, fc.constantFrom(...scopes), (one, other, scope) => {
      expect(grantsScope(commonScopes(one, other), scope)).toBe(
        grantsScope(one, scope) && grantsScope(other, scope),
      )
    }),
  )
})

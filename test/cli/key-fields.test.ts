import { expect, test } from 'vitest'
import { isReplaced, keyColumns, keyFields, keyState } from '../../src/cli/fields/key.ts'
import type { ApiKey } from '../../src/contract/keys.ts'
import { limits } from '../../src/contract/limits.ts'

const now = Date.parse('2026-06-15T12:00:00.000Z')
const iso = (offsetMs: number) => new Date(now + offsetMs).toISOString()
const hour = 3_600_000
const graceMs = limits.keyGraceSeconds * 1_000

function key(more: Partial<ApiKey> = {}): ApiKey {
  return {
    keyId: 'k1',
    prefix: 'abc',
    label: 'ci',
    principalId: null,
    role: null,
    scopes: ['read'],
    createdAt: iso(-hour),
    lastUsedAt: null,
    expiresAt: iso(hour),
    revokedAt: null,
    ...more,
  } as ApiKey
}

test.each([
  [{}, 'active'],
  [{ expiresAt: null }, 'active'],
  [{ expiresAt: iso(0) }, 'expired'],
  [{ expiresAt: iso(1) }, 'active'],
  [{ expiresAt: iso(-1), revokedAt: iso(-2) }, 'revoked'],
])('a key with %j is %s', (more, state) => {
  expect(keyState(key(more), now)).toBe(state)
})

const successor = { keyId: 'k2', principalId: 'k1', createdAt: iso(-1), expiresAt: iso(9 * hour) }

test.each([
  ['a newer key that expires later', {}, {}, true],
  ['a key that does not expire', {}, { expiresAt: null }, true],
  ['a key of the same principal', { principalId: 'p' }, { principalId: 'p' }, true],
  ['a key of another principal', {}, { principalId: 'p' }, false],
  ['a revoked key', {}, { revokedAt: iso(0) }, false],
  ['a key with another label', {}, { label: 'cd' }, false],
  ['a key with other scopes', {}, { scopes: ['read', 'write'] }, false],
  ['an older key', {}, { createdAt: iso(-2 * hour) }, false],
  ['a key of the same time', {}, { createdAt: iso(-hour) }, false],
  ['a key that expires at the same time', {}, { expiresAt: iso(hour) }, false],
  ['a key from the start of the grace period', { expiresAt: iso(graceMs - 1) }, { expiresAt: null }, true],
  ['a key from before the grace period', { expiresAt: iso(graceMs) }, { expiresAt: null }, false],
  ['no key, because it does not expire', { expiresAt: null }, {}, false],
  ['no key, because it is revoked', { revokedAt: iso(0) }, {}, false],
] as const)('a key is replaced by %s', (_other, own, other, expected) => {
  const old = key(own as Partial<ApiKey>)
  const all = [old, key({ ...successor, ...other } as Partial<ApiKey>)]
  expect(isReplaced(old, all)).toBe(expected)
  expect(keyColumns(all, now).state!.value(old)).toBe(expected ? 'replaced' : keyState(old, now))
})

test('a list shows the role, or else the scopes', () => {
  const { role } = keyColumns([], now)
  expect(role!.value(key({ scopes: ['read', 'write'] }))).toBe('read write')
  expect(role!.value(key({ role: 'admin' } as Partial<ApiKey>))).toBe('admin')
})

test('the details of a key show when it was used, and when it ends', () => {
  expect(keyFields(key(), now)).toMatchObject({
    state: 'active',
    'last used': 'never',
    until: { due: iso(hour) },
    revoked: undefined,
  })
  const used = key({ lastUsedAt: iso(-5), revokedAt: iso(-1), expiresAt: null })
  expect(keyFields(used, now)).toMatchObject({
    state: 'revoked',
    'last used': { time: iso(-5) },
    until: undefined,
    revoked: { time: iso(-1) },
  })
})

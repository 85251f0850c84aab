import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Subject } from '../../../src/access/subject.ts'
import { checkGrant, earlierExpiry, expiryAfter, expiryOfNewKey } from '../../../src/auth/keys/grants.ts'
import { type Scope, scopes, scopesOfRole } from '../../../src/contract/scopes.ts'

const now = Date.parse('2026-01-01T00:00:00.000Z')
const hourMs = 3_600_000
const iso = (ms: number) => new Date(ms).toISOString()

function subject(fields: Partial<Subject>): Subject {
  return {
    id: 'me',
    label: null,
    type: 'apiKey',
    workspaceScopes: [],
    scopes: null,
    role: null,
    principalId: 'me',
    keyLifetimeMaxMs: null,
    ...fields,
  }
}

/** Returns the scope that a rejected grant lacks; undefined if the grant is allowed. */
function missingScope(
  held: readonly Scope[] | null | 'anonymous',
  wanted: Scope[],
  principalId: string | null = null,
) {
  try {
    checkGrant(held === 'anonymous' ? null : subject({ scopes: held }), { scopes: wanted, principalId })
    return undefined
  } catch (error) {
    expect(error).toMatchObject({ code: 'forbidden', status: 403 })
    const { message, facts } = error as { message: string; facts: { requiredScope: string } }
    expect(message).toContain(`missing required scope '${facts.requiredScope}'`)
    return facts.requiredScope
  }
}

const some = fc.subarray([...scopes], { minLength: 1 })

describe('callers grant only what they hold [security rule 7]', () => {
  test.each<[string, Scope[], Scope[], Scope | undefined]>([
    ['an admin mints a tools:invoke key', scopesOfRole.admin.slice(), ['tools:invoke'], undefined],
    ['manage alone mints anything', ['manage'], [...scopes], undefined],
    ['manage:keys mints manage:keys', ['manage:keys'], ['manage:keys'], undefined],
    ['manage:keys does not mint read', ['manage:keys'], ['read'], 'read'],
    ['manage:keys does not mint write', ['manage:keys', 'read'], ['read', 'write'], 'write'],
    ['manage:keys does not mint manage', ['manage:keys'], ['manage'], 'manage'],
    [
      'manage:keys does not mint manage:access',
      ['manage:keys'],
      ['manage:keys', 'manage:access'],
      'manage:access',
    ],
    ['manage:keys does not mint tools:invoke', ['manage:keys'], ['tools:invoke'], 'tools:invoke'],
    ['write also allows minting tools:invoke', ['manage:keys', 'write'], ['tools:invoke'], undefined],
    [
      'write:kb does not allow minting tools:invoke',
      ['manage:keys', 'write:kb'],
      ['tools:invoke'],
      'tools:invoke',
    ],
    ['write also allows minting write:ingest', ['manage:keys', 'write'], ['write:ingest'], undefined],
    ['write:ingest does not allow minting write', ['manage:keys', 'write:ingest'], ['write'], 'write'],
  ])('%s', (_, held, wanted, refused) => {
    expect(missingScope(held, wanted)).toBe(refused)
  })

  test('a caller without manage grants exactly the scopes that it holds', () => {
    const holds = (held: readonly Scope[], one: Scope) =>
      held.some(scope => scope === one || one.startsWith(`${scope}:`)) ||
      (one === 'tools:invoke' && held.includes('write'))
    fc.assert(
      fc.property(some, some, (held, wanted) => {
        fc.pre(!held.includes('manage'))
        const excess = wanted.find(one => !holds(held, one))
        return missingScope(held, wanted) === excess
      }),
    )
  })

  test('unscoped and anonymous callers can grant any scope to any principal', () => {
    for (const held of [null, 'anonymous'] as const)
      expect(missingScope(held, [...scopes], 'ada')).toBeUndefined()
  })

  test('granting a key to another principal requires manage:access', () => {
    expect(missingScope(['manage:keys'], ['manage:keys'], 'ada')).toBe('manage:access')
    expect(missingScope(['manage:keys'], ['manage:keys'], 'me')).toBeUndefined()
    expect(missingScope(['manage:keys'], ['manage:keys'], null)).toBeUndefined()
    expect(missingScope(['manage:keys', 'manage:access'], ['manage:keys'], 'ada')).toBeUndefined()
    expect(missingScope(['manage'], ['read'], 'ada')).toBeUndefined()
  })
})

describe('expiry of a new key', () => {
  const lasting = subject({})
  const ending = subject({ keyLifetimeMaxMs: hourMs })

  test('is unset unless the request or the caller sets a limit', () => {
    expect(expiryOfNewKey(undefined, now, lasting)).toBeNull()
    expect(expiryOfNewKey(null, now, lasting)).toBeNull()
    expect(expiryOfNewKey(undefined, now, null)).toBeNull()
    expect(expiryOfNewKey(iso(now + 1), now, lasting)).toBe(iso(now + 1))
  })

  test("is limited by the lifetime of the caller's key, and can be shorter on request", () => {
    for (const requested of [undefined, null])
      expect(expiryOfNewKey(requested, now, ending)).toBe(iso(now + hourMs))
    expect(expiryOfNewKey(iso(now + hourMs), now, ending)).toBe(iso(now + hourMs))
    expect(expiryOfNewKey(iso(now + 5), now, ending)).toBe(iso(now + 5))
    expect(() => expiryOfNewKey(iso(now + hourMs + 1), now, ending)).toThrow(
      expect.objectContaining({ code: 'forbidden', message: expect.stringContaining(iso(now + hourMs)) }),
    )
  })

  test.each([now, now - 1, 0])('must be in the future: %d is rejected', asked => {
    for (const one of [lasting, ending, null])
      expect(() => expiryOfNewKey(iso(asked), now, one)).toThrow(
        expect.objectContaining({
          code: 'validation_error',
          message: expect.stringMatching(/^expiresAt: /),
        }),
      )
  })

  test('is the shortest of the lifetimes, and never after the last valid timestamp', () => {
    expect(expiryAfter(now, [])).toBeNull()
    expect(expiryAfter(now, [null, null])).toBeNull()
    expect(expiryAfter(now, [null, 5, 7])).toBe(iso(now + 5))
    expect(expiryAfter(now, [Number.MAX_SAFE_INTEGER])).toBe('9999-12-31T23:59:59.999Z')
  })

  test('is the earlier of two expiry times', () => {
    expect(earlierExpiry(null, now)).toBe(iso(now))
    expect(earlierExpiry(iso(now - 1), now)).toBe(iso(now - 1))
    expect(earlierExpiry(iso(now + 1), now)).toBe(iso(now))
  })
})

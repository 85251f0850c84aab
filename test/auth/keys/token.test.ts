import { createHmac, scryptSync } from 'node:crypto'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  digestToken,
  hasValidChecksum,
  matchesDigest,
  newToken,
  prefixOf,
  productionCost,
  unmatchableDigest,
} from '../../../src/auth/keys/token.ts'
import { apiKeys } from '../../../src/contract/keys.ts'
import { workspaces } from '../../../src/contract/workspaces.ts'
import { openEmbeddedStore } from '../../../src/storage/open.ts'
import { tables } from '../../../src/storage/tables.ts'
import { lowCost } from '../../harness/key-cost.ts'
import { open } from '../../harness/runtime.ts'

const tokenKey = 'the-key-that-marks-tokens'
const form = /^wb_live_([a-z0-9]{12})_([a-z0-9]{32})$/
const letters = 'abcdefghijklmnopqrstuvwxyz0123456789'

describe('tokens', () => {
  test('S2.3-01 S8-15: consist of wb_live_, 12 letters and 32 letters, and are unique', () => {
    const made = Array.from({ length: 2_000 }, () => newToken(tokenKey))
    for (const { token, prefix } of made) expect(form.exec(token)?.[1]).toBe(prefix)
    expect(new Set(made.map(({ token }) => token)).size).toBe(made.length)
    expect(new Set(made.map(({ prefix }) => prefix)).size).toBe(made.length)
    expect(new Set(made.map(({ token }) => token.slice(-32))).size).toBe(made.length)
  })

  test('S2.3-01: use every letter with equal probability', () => {
    const counts = new Map<string, number>()
    for (let made = 0; made < 5_000; made++)
      for (const letter of newToken(tokenKey).token.slice(-32))
        counts.set(letter, (counts.get(letter) ?? 0) + 1)
    expect([...counts.keys()].sort().join('')).toBe([...letters].sort().join(''))
    const expected = (5_000 * 32) / letters.length
    const chiSquare = [...counts.values()].reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0)
    // A byte modulo 36 gives about 300 here. Chance alone exceeds 90 once in a million runs.
    expect(chiSquare).toBeLessThan(90)
  })

  test('S5.2-02: are parsed, and their public prefix is found', () => {
    const { token, prefix } = newToken(tokenKey)
    expect(prefixOf(token)).toBe(prefix)
  })

  const word = (length: number) =>
    fc.string({ unit: fc.constantFrom(...letters), minLength: length, maxLength: length })

  test('S5.2-02 S8-15: are not recognized if either part has another length', () => {
    const lengths = fc.tuple(fc.integer({ min: 0, max: 20 }), fc.integer({ min: 0, max: 40 }))
    fc.assert(
      fc.property(
        lengths.chain(([a, b]) => fc.tuple(word(a), word(b))),
        ([prefix, secret]) => {
          const isForm = prefix.length === 12 && secret.length === 32
          return prefixOf(`wb_live_${prefix}_${secret}`) === (isForm ? prefix : undefined)
        },
      ),
    )
    for (const [a, b] of [
      [11, 32],
      [13, 32],
      [12, 31],
      [12, 33],
    ] as const)
      expect(prefixOf(`wb_live_${'a'.repeat(a)}_${'b'.repeat(b)}`)).toBeUndefined()
  })

  const good = `wb_live_${'a'.repeat(12)}_${'b'.repeat(32)}`
  test.each([
    ['', 'no characters'],
    [good.toUpperCase(), 'uppercase letters'],
    [` ${good}`, 'a space before'],
    [`${good}\n`, 'a line break'],
    [`${good}\u0000`, 'NUL after'],
    [good.replace('a', '\u0000'), 'NUL inside'],
    [good.replace('live', 'test'), 'another word'],
    [good.replaceAll('_', '-'), 'hyphens'],
    [`${good},${good}`, 'two tokens'],
    [good.replace('b', 'ß'), 'another alphabet'],
    ['wb_live_', 'only the beginning'],
    ['a.b.c', 'the format of a JWT'],
    ['x'.repeat(100_000), '100 KB of text'],
  ])('S5.2-02: are not recognized: %j, with %s', text => {
    expect(prefixOf(text)).toBeUndefined()
  })
})

describe('checksum of a token', () => {
  const marks = 36 ** 6

  test('ends every new token, and is invalid for other stores', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (key, other) => {
        fc.pre(key !== other)
        const { token } = newToken(key)
        expect(hasValidChecksum(token, key)).toBe(true)
        expect(hasValidChecksum(token, other)).toBe(false)
      }),
    )
  })

  test('is the HMAC-SHA256 of the text before it, in six characters', () => {
    for (let n = 0; n < 200; n++) {
      const { token } = newToken(tokenKey)
      const code = createHmac('sha256', tokenKey).update(token.slice(0, -6)).digest('hex')
      const number = BigInt(`0x${code.slice(0, 16)}`) % BigInt(marks)
      expect(token.slice(-6)).toBe(number.toString(36).padStart(6, '0'))
    }
  })

  test('is invalid if any character of the token changes', () => {
    const { token } = newToken(tokenKey)
    for (let at = 'wb_live_'.length; at < token.length; at++)
      for (const letter of letters)
        if (token[at] !== '_' && token[at] !== letter) {
          const flipped = token.slice(0, at) + letter + token.slice(at + 1)
          expect(hasValidChecksum(flipped, tokenKey), flipped).toBe(false)
        }
  })

  test('matches a guess with a probability of one in 36^6', () => {
    const guesses = 20_000
    let found = 0
    for (let n = 0; n < guesses; n++) if (hasValidChecksum(newToken('a guess').token, tokenKey)) found++
    // One match is expected in a hundred thousand runs.
    expect(found).toBe(0)
    // Each position must use every letter: with fewer letters, guesses would be more likely to match.
    const seen = Array.from({ length: 6 }, () => new Set<string>())
    for (let n = 0; n < 3_000; n++)
      for (const [at, letter] of [...newToken(tokenKey).token.slice(-6)].entries()) seen[at]!.add(letter)
    expect(seen.map(({ size }) => size)).toEqual(Array(6).fill(36))
  })
})

describe('digests', () => {
  test('S2.3-04: are scrypt$salt$digest of the whole token at production cost, with a random salt', async () => {
    const { token } = newToken(tokenKey)
    const [one, other] = await Promise.all([
      digestToken(token, productionCost),
      digestToken(token, productionCost),
    ])
    expect(one).toMatch(/^scrypt\$[0-9a-f]{32}\$[0-9a-f]{64}$/)
    expect(one.split('$')[1]).not.toBe(other.split('$')[1])
    const [, salt, digest] = one.split('$')
    expect(scryptSync(token, Buffer.from(salt!, 'hex'), 32).toString('hex')).toBe(digest)
    expect(one).not.toContain(token.slice(-32))
  })

  test('S5.2-05: match only their own token', async () => {
    const [{ token }, { token: other }] = [newToken(tokenKey), newToken(tokenKey)]
    const digest = await digestToken(token, lowCost)
    expect(await matchesDigest(token, digest, lowCost)).toBe(true)
    expect(await matchesDigest(other, digest, lowCost)).toBe(false)
    expect(
      await matchesDigest(`${token.slice(0, -1)}${token.endsWith('a') ? 'b' : 'a'}`, digest, lowCost),
    ).toBe(false)
    expect(await matchesDigest(token, unmatchableDigest(), lowCost)).toBe(false)
  })

  test('match no token if they are damaged', async () => {
    const { token } = newToken(tokenKey)
    const digest = await digestToken(token, lowCost)
    for (const damaged of [
      '',
      'scrypt$$',
      digest.slice(0, -1),
      `${digest}0`,
      digest.replace('scrypt', 'none'),
    ])
      expect(await matchesDigest(token, damaged, lowCost), damaged).toBe(false)
  })

  test('that match no token have the format of a digest and are random', () => {
    expect(unmatchableDigest()).toMatch(/^scrypt\$[0-9a-f]{32}\$[0-9a-f]{64}$/)
    expect(unmatchableDigest()).not.toBe(unmatchableDigest())
  })
})

test('a runtime computes digests at production cost: N 16384, r 8, p 1', async () => {
  expect(productionCost).toEqual({ N: 16_384, r: 8, p: 1 })
  const wb = await open({ keyCost: undefined })
  const { workspaceId } = await wb.call(workspaces.create, { body: { name: 'a', kind: 'mock' } })
  const { plaintext, key } = await wb.call(apiKeys.create, { params: { workspaceId }, body: { label: 'k' } })
  await wb.close()
  const store = await openEmbeddedStore({ path: join(wb.dataDir, 'workbase.db') })
  onTestFinished(() => store.close())
  const stored = await store.rows.get(tables.apiKeys, [workspaceId, key.keyId])
  expect(await matchesDigest(plaintext, stored!.row.digest, productionCost)).toBe(true)
})

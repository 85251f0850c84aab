import { describe, expect, test } from 'vitest'
import { Admission, type AdmissionTask } from '../../../src/auth/keys/admission.ts'
import { ApiKeyVerifier } from '../../../src/auth/keys/key-verifier.ts'
import { digestToken, newToken, productionCost } from '../../../src/auth/keys/token.ts'
import type { RowStore } from '../../../src/storage/rows.ts'
import { type ApiKeyRow, tables } from '../../../src/storage/tables.ts'
import { lowCost } from '../../harness/key-cost.ts'
import { keyStore, rowOf, storedKey, tokenKey, workspaceId } from './stage.ts'

/** What marks the tokens of another store; to this one they are guesses. */
const ofAnother = 'the-key-of-another-store'
const silent = { debug() {}, info() {}, warn() {}, error() {} }

/** Counts the digests that are computed. */
class Counting extends Admission {
  count = 0
  readonly turns: AdmissionTask[] = []
  override run<T>(turn: AdmissionTask, work: () => Promise<T>): Promise<T> {
    this.count++
    this.turns.push(turn)
    return super.run(turn, work)
  }
}

async function stage(keyCost = lowCost) {
  const store = { ...(await keyStore()), keyCost }
  const admission = new Counting({ runningMax: 1 })
  const verifier = new ApiKeyVerifier({ ...store, log: silent, admission })
  return {
    ...store,
    verifier,
    /** How many digests were computed. */
    computed: () => admission.count,
    turns: admission.turns,
    present: (token: string, client = '192.0.2.1') => verifier.verify(token, presented(client)),
  }
}

function presented(client: string) {
  return { authorization: null, cookie: null, client, requestId: 'r', siteOrigin: () => 'http://x' }
}

/** The row as somebody else changes it, perhaps in another process. */
async function change(rows: RowStore, row: ApiKeyRow, fields: Partial<ApiKeyRow>): Promise<void> {
  const outcome = await rows.atomic([
    { op: 'replace', table: tables.apiKeys, row: { ...(await rowOf(rows, row)), ...fields } },
  ])
  expect(outcome).toEqual({ ok: true })
}

const invalid = { code: 'unauthorized', message: 'the token is not valid' }
const revoked = { code: 'unauthorized', message: 'the key was revoked' }
const expired = { code: 'unauthorized', message: 'the key has expired' }
const revokedAt = '2026-01-01T00:00:00.000Z'

async function durationOf(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  await work()
  return performance.now() - startedAt
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!
}

/** A token of the same prefix with another secret. */
function wrongSecretOf(token: string): string {
  return token.slice(0, -32) + newToken(ofAnother).token.slice(-32)
}

describe('who a token is', () => {
  test('S2.3-11 S5.2-03: the subject is the key, of its workspace alone, with the scopes of its issue', async () => {
    const { present, plain } = await stage()
    const { token, row } = await storedKey(plain, { scopes: ['read', 'write:kb'], label: 'ci' })
    expect(await present(token)).toEqual({
      subject: {
        id: row.keyId,
        label: 'ci',
        type: 'apiKey',
        workspaceScopes: [workspaceId],
        scopes: ['read', 'write:kb'],
        role: null,
        principalId: row.keyId,
        keyLifetimeMaxMs: null,
      },
      expiresAtSeconds: null,
      keyExpiresAt: null,
    })
  })

  test('S2.3-09 S9-05: a key from before there were scopes reads and writes', async () => {
    const { present, plain } = await stage()
    const { token, row } = await storedKey(plain)
    const { scopes: _, principalId: __, ...legacy } = row
    await plain.atomic([{ op: 'replace', table: tables.apiKeys, row: legacy }])
    const found = await present(token)
    expect(found?.subject).toMatchObject({ scopes: ['read', 'write'], principalId: row.keyId })
  })

  test('it is the principal that was fixed at its issue, and grants for as long as it was made to last', async () => {
    const { present, plain } = await stage()
    const fields = {
      principalId: 'ada',
      createdAt: '2025-12-31T23:59:00.000Z',
      expiresAt: '2026-01-01T00:01:00.000Z',
    }
    const { token } = await storedKey(plain, fields)
    expect((await present(token))?.subject).toMatchObject({ principalId: 'ada', keyLifetimeMaxMs: 120_000 })
  })

  test('made for ever and in its grace time, it grants nothing for ever [security rule 7]', async () => {
    const { present, plain } = await stage()
    const fields = {
      createdAt: '2025-12-31T23:59:00.000Z',
      expiresAt: '2026-01-01T00:01:00.000Z',
      spanMs: null,
    }
    const { token } = await storedKey(plain, fields)
    expect((await present(token))?.subject).toMatchObject({ keyLifetimeMaxMs: 120_000 })
  })

  test.each(['', 'x', 'a.b.c', 'wb_live_short_secret', 'x'.repeat(100_000), 'wb_live_\u0000'])(
    'S5.2-02: %j is not looked at',
    async token => {
      const { present, counts } = await stage()
      expect(present(token)).toBeUndefined()
      expect(counts).toEqual({ get: 0, list: 0, atomic: 0 })
    },
  )
})

describe('what does not hold', () => {
  test('S5.2-03 S5.2-05 S7.2-03: an unknown prefix and a wrong secret cost the same and are told the same', async () => {
    const { present, plain, computed } = await stage()
    const { token } = await storedKey(plain)
    await expect(present(newToken(ofAnother).token)).rejects.toMatchObject(invalid)
    expect(computed()).toBe(1)
    await expect(present(wrongSecretOf(token))).rejects.toMatchObject(invalid)
    expect(computed()).toBe(2)
  })

  test('S5.2-05: neither can be told from the other by its time', async () => {
    const { present, plain } = await stage(productionCost)
    const { token } = await storedKey(plain)
    const [unknown, wrong]: [number[], number[]] = [[], []]
    for (let n = 0; n < 15; n++) {
      unknown.push(await durationOf(() => present(newToken(ofAnother).token)!.catch(() => {})))
      wrong.push(await durationOf(() => present(wrongSecretOf(token))!.catch(() => {})))
    }
    const ratio = median(unknown) / median(wrong)
    // The benchmark asks for 5 %; without the same work for both it would be under a hundredth.
    expect(ratio).toBeGreaterThan(0.5)
    expect(ratio).toBeLessThan(2)
  })

  test('S5.2-04: revoked and expired is said to the holder of the secret alone', async () => {
    const { present, plain } = await stage()
    const gone = await storedKey(plain, { revokedAt })
    const old = await storedKey(plain, { expiresAt: '2025-12-31T23:59:59.999Z' })
    await expect(present(gone.token)).rejects.toMatchObject(revoked)
    await expect(present(old.token)).rejects.toMatchObject(expired)
    for (const { token } of [gone, old])
      await expect(present(wrongSecretOf(token))).rejects.toMatchObject(invalid)
  })

  test('a damaged row lets nobody in', async () => {
    const { present, plain } = await stage()
    const { token } = await storedKey(plain, { digest: 'scrypt$x$y' })
    await expect(present(token)).rejects.toMatchObject(invalid)
  })

  test('S3-04 S3-05 S7.2-04: a key ends at its moment, one without an end never does', async () => {
    const { present, plain, clock } = await stage()
    const ends = await storedKey(plain, { expiresAt: new Date(clock.now() + 1_000).toISOString() })
    const stays = await storedKey(plain)
    clock.advance(999)
    await present(ends.token)
    clock.advance(1)
    await expect(present(ends.token)).rejects.toMatchObject(expired)
    clock.advance(100 * 365 * 86_400_000)
    expect((await present(stays.token))?.subject.id).toBe(stays.row.keyId)
  })
})

describe('what is remembered', () => {
  test('S2.3-02: a token is looked up by its prefix and computed once, then by its key', async () => {
    const { present, plain, computed, counts, listed } = await stage()
    const [, { token, row }] = [await storedKey(plain), await storedKey(plain), await storedKey(plain)]
    await present(token)
    expect([computed(), counts.list]).toEqual([1, 1])
    expect(listed).toEqual([{ table: 'api_keys', index: 'byPrefix', prefix: [row.prefix], rows: 1 }])
    const unknown = newToken(tokenKey)
    await expect(present(unknown.token)).rejects.toMatchObject(invalid)
    expect(listed[1]).toEqual({ table: 'api_keys', index: 'byPrefix', prefix: [unknown.prefix], rows: 0 })
    expect([computed(), counts.list]).toEqual([2, 2])
    const { get } = counts
    for (let n = 0; n < 10; n++) await present(token)
    expect([computed(), counts.list]).toEqual([2, 2])
    // One read of the row each, and one for the note of when it was used first.
    expect(counts.get - get).toBeLessThanOrEqual(11)
    expect(counts.get - get).toBeGreaterThanOrEqual(10)
  })

  test('S3-03 S5.2-04 S7.2-05: a revocation by anybody holds for the very next request of a warm key', async () => {
    const { present, plain, computed } = await stage()
    const { token, row } = await storedKey(plain)
    await present(token)
    await change(plain, row, { revokedAt })
    await expect(present(token)).rejects.toMatchObject(revoked)
    expect(computed()).toBe(1)
  })

  test('an end that is moved holds for the very next request', async () => {
    const { present, plain, clock } = await stage()
    const { token, row } = await storedKey(plain)
    await present(token)
    await change(plain, row, { expiresAt: new Date(clock.now()).toISOString() })
    await expect(present(token)).rejects.toMatchObject(expired)
  })

  test('a row that is gone, or has another digest, is asked for anew', async () => {
    const { present, plain, computed } = await stage()
    const [gone, changed] = [await storedKey(plain), await storedKey(plain)]
    await present(gone.token)
    await present(changed.token)
    await plain.atomic([{ op: 'delete', table: tables.apiKeys, key: [workspaceId, gone.row.keyId] }])
    await change(plain, changed.row, { digest: gone.row.digest })
    for (const { token } of [gone, changed]) await expect(present(token)).rejects.toMatchObject(invalid)
    expect(computed()).toBe(4)
    await change(plain, changed.row, { digest: changed.row.digest })
    expect((await present(changed.token))?.subject.id).toBe(changed.row.keyId)
    expect(computed()).toBe(5)
  })

  test('a wrong token costs once, until the row changes', async () => {
    const { present, plain, computed } = await stage()
    const { token, row } = await storedKey(plain)
    const wrong = wrongSecretOf(token)
    const unknown = newToken(ofAnother)
    for (let n = 0; n < 5; n++)
      for (const one of [wrong, unknown.token]) await expect(present(one)).rejects.toMatchObject(invalid)
    expect(computed()).toBe(2)
    const { row: other } = await storedKey(plain)
    await change(plain, row, { digest: other.digest })
    await expect(present(wrong)).rejects.toMatchObject(invalid)
    expect(computed()).toBe(3)
    await storedKey(plain, { prefix: unknown.prefix })
    await expect(present(unknown.token)).rejects.toMatchObject(invalid)
    expect(computed()).toBe(4)
  })

  test('a key that is stored after its token was refused is let in', async () => {
    const { present, plain } = await stage()
    const { token, row } = await storedKey(plain)
    await plain.atomic([{ op: 'delete', table: tables.apiKeys, key: [workspaceId, row.keyId] }])
    await expect(present(token)).rejects.toMatchObject(invalid)
    await plain.atomic([{ op: 'insert', table: tables.apiKeys, row }])
    expect((await present(token))?.subject.id).toBe(row.keyId)
  })

  test('requests at once with one token of one address compute it once', async () => {
    const { present, plain, computed } = await stage()
    const { token } = await storedKey(plain)
    await Promise.all(Array.from({ length: 8 }, () => present(token)))
    expect(computed()).toBe(1)
    const wrong = wrongSecretOf(token)
    const all = await Promise.allSettled(Array.from({ length: 8 }, () => present(wrong)))
    expect(all.map(({ status }) => status)).toEqual(Array(8).fill('rejected'))
    expect(computed()).toBe(2)
  })

  test('addresses that show one token take turns of their own, and the later ones find it known', async () => {
    const { present, plain, computed } = await stage(productionCost)
    const { token, row } = await storedKey(plain, {}, productionCost)
    const once = await durationOf(() => digestToken(token, productionCost))
    const addresses = Array.from({ length: 40 }, (_, n) => `192.0.2.${n}`)
    const all = await durationOf(async () => {
      const found = await Promise.all(addresses.map(address => present(token, address)))
      expect(found.map(one => one?.subject.id)).toEqual(Array(40).fill(row.keyId))
    })
    expect(computed()).toBe(40)
    expect(all).toBeLessThan(20 * once)
  })

  test('a key that is revoked while its token waits for its turn is not let in', async () => {
    const { present, plain } = await stage(productionCost)
    const { token, row } = await storedKey(plain, {}, productionCost)
    const pending = present(token)
    await change(plain, row, { revokedAt })
    await expect(pending).rejects.toMatchObject(revoked)
  })

  test('a key that is deleted while its token waits for its turn is not let in', async () => {
    const { present, plain } = await stage(productionCost)
    const { token, row } = await storedKey(plain, {}, productionCost)
    const pending = present(token)
    await plain.atomic([{ op: 'delete', table: tables.apiKeys, key: [workspaceId, row.keyId] }])
    await expect(pending).rejects.toMatchObject(invalid)
  })
})

describe('guessing is bounded, the right key is not [security rule 10]', () => {
  test('a token that this store made takes its turn among such, and any other among others', async () => {
    const { present, plain, turns } = await stage()
    const { token } = await storedKey(plain)
    await present(token, '192.0.2.1')
    await expect(present(wrongSecretOf(token), '192.0.2.2')).rejects.toMatchObject(invalid)
    await expect(present(newToken(ofAnother).token, '192.0.2.3')).rejects.toMatchObject(invalid)
    expect(turns).toEqual([
      { queue: 'withChecksum', client: '192.0.2.1' },
      { queue: 'withoutChecksum', client: '192.0.2.2' },
      { queue: 'withoutChecksum', client: '192.0.2.3' },
    ])
  })

  test('a mark lets nobody in, and a key without one is let in', async () => {
    const { present, plain } = await stage()
    await expect(present(newToken(tokenKey).token)).rejects.toMatchObject(invalid)
    const { token, prefix } = newToken(ofAnother)
    const { row } = await storedKey(plain, { prefix, digest: await digestToken(token, lowCost) })
    expect((await present(token))?.subject.id).toBe(row.keyId)
  })

  test('a flood of wrong tokens from one address is refused with 429, and another address is let in meanwhile', async () => {
    const { present, plain } = await stage()
    const [cold, warm] = [await storedKey(plain), await storedKey(plain)]
    await present(warm.token, '192.0.2.3')
    const codes: string[] = []
    const flood = Array.from({ length: 60 }, () =>
      present(newToken(ofAnother).token, '192.0.2.2')!.catch(error => codes.push(error.code)),
    )
    expect((await present(cold.token, '192.0.2.1'))?.subject.id).toBe(cold.row.keyId)
    expect(codes.filter(code => code === 'unauthorized').length).toBeLessThanOrEqual(3)
    expect((await present(warm.token, '192.0.2.2'))?.subject.id).toBe(warm.row.keyId)
    await Promise.all(flood)
    expect(codes.filter(code => code === 'rate_limited').length).toBeGreaterThanOrEqual(40)
    expect(new Set(codes)).toEqual(new Set(['rate_limited', 'unauthorized']))
  })
})

test('S2.3-07 S5.2-06: lastUsedAt is written after a success, and after nothing else', async () => {
  const { present, plain, clock, verifier } = await stage()
  const used = await storedKey(plain)
  const others = [
    await storedKey(plain),
    await storedKey(plain, { revokedAt }),
    await storedKey(plain, { expiresAt: revokedAt }),
  ]
  clock.advance(5_000)
  await present(used.token)
  await expect(present(wrongSecretOf(others[0]!.token))).rejects.toMatchObject(invalid)
  await expect(present(others[1]!.token)).rejects.toMatchObject(revoked)
  await expect(present(others[2]!.token)).rejects.toMatchObject(expired)
  await verifier.close()
  expect((await rowOf(plain, used.row)).lastUsedAt).toBe('2026-01-01T00:00:05.000Z')
  for (const { row } of others) expect((await rowOf(plain, row)).lastUsedAt).toBeNull()
})

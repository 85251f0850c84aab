import { describe, expect, test } from 'vitest'
import { KeyUseRecorder } from '../../../src/auth/keys/key-use-recorder.ts'
import type { RowStore } from '../../../src/storage/rows.ts'
import { tables } from '../../../src/storage/tables.ts'
import { until } from '../../harness/runtime.ts'
import { keyStore, rowOf, storedKey, workspaceId } from './stage.ts'

async function stage(before: (rows: RowStore) => RowStore = rows => rows) {
  const store = await keyStore()
  const complaints: object[] = []
  const tell = (facts: object) => void complaints.push(facts)
  const log = { debug: tell, info: tell, warn: tell, error: tell }
  const lastUsed = new KeyUseRecorder({ rows: before(store.rows), clock: store.clock, log })
  const { row } = await storedKey(store.plain)
  return {
    ...store,
    lastUsed,
    row,
    complaints,
    seen: async () => (await rowOf(store.plain, row)).lastUsedAt,
    /** So many writes were begun, and are done. */
    written: async (count: number) => {
      await until(() => store.counts.atomic === count)
      await store.plain.atomic([])
    },
  }
}

const at = (seconds: number) =>
  new Date(Date.parse('2026-01-01T00:00:00.000Z') + seconds * 1_000).toISOString()

describe('S2.3-07: when a key was last used', () => {
  test('the first use is written at once, others once a minute, and only while there are any', async () => {
    const { lastUsed, row, clock, seen, written, counts } = await stage()
    lastUsed.record(row)
    expect(counts.atomic).toBe(0)
    await written(1)
    expect(await seen()).toBe(at(0))
    for (let second = 1; second < 60; second++) {
      clock.advance(1_000)
      lastUsed.record(row)
    }
    expect([counts.atomic, await seen()]).toEqual([1, at(0)])
    clock.advance(1_000)
    await written(2)
    expect(await seen()).toBe(at(59))
    clock.advance(3_600_000)
    clock.advance(3_600_000)
    expect(counts.atomic).toBe(2)
    lastUsed.record(row)
    await written(3)
    expect(await seen()).toBe(at(60 + 7_200))
  })

  test('what is not written yet is written at the end', async () => {
    const { lastUsed, row, clock, seen, counts, written } = await stage()
    lastUsed.record(row)
    await written(1)
    clock.advance(10_000)
    lastUsed.record(row)
    await lastUsed.close()
    expect([counts.atomic, await seen()]).toEqual([2, at(10)])
    clock.advance(3_600_000)
    expect(counts.atomic).toBe(2)
    await lastUsed.close()
    expect(counts.atomic).toBe(2)
  })

  test('a key that is gone stays gone', async () => {
    const { lastUsed, row, plain, complaints } = await stage()
    await plain.atomic([{ op: 'delete', table: tables.apiKeys, key: [workspaceId, row.keyId] }])
    lastUsed.record(row)
    await lastUsed.close()
    expect(await plain.get(tables.apiKeys, [workspaceId, row.keyId])).toBeUndefined()
    expect(complaints).toEqual([])
  })

  test('S3-17: a revocation between its reading and its writing stands', async () => {
    const revokedAt = '2026-01-01T00:00:00.000Z'
    let interfere: (() => Promise<unknown>) | undefined
    const { lastUsed, row, plain, seen } = await stage(rows => ({
      ...rows,
      async atomic(writes) {
        await interfere?.()
        interfere = undefined
        return rows.atomic(writes)
      },
    }))
    interfere = () => plain.atomic([{ op: 'replace', table: tables.apiKeys, row: { ...row, revokedAt } }])
    lastUsed.record(row)
    await lastUsed.close()
    expect((await rowOf(plain, row)).revokedAt).toBe(revokedAt)
    expect(await seen()).toBe(at(0))
  })

  test('a later use, which another process wrote, stands', async () => {
    const { lastUsed, row, plain, seen } = await stage()
    await plain.atomic([{ op: 'replace', table: tables.apiKeys, row: { ...row, lastUsedAt: at(5) } }])
    lastUsed.record(row)
    await lastUsed.close()
    expect(await seen()).toBe(at(5))
    await plain.atomic([{ op: 'replace', table: tables.apiKeys, row: { ...row, lastUsedAt: at(-5) } }])
    lastUsed.record(row)
    await lastUsed.close()
    expect(await seen()).toBe(at(0))
  })

  test('a store that fails is nobody’s concern', async () => {
    const { lastUsed, row, complaints, clock, seen } = await stage(rows => ({
      ...rows,
      get: () => Promise.reject(new Error('the disk is gone')),
    }))
    lastUsed.record(row)
    clock.advance(60_000)
    lastUsed.record(row)
    await lastUsed.close()
    expect(await seen()).toBeNull()
    expect(complaints).toMatchObject([{ keyId: row.keyId }, { keyId: row.keyId }])
  })

  test('of very many keys the one that rests longest is written early, and rests again after its next use', async () => {
    const { lastUsed, row, clock, seen } = await stage()
    lastUsed.record(row)
    clock.advance(1_000)
    lastUsed.record(row)
    for (let n = 0; n < 10_000; n++) lastUsed.record({ workspaceId, keyId: `none ${n}` })
    await until(async () => (await seen()) === at(1))
    clock.advance(29_000)
    lastUsed.record(row)
    await until(async () => (await seen()) === at(30))
    clock.advance(31_000)
    lastUsed.record(row)
    clock.advance(28_000)
    await settled()
    expect(await seen()).toBe(at(30))
    clock.advance(1_000)
    await until(async () => (await seen()) === at(61))
    await lastUsed.close()
  })
})

/** What was begun has come to the store. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
}

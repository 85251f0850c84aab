import { describe, expect, test } from 'vitest'
import { KeyUseRecorder } from '../../../src/auth/keys/key-use-recorder.ts'
import type { RowStore } from '../../../src/storage/rows.ts'
import { tables } from '../../../src/storage/tables.ts'
import { waitUntil } from '../../harness/runtime.ts'
import { openKeyStore, readKeyRow, storeKey, workspaceId } from './key-store.ts'

async function openRecorder(before: (rows: RowStore) => RowStore = rows => rows) {
  const store = await openKeyStore()
  const complaints: object[] = []
  const tell = (facts: object) => void complaints.push(facts)
  const log = { debug: tell, info: tell, warn: tell, error: tell }
  const lastUsed = new KeyUseRecorder({ rows: before(store.rows), clock: store.clock, log })
  const { row } = await storeKey(store.plain)
  return {
    ...store,
    lastUsed,
    row,
    complaints,
    seen: async () => (await readKeyRow(store.plain, row)).lastUsedAt,
    /** Waits until the given number of writes is complete. */
    written: async (count: number) => {
      await waitUntil(() => store.counts.atomic === count)
      await store.plain.atomic([])
    },
  }
}

const at = (seconds: number) =>
  new Date(Date.parse('2026-01-01T00:00:00.000Z') + seconds * 1_000).toISOString()

describe('S2.3-07: recording the last use of a key', () => {
  test('writes the first use at once, and later uses once a minute', async () => {
    const { lastUsed, row, clock, seen, written, counts } = await openRecorder()
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

  test('writes pending uses on close', async () => {
    const { lastUsed, row, clock, seen, counts, written } = await openRecorder()
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

  test('does not restore a deleted key', async () => {
    const { lastUsed, row, plain, complaints } = await openRecorder()
    await plain.atomic([{ op: 'delete', table: tables.apiKeys, key: [workspaceId, row.keyId] }])
    lastUsed.record(row)
    await lastUsed.close()
    expect(await plain.get(tables.apiKeys, [workspaceId, row.keyId])).toBeUndefined()
    expect(complaints).toEqual([])
  })

  test('S3-17: keeps a revocation that happens between its read and its write', async () => {
    const revokedAt = '2026-01-01T00:00:00.000Z'
    let interfere: (() => Promise<unknown>) | undefined
    const { lastUsed, row, plain, seen } = await openRecorder(rows => ({
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
    expect((await readKeyRow(plain, row)).revokedAt).toBe(revokedAt)
    expect(await seen()).toBe(at(0))
  })

  test('keeps a later time that another process wrote', async () => {
    const { lastUsed, row, plain, seen } = await openRecorder()
    await plain.atomic([{ op: 'replace', table: tables.apiKeys, row: { ...row, lastUsedAt: at(5) } }])
    lastUsed.record(row)
    await lastUsed.close()
    expect(await seen()).toBe(at(5))
    await plain.atomic([{ op: 'replace', table: tables.apiKeys, row: { ...row, lastUsedAt: at(-5) } }])
    lastUsed.record(row)
    await lastUsed.close()
    expect(await seen()).toBe(at(0))
  })

  test('logs a store failure and continues', async () => {
    const { lastUsed, row, complaints, clock, seen } = await openRecorder(rows => ({
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

  test('writes the oldest pending key early if there are very many, and delays its next write again', async () => {
    const { lastUsed, row, clock, seen } = await openRecorder()
    lastUsed.record(row)
    clock.advance(1_000)
    lastUsed.record(row)
    for (let n = 0; n < 10_000; n++) lastUsed.record({ workspaceId, keyId: `none ${n}` })
    await waitUntil(async () => (await seen()) === at(1))
    clock.advance(29_000)
    lastUsed.record(row)
    await waitUntil(async () => (await seen()) === at(30))
    clock.advance(31_000)
    lastUsed.record(row)
    clock.advance(28_000)
    await settled()
    expect(await seen()).toBe(at(30))
    clock.advance(1_000)
    await waitUntil(async () => (await seen()) === at(61))
    await lastUsed.close()
  })
})

/** Waits until pending operations have reached the store. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
}

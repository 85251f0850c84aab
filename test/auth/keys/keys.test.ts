import { describe, expect, test } from 'vitest'
import type { Subject } from '../../../src/access/subject.ts'
import { Admission, type AdmissionTask } from '../../../src/auth/keys/admission.ts'
import { ApiKeys } from '../../../src/auth/keys/api-keys.ts'
import { hasValidChecksum, matchesDigest } from '../../../src/auth/keys/token.ts'
import { WbError } from '../../../src/contract/errors.ts'
import { scopesOfRole } from '../../../src/contract/scopes.ts'
import type { RowStore } from '../../../src/storage/rows.ts'
import { type ApiKeyRow, tables } from '../../../src/storage/tables.ts'
import { lowCost } from '../../harness/key-cost.ts'
import { createCaller, openKeyStore, readKeyRow, storeKey, tokenKey, workspaceId } from './key-store.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const elsewhere = '22222222-2222-4222-8222-222222222222'
const unknown = '33333333-3333-4333-8333-333333333333'

/** An admission that records its tasks and counts the completed ones. */
class RecordingAdmission extends Admission {
  readonly turns: AdmissionTask[] = []
  done = 0

  override async run<T>(turn: AdmissionTask, work: () => Promise<T>): Promise<T> {
    this.turns.push(turn)
    const made = await super.run(turn, work)
    this.done++
    return made
  }
}

async function openApiKeys(before: (rows: RowStore) => RowStore = rows => rows, admission = new Admission()) {
  const store = await openKeyStore()
  const room = new ApiKeys({ ...store, rows: before(store.rows), admission })
  const mint = (fields = {}, by = createCaller({})) =>
    room.create(workspaceId, { label: 'a key', scopes: ['read'], ...fields }, by)
  const rotate = (keyId: string, by = createCaller({}), graceSeconds = 60) =>
    room.rotate({ workspaceId, keyId }, { graceSeconds }, by)
  return { ...store, room, mint, rotate, in: (ms: number) => new Date(store.clock.now() + ms).toISOString() }
}

/** Returns the subject of a caller that uses the given key. */
function subjectOf(row: ApiKeyRow, more: Partial<Subject> = {}): Partial<Subject> {
  const span = row.expiresAt === null ? null : Date.parse(row.expiresAt) - Date.parse(row.createdAt)
  return {
    id: row.keyId,
    scopes: row.scopes!,
    principalId: row.principalId ?? row.keyId,
    keyLifetimeMaxMs: span,
    ...more,
  }
}

describe('creating a key', () => {
  test('S4.2-13 S2.3-04 S2.3-05 S2.3-06: returns the token and the key without the stored digest', async () => {
    const { mint, plain, clock } = await openApiKeys()
    const by = createCaller({})
    const { plaintext, key } = await mint({ scopes: ['read', 'write'], principalId: 'ada' }, by)
    expect(key).toEqual({
      workspaceId,
      keyId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      prefix: plaintext.slice(8, 20),
      label: 'a key',
      role: 'editor',
      scopes: ['read', 'write'],
      principalId: 'ada',
      createdAt: new Date(clock.now()).toISOString(),
      lastUsedAt: null,
      revokedAt: null,
      expiresAt: null,
    })
    const row = await readKeyRow(plain, key)
    expect(await matchesDigest(plaintext, row.digest, lowCost)).toBe(true)
    expect(JSON.stringify(row)).not.toContain(plaintext.slice(-32))
    expect(by.records).toEqual([
      { keyId: key.keyId, label: 'a key', scopes: 'read,write', principalId: 'ada' },
    ])
  })

  test('S7.3-workspace_not_found: fails in an unknown workspace, without a key or an audit record', async () => {
    const { room, plain } = await openApiKeys()
    const by = createCaller({})
    await expect(room.create(elsewhere, { label: 'x', scopes: ['read'] }, by)).rejects.toMatchObject({
      code: 'workspace_not_found',
    })
    expect(await plain.count(tables.apiKeys, 'byWorkspace', [elsewhere])).toBe(0)
    expect(await plain.count(tables.audit, 'byTime', [])).toBe(0)
  })

  test("is limited to the lifetime of the caller's key, and the audit record shows it [security rule 7]", async () => {
    const { mint, in: later } = await openApiKeys()
    const by = createCaller({ scopes: ['manage'], keyLifetimeMaxMs: hourMs })
    expect((await mint({}, by)).key.expiresAt).toBe(later(hourMs))
    expect((await mint({ expiresAt: later(5) }, by)).key.expiresAt).toBe(later(5))
    await expect(mint({ expiresAt: later(hourMs + 1) }, by)).rejects.toMatchObject({ code: 'forbidden' })
    await expect(mint({ expiresAt: later(0) }, by)).rejects.toMatchObject({ code: 'validation_error' })
    expect(by.records).toHaveLength(2)
  })

  test('leaves no key and no audit record if it is rejected [security rule 7]', async () => {
    const { mint, plain } = await openApiKeys()
    const by = createCaller({ scopes: ['manage:keys'] })
    await expect(mint({ scopes: ['write'] }, by)).rejects.toMatchObject({
      code: 'forbidden',
      facts: { requiredScope: 'write' },
    })
    await expect(mint({ scopes: ['manage:keys'], principalId: 'ada' }, by)).rejects.toMatchObject({
      facts: { requiredScope: 'manage:access' },
    })
    expect(await plain.count(tables.apiKeys, 'byWorkspace', [workspaceId])).toBe(0)
    expect(by.records).toEqual([])
  })

  test('S5.5-01: allows an anonymous caller with access to grant any scope', async () => {
    const { mint } = await openApiKeys()
    const { key } = await mint({ scopes: ['manage'], principalId: 'ada' }, createCaller('anonymous'))
    expect(key).toMatchObject({ role: null, scopes: ['manage'], principalId: 'ada', expiresAt: null })
  })

  test('works for many keys at the same time', async () => {
    const { mint } = await openApiKeys()
    const made = await Promise.all(Array.from({ length: 30 }, () => mint()))
    expect(new Set(made.map(({ plaintext }) => plaintext)).size).toBe(30)
  })

  test('throws an unexpected error if the transaction fails for an unknown reason', async () => {
    const { mint } = await openApiKeys(rows => ({
      ...rows,
      atomic: async () => ({ ok: false, at: 1, reason: 'taken', unique: 'prefix' }),
    }))
    await expect(mint()).rejects.toThrow('already exists')
  })
})

describe('a caller is authorized again after the digest is computed [security rule 10]', () => {
  const refused = new WbError('unauthorized', 'the key was revoked')

  test('so a caller that was rejected in the meantime gets no key', async () => {
    const { mint, plain } = await openApiKeys()
    const by = createCaller({}, () => Promise.reject(refused))
    await expect(mint({}, by)).rejects.toBe(refused)
    expect(await plain.count(tables.apiKeys, 'byWorkspace', [workspaceId])).toBe(0)
    expect(by.records).toEqual([])
  })

  test('so a caller that was rejected in the meantime cannot rotate a key', async () => {
    const { mint, rotate, plain } = await openApiKeys()
    const { key } = await mint()
    const before = await readKeyRow(plain, key)
    const by = createCaller({}, () => Promise.reject(refused))
    await expect(rotate(key.keyId, by)).rejects.toBe(refused)
    expect(await readKeyRow(plain, key)).toEqual(before)
    expect(await plain.count(tables.apiKeys, 'byWorkspace', [workspaceId])).toBe(1)
    expect(by.records).toEqual([])
  })

  test.each(['mint', 'rotate'] as const)(
    '%s authorizes again after the digest, not before it',
    async work => {
      const admission = new RecordingAdmission()
      const { mint, rotate, plain } = await openApiKeys(rows => rows, admission)
      const { row } = await storeKey(plain)
      const completedDigests: number[] = []
      const by = createCaller({}, async () => void completedDigests.push(admission.done))
      await (work === 'mint' ? mint({}, by) : rotate(row.keyId, by))
      expect(completedDigests).toEqual([1])
    },
  )
})

describe('admission of new keys', () => {
  test('queues creations and rotations by workspace, and gives their tokens a checksum', async () => {
    const admission = new RecordingAdmission()
    const { mint, rotate } = await openApiKeys(rows => rows, admission)
    const first = await mint()
    const second = await rotate(first.key.keyId)
    expect(admission.turns).toEqual(Array(2).fill({ queue: 'creations', client: `workspace ${workspaceId}` }))
    for (const { plaintext } of [first, second]) expect(hasValidChecksum(plaintext, tokenKey)).toBe(true)
  })
})

describe('listing and reading keys', () => {
  test('S4.2-16 S3-02 S2.3-08: lists all keys by creation time, including revoked ones, without digests', async () => {
    const { room, mint, clock } = await openApiKeys()
    const made = []
    for (let n = 0; n < 5; n++) {
      made.push((await mint({ label: `key ${n}` })).key)
      clock.advance(n < 3 ? 1_000 : 0)
    }
    await room.revoke({ workspaceId, keyId: made[1]!.keyId }, createCaller({}))
    const first = await room.list(workspaceId, { limit: 3 })
    const rest = await room.list(workspaceId, { limit: 3, cursor: first.nextCursor! })
    expect(rest.nextCursor).toBeNull()
    const all = [...first.items, ...rest.items]
    const expected = [...made].sort((a, b) =>
      `${a.createdAt}${a.keyId}` < `${b.createdAt}${b.keyId}` ? -1 : 1,
    )
    expect(all.map(({ keyId }) => keyId)).toEqual(expected.map(({ keyId }) => keyId))
    expect(all.filter(({ revokedAt }) => revokedAt !== null).map(({ label }) => label)).toEqual(['key 1'])
    expect(JSON.stringify(all)).not.toContain('scrypt')
    await expect(room.list(elsewhere, { limit: 3 })).rejects.toMatchObject({ code: 'workspace_not_found' })
  })

  test('S2.3-09: shows a legacy key without scopes as an editor without another principal', async () => {
    const { room, plain } = await openApiKeys()
    const { row } = await storeKey(plain)
    const { scopes: _, principalId: __, ...legacy } = row
    await plain.atomic([{ op: 'replace', table: tables.apiKeys, row: legacy }])
    expect(await room.get(workspaceId, row.keyId)).toMatchObject({
      role: 'editor',
      scopes: ['read', 'write'],
      principalId: null,
    })
  })

  test('S7.3-api_key_not_found: fails with api_key_not_found for an unknown key, and workspace_not_found in an unknown workspace', async () => {
    const { room, plain } = await openApiKeys()
    const { row } = await storeKey(plain)
    expect((await room.get(workspaceId, row.keyId)).keyId).toBe(row.keyId)
    await expect(room.get(workspaceId, unknown)).rejects.toMatchObject({ code: 'api_key_not_found' })
    await expect(room.get(elsewhere, row.keyId)).rejects.toMatchObject({ code: 'workspace_not_found' })
  })
})

describe('revoking a key', () => {
  test('S3-01 S3-17 S7.3-01: works once, and keeps the first revocation time', async () => {
    const { room, mint, clock, plain } = await openApiKeys()
    const { key } = await mint()
    const path = { workspaceId, keyId: key.keyId }
    const by = createCaller({})
    await room.revoke(path, by)
    const { revokedAt } = await readKeyRow(plain, key)
    expect(revokedAt).toBe(new Date(clock.now()).toISOString())
    clock.advance(1_000)
    await expect(room.revoke(path, by)).rejects.toMatchObject({ code: 'api_key_not_found' })
    await expect(room.rotate(path, { graceSeconds: 0 }, by)).rejects.toMatchObject({
      code: 'api_key_not_found',
    })
    expect((await readKeyRow(plain, key)).revokedAt).toBe(revokedAt)
    expect(by.records).toEqual([{ keyId: key.keyId, label: 'a key' }])
    expect(await plain.count(tables.audit, 'byTime', [])).toBe(2)
  })

  test('S7.3-api_key_not_found S7.3-workspace_not_found: fails for an unknown key or workspace', async () => {
    const { room } = await openApiKeys()
    const by = createCaller({})
    for (const [place, code] of [
      [workspaceId, 'api_key_not_found'],
      [elsewhere, 'workspace_not_found'],
    ] as const)
      await expect(room.revoke({ workspaceId: place, keyId: unknown }, by)).rejects.toMatchObject({ code })
    expect(by.records).toEqual([])
  })

  test('succeeds exactly once among concurrent requests', async () => {
    const { room, mint, plain } = await openApiKeys()
    const { key } = await mint()
    const path = { workspaceId, keyId: key.keyId }
    const ended = await Promise.allSettled(
      Array.from({ length: 6 }, () => room.revoke(path, createCaller({}))),
    )
    expect(ended.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const one of ended)
      if (one.status === 'rejected') expect(one.reason).toMatchObject({ code: 'api_key_not_found' })
    expect(await plain.count(tables.audit, 'byTime', [])).toBe(2)
  })
})

describe('rotating a key', () => {
  test('S5.9-07: creates a new key with the same properties, and both keys work during the grace period', async () => {
    const { mint, rotate, plain, clock, in: later } = await openApiKeys()
    const { key, plaintext } = await mint({
      label: 'ci',
      scopes: ['read', 'tools:invoke'],
      principalId: 'ada',
    })
    clock.advance(dayMs)
    const by = createCaller({})
    const rotated = await rotate(key.keyId, by, 60)
    expect(rotated.plaintext).not.toBe(plaintext)
    expect(rotated.key).toEqual({
      ...key,
      keyId: rotated.key.keyId,
      prefix: rotated.plaintext.slice(8, 20),
      createdAt: later(0),
    })
    expect(rotated.previous).toEqual({ ...key, expiresAt: later(60_000) })
    expect(
      await matchesDigest(rotated.plaintext, (await readKeyRow(plain, rotated.key)).digest, lowCost),
    ).toBe(true)
    expect(await matchesDigest(plaintext, (await readKeyRow(plain, key)).digest, lowCost)).toBe(true)
    expect(by.records).toEqual([
      {
        keyId: rotated.key.keyId,
        label: 'ci',
        scopes: 'read,tools:invoke',
        principalId: 'ada',
        source: key.keyId,
      },
    ])
  })

  test('keeps the principal of the first key', async () => {
    const { mint, rotate } = await openApiKeys()
    const { key } = await mint()
    const { key: second } = await rotate(key.keyId)
    const { key: third } = await rotate(second.keyId)
    expect([key, second, third].map(({ principalId }) => principalId)).toEqual([null, key.keyId, key.keyId])
  })

  test('expires the old key at once without a grace period, and never extends its own expiry', async () => {
    const { mint, rotate, in: later } = await openApiKeys()
    const { key } = await mint()
    expect((await rotate(key.keyId, createCaller({}), 0)).previous.expiresAt).toBe(later(0))
    const { key: ending } = await mint({ expiresAt: later(1_000) })
    expect((await rotate(ending.keyId, createCaller({}), 60)).previous.expiresAt).toBe(later(1_000))
  })

  test('gives the new key the original lifetime of the old one, however often it is rotated', async () => {
    const { mint, rotate, clock, in: later } = await openApiKeys()
    const { key: ending } = await mint({ expiresAt: later(10 * dayMs) })
    const { key: lasting } = await mint()
    clock.advance(9 * dayMs)
    for (let n = 0; n < 2; n++) {
      expect((await rotate(ending.keyId)).key.expiresAt).toBe(later(10 * dayMs))
      expect((await rotate(lasting.keyId)).key.expiresAt).toBeNull()
      clock.advance(1_000)
    }
  })

  test('lets an admin key that expires in an hour rotate itself and continue as its replacement [security rule 7]', async () => {
    const { mint, rotate, plain, clock, in: later } = await openApiKeys()
    const { key } = await mint({ scopes: [...scopesOfRole.admin], expiresAt: later(hourMs) })
    clock.advance(hourMs - 1_000)
    const { key: second } = await rotate(key.keyId, createCaller(subjectOf(await readKeyRow(plain, key))))
    expect(second.expiresAt).toBe(later(hourMs))
    expect(second).toMatchObject({ role: 'admin' })
  })

  test("limits the lifetime of the new key to that of the caller's key [security rule 7]", async () => {
    const { mint, rotate, in: later } = await openApiKeys()
    const { key } = await mint()
    const by = createCaller({ scopes: ['manage'], keyLifetimeMaxMs: hourMs })
    expect((await rotate(key.keyId, by)).key.expiresAt).toBe(later(hourMs))
  })

  test("with only manage:keys is limited to the caller's principal and to scopes that it holds [security rule 7]", async () => {
    const { mint, rotate, plain } = await openApiKeys()
    const fine = (await mint({ scopes: ['read', 'manage:keys'] })).key
    const by = createCaller(subjectOf(await readKeyRow(plain, fine)))
    const { key: writer } = await mint({ scopes: ['write'] })
    const { key: reader } = await mint({ scopes: ['read'] })
    const { key: alias } = await mint({ scopes: ['read'], principalId: fine.keyId })
    await expect(rotate(writer.keyId, by)).rejects.toMatchObject({
      code: 'forbidden',
      facts: { requiredScope: 'write' },
    })
    await expect(rotate(reader.keyId, by)).rejects.toMatchObject({
      code: 'forbidden',
      facts: { requiredScope: 'manage:access' },
    })
    expect((await readKeyRow(plain, reader)).expiresAt).toBeNull()
    expect((await rotate(alias.keyId, by)).key.principalId).toBe(fine.keyId)
    expect((await rotate(fine.keyId, by)).key.principalId).toBe(fine.keyId)
  })

  test('S7.3-api_key_not_found S7.3-workspace_not_found: fails for an unknown key or workspace', async () => {
    const { rotate, room } = await openApiKeys()
    await expect(rotate(unknown)).rejects.toMatchObject({ code: 'api_key_not_found' })
    const path = { workspaceId: elsewhere, keyId: unknown }
    await expect(room.rotate(path, { graceSeconds: 0 }, createCaller({}))).rejects.toMatchObject({
      code: 'workspace_not_found',
    })
  })

  test('S7.3-01: does not reveal the scopes of a revoked key', async () => {
    const { room, mint, rotate } = await openApiKeys()
    const { key } = await mint({ scopes: ['manage'] })
    await room.revoke({ workspaceId, keyId: key.keyId }, createCaller({}))
    const by = createCaller({ scopes: ['manage:keys'] })
    await expect(rotate(key.keyId, by)).rejects.toMatchObject({ code: 'api_key_not_found' })
  })

  test('creates no key if the old one is revoked or deleted in the meantime', async () => {
    const { room, mint, rotate, plain } = await openApiKeys()
    const { key: revoked } = await mint()
    const pending = rotate(revoked.keyId)
    const by = createCaller({})
    const outcome = expect(pending).rejects.toMatchObject({ code: 'api_key_not_found' })
    await room.revoke({ workspaceId, keyId: revoked.keyId }, by)
    await outcome
    const { key: deleted } = await mint()
    const orphaned = expect(rotate(deleted.keyId)).rejects.toMatchObject({ code: 'api_key_not_found' })
    await plain.atomic([{ op: 'delete', table: tables.apiKeys, key: [workspaceId, deleted.keyId] }])
    await orphaned
    expect(await plain.count(tables.apiKeys, 'byWorkspace', [workspaceId])).toBe(1)
  })

  test('twice at the same time creates two keys with one expiry for the old key, and an audit record for each', async () => {
    const { mint, rotate, room, plain, in: later } = await openApiKeys()
    const { key } = await mint()
    const both = await Promise.all([rotate(key.keyId), rotate(key.keyId)])
    expect(both.map(({ previous }) => previous.expiresAt)).toEqual([later(60_000), later(60_000)])
    expect(both.map(({ key: one }) => one.expiresAt)).toEqual([null, null])
    const { items } = await room.list(workspaceId, { limit: 10 })
    expect(new Set(items.map(({ keyId }) => keyId))).toEqual(
      new Set([key.keyId, ...both.map(({ key: one }) => one.keyId)]),
    )
    expect(await plain.count(tables.audit, 'byTime', [])).toBe(3)
  })

  test('at the same time as a revocation leaves the old key revoked, whichever comes first', async () => {
    const { room, mint, rotate, plain } = await openApiKeys()
    for (let n = 0; n < 10; n++) {
      const { key } = await mint()
      const path = { workspaceId, keyId: key.keyId }
      const [rotated] = await Promise.allSettled([rotate(key.keyId), room.revoke(path, createCaller({}))])
      expect((await readKeyRow(plain, key)).revokedAt).not.toBeNull()
      const { items } = await room.list(workspaceId, { limit: 100 })
      const heirs = items.filter(one => one.principalId === key.keyId)
      expect(heirs).toHaveLength(rotated.status === 'fulfilled' ? 1 : 0)
    }
  })

  test('throws an unexpected error if the transaction fails for an unknown reason', async () => {
    const { rotate, plain } = await openApiKeys(rows => ({
      ...rows,
      atomic: async () => ({ ok: false, at: 0, reason: 'taken', unique: 'prefix' }),
    }))
    const { row } = await storeKey(plain)
    await expect(rotate(row.keyId)).rejects.toThrow('already exists')
  })
})

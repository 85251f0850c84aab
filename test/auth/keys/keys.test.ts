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
import { caller, keyStore, rowOf, storedKey, tokenKey, workspaceId } from './stage.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const elsewhere = '22222222-2222-4222-8222-222222222222'
const unknown = '33333333-3333-4333-8333-333333333333'

/** Tells whose turns were asked for, and how many are over. */
class Watched extends Admission {
  readonly turns: AdmissionTask[] = []
  done = 0

  override async run<T>(turn: AdmissionTask, work: () => Promise<T>): Promise<T> {
    this.turns.push(turn)
    const made = await super.run(turn, work)
    this.done++
    return made
  }
}

async function stage(before: (rows: RowStore) => RowStore = rows => rows, admission = new Admission()) {
  const store = await keyStore()
  const room = new ApiKeys({ ...store, rows: before(store.rows), admission })
  const mint = (fields = {}, by = caller({})) =>
    room.create(workspaceId, { label: 'a key', scopes: ['read'], ...fields }, by)
  const rotate = (keyId: string, by = caller({}), graceSeconds = 60) =>
    room.rotate({ workspaceId, keyId }, { graceSeconds }, by)
  return { ...store, room, mint, rotate, in: (ms: number) => new Date(store.clock.now() + ms).toISOString() }
}

/** What the caller of a key is. */
function as(row: ApiKeyRow, more: Partial<Subject> = {}): Partial<Subject> {
  const span = row.expiresAt === null ? null : Date.parse(row.expiresAt) - Date.parse(row.createdAt)
  return {
    id: row.keyId,
    scopes: row.scopes!,
    principalId: row.principalId ?? row.keyId,
    keyLifetimeMaxMs: span,
    ...more,
  }
}

describe('mint', () => {
  test('S4.2-13 S2.3-04 S2.3-05 S2.3-06: the token, and the record without the digest that is stored', async () => {
    const { mint, plain, clock } = await stage()
    const by = caller({})
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
    const row = await rowOf(plain, key)
    expect(await matchesDigest(plaintext, row.digest, lowCost)).toBe(true)
    expect(JSON.stringify(row)).not.toContain(plaintext.slice(-32))
    expect(by.records).toEqual([
      { keyId: key.keyId, label: 'a key', scopes: 'read,write', principalId: 'ada' },
    ])
  })

  test('S7.3-workspace_not_found: a workspace that is not there gets no key and no record', async () => {
    const { room, plain } = await stage()
    const by = caller({})
    await expect(room.create(elsewhere, { label: 'x', scopes: ['read'] }, by)).rejects.toMatchObject({
      code: 'workspace_not_found',
    })
    expect(await plain.count(tables.apiKeys, 'byWorkspace', [elsewhere])).toBe(0)
    expect(await plain.count(tables.audit, 'byTime', [])).toBe(0)
  })

  test('a key that expires mints for its own span, which the record shows [security rule 7]', async () => {
    const { mint, in: later } = await stage()
    const by = caller({ scopes: ['manage'], keyLifetimeMaxMs: hourMs })
    expect((await mint({}, by)).key.expiresAt).toBe(later(hourMs))
    expect((await mint({ expiresAt: later(5) }, by)).key.expiresAt).toBe(later(5))
    await expect(mint({ expiresAt: later(hourMs + 1) }, by)).rejects.toMatchObject({ code: 'forbidden' })
    await expect(mint({ expiresAt: later(0) }, by)).rejects.toMatchObject({ code: 'validation_error' })
    expect(by.records).toHaveLength(2)
  })

  test('what is refused leaves no key and no record [security rule 7]', async () => {
    const { mint, plain } = await stage()
    const by = caller({ scopes: ['manage:keys'] })
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

  test('S5.5-01: an anonymous caller that passed the gate mints anything', async () => {
    const { mint } = await stage()
    const { key } = await mint({ scopes: ['manage'], principalId: 'ada' }, caller('anonymous'))
    expect(key).toMatchObject({ role: null, scopes: ['manage'], principalId: 'ada', expiresAt: null })
  })

  test('many at once are all made', async () => {
    const { mint } = await stage()
    const made = await Promise.all(Array.from({ length: 30 }, () => mint()))
    expect(new Set(made.map(({ plaintext }) => plaintext)).size).toBe(30)
  })

  test('a unit that is refused for no known reason is a defect', async () => {
    const { mint } = await stage(rows => ({
      ...rows,
      atomic: async () => ({ ok: false, at: 1, reason: 'taken', unique: 'prefix' }),
    }))
    await expect(mint()).rejects.toThrow('already exists')
  })
})

describe('a caller that waited for a digest is asked again [security rule 10]', () => {
  const refused = new WbError('unauthorized', 'the key was revoked')

  test('before a key is made, so that one who was refused meanwhile gets none', async () => {
    const { mint, plain } = await stage()
    const by = caller({}, () => Promise.reject(refused))
    await expect(mint({}, by)).rejects.toBe(refused)
    expect(await plain.count(tables.apiKeys, 'byWorkspace', [workspaceId])).toBe(0)
    expect(by.records).toEqual([])
  })

  test('before a key is rotated, and the key stays what it was', async () => {
    const { mint, rotate, plain } = await stage()
    const { key } = await mint()
    const before = await rowOf(plain, key)
    const by = caller({}, () => Promise.reject(refused))
    await expect(rotate(key.keyId, by)).rejects.toBe(refused)
    expect(await rowOf(plain, key)).toEqual(before)
    expect(await plain.count(tables.apiKeys, 'byWorkspace', [workspaceId])).toBe(1)
    expect(by.records).toEqual([])
  })

  test.each(['mint', 'rotate'] as const)('%s: after the digest is made, not before', async work => {
    const admission = new Watched()
    const { mint, rotate, plain } = await stage(rows => rows, admission)
    const { row } = await storedKey(plain)
    const asked: number[] = []
    const by = caller({}, async () => void asked.push(admission.done))
    await (work === 'mint' ? mint({}, by) : rotate(row.keyId, by))
    expect(asked).toEqual([1])
  })
})

describe('whose turn a new key takes', () => {
  test('creations and rotations queue as their workspace, and their tokens are marked', async () => {
    const admission = new Watched()
    const { mint, rotate } = await stage(rows => rows, admission)
    const first = await mint()
    const second = await rotate(first.key.keyId)
    expect(admission.turns).toEqual(Array(2).fill({ queue: 'creations', client: `workspace ${workspaceId}` }))
    for (const { plaintext } of [first, second]) expect(hasValidChecksum(plaintext, tokenKey)).toBe(true)
  })
})

describe('list and show', () => {
  test('S4.2-16 S3-02 S2.3-08: all keys in the order of their making, revoked ones included, without digests', async () => {
    const { room, mint, clock } = await stage()
    const made = []
    for (let n = 0; n < 5; n++) {
      made.push((await mint({ label: `key ${n}` })).key)
      clock.advance(n < 3 ? 1_000 : 0)
    }
    await room.revoke({ workspaceId, keyId: made[1]!.keyId }, caller({}))
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

  test('S2.3-09: a key from before there were scopes is shown as an editor, of its own name', async () => {
    const { room, plain } = await stage()
    const { row } = await storedKey(plain)
    const { scopes: _, principalId: __, ...legacy } = row
    await plain.atomic([{ op: 'replace', table: tables.apiKeys, row: legacy }])
    expect(await room.get(workspaceId, row.keyId)).toMatchObject({
      role: 'editor',
      scopes: ['read', 'write'],
      principalId: null,
    })
  })

  test('S7.3-api_key_not_found: an unknown key is not found, in an unknown workspace that is not', async () => {
    const { room, plain } = await stage()
    const { row } = await storedKey(plain)
    expect((await room.get(workspaceId, row.keyId)).keyId).toBe(row.keyId)
    await expect(room.get(workspaceId, unknown)).rejects.toMatchObject({ code: 'api_key_not_found' })
    await expect(room.get(elsewhere, row.keyId)).rejects.toMatchObject({ code: 'workspace_not_found' })
  })
})

describe('revoke', () => {
  test('S3-01 S3-17 S7.3-01: once, for good, and the first moment stays', async () => {
    const { room, mint, clock, plain } = await stage()
    const { key } = await mint()
    const path = { workspaceId, keyId: key.keyId }
    const by = caller({})
    await room.revoke(path, by)
    const { revokedAt } = await rowOf(plain, key)
    expect(revokedAt).toBe(new Date(clock.now()).toISOString())
    clock.advance(1_000)
    await expect(room.revoke(path, by)).rejects.toMatchObject({ code: 'api_key_not_found' })
    await expect(room.rotate(path, { graceSeconds: 0 }, by)).rejects.toMatchObject({
      code: 'api_key_not_found',
    })
    expect((await rowOf(plain, key)).revokedAt).toBe(revokedAt)
    expect(by.records).toEqual([{ keyId: key.keyId, label: 'a key' }])
    expect(await plain.count(tables.audit, 'byTime', [])).toBe(2)
  })

  test('S7.3-api_key_not_found S7.3-workspace_not_found: what is not there cannot be revoked', async () => {
    const { room } = await stage()
    const by = caller({})
    for (const [place, code] of [
      [workspaceId, 'api_key_not_found'],
      [elsewhere, 'workspace_not_found'],
    ] as const)
      await expect(room.revoke({ workspaceId: place, keyId: unknown }, by)).rejects.toMatchObject({ code })
    expect(by.records).toEqual([])
  })

  test('of many at once exactly one revokes', async () => {
    const { room, mint, plain } = await stage()
    const { key } = await mint()
    const path = { workspaceId, keyId: key.keyId }
    const ended = await Promise.allSettled(Array.from({ length: 6 }, () => room.revoke(path, caller({}))))
    expect(ended.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const one of ended)
      if (one.status === 'rejected') expect(one.reason).toMatchObject({ code: 'api_key_not_found' })
    expect(await plain.count(tables.audit, 'byTime', [])).toBe(2)
  })
})

describe('rotate', () => {
  test('S5.9-07: the successor is what its predecessor is, and both work for a while', async () => {
    const { mint, rotate, plain, clock, in: later } = await stage()
    const { key, plaintext } = await mint({
      label: 'ci',
      scopes: ['read', 'tools:invoke'],
      principalId: 'ada',
    })
    clock.advance(dayMs)
    const by = caller({})
    const rotated = await rotate(key.keyId, by, 60)
    expect(rotated.plaintext).not.toBe(plaintext)
    expect(rotated.key).toEqual({
      ...key,
      keyId: rotated.key.keyId,
      prefix: rotated.plaintext.slice(8, 20),
      createdAt: later(0),
    })
    expect(rotated.previous).toEqual({ ...key, expiresAt: later(60_000) })
    expect(await matchesDigest(rotated.plaintext, (await rowOf(plain, rotated.key)).digest, lowCost)).toBe(
      true,
    )
    expect(await matchesDigest(plaintext, (await rowOf(plain, key)).digest, lowCost)).toBe(true)
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

  test('a key that was nobody else goes on under the name that it had', async () => {
    const { mint, rotate } = await stage()
    const { key } = await mint()
    const { key: second } = await rotate(key.keyId)
    const { key: third } = await rotate(second.keyId)
    expect([key, second, third].map(({ principalId }) => principalId)).toEqual([null, key.keyId, key.keyId])
  })

  test('without a grace the predecessor ends at once, and its own end is never put off', async () => {
    const { mint, rotate, in: later } = await stage()
    const { key } = await mint()
    expect((await rotate(key.keyId, caller({}), 0)).previous.expiresAt).toBe(later(0))
    const { key: ending } = await mint({ expiresAt: later(1_000) })
    expect((await rotate(ending.keyId, caller({}), 60)).previous.expiresAt).toBe(later(1_000))
  })

  test('the successor lasts as long as the predecessor was made to last, however often it is rotated', async () => {
    const { mint, rotate, clock, in: later } = await stage()
    const { key: ending } = await mint({ expiresAt: later(10 * dayMs) })
    const { key: lasting } = await mint()
    clock.advance(9 * dayMs)
    for (let n = 0; n < 2; n++) {
      expect((await rotate(ending.keyId)).key.expiresAt).toBe(later(10 * dayMs))
      expect((await rotate(lasting.keyId)).key.expiresAt).toBeNull()
      clock.advance(1_000)
    }
  })

  test('an admin key that expires in an hour rotates itself, and the successor lives on [security rule 7]', async () => {
    const { mint, rotate, plain, clock, in: later } = await stage()
    const { key } = await mint({ scopes: [...scopesOfRole.admin], expiresAt: later(hourMs) })
    clock.advance(hourMs - 1_000)
    const { key: second } = await rotate(key.keyId, caller(as(await rowOf(plain, key))))
    expect(second.expiresAt).toBe(later(hourMs))
    expect(second).toMatchObject({ role: 'admin' })
  })

  test('a caller whose key expires gives no successor a longer life than its own [security rule 7]', async () => {
    const { mint, rotate, in: later } = await stage()
    const { key } = await mint()
    const by = caller({ scopes: ['manage'], keyLifetimeMaxMs: hourMs })
    expect((await rotate(key.keyId, by)).key.expiresAt).toBe(later(hourMs))
  })

  test('manage:keys alone rotates what it could mint: its own name, and scopes that it holds [security rule 7]', async () => {
    const { mint, rotate, plain } = await stage()
    const fine = (await mint({ scopes: ['read', 'manage:keys'] })).key
    const by = caller(as(await rowOf(plain, fine)))
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
    expect((await rowOf(plain, reader)).expiresAt).toBeNull()
    expect((await rotate(alias.keyId, by)).key.principalId).toBe(fine.keyId)
    expect((await rotate(fine.keyId, by)).key.principalId).toBe(fine.keyId)
  })

  test('S7.3-api_key_not_found S7.3-workspace_not_found: what is not there has no successor', async () => {
    const { rotate, room } = await stage()
    await expect(rotate(unknown)).rejects.toMatchObject({ code: 'api_key_not_found' })
    const path = { workspaceId: elsewhere, keyId: unknown }
    await expect(room.rotate(path, { graceSeconds: 0 }, caller({}))).rejects.toMatchObject({
      code: 'workspace_not_found',
    })
  })

  test('S7.3-01: of a revoked key nobody learns what it could do', async () => {
    const { room, mint, rotate } = await stage()
    const { key } = await mint({ scopes: ['manage'] })
    await room.revoke({ workspaceId, keyId: key.keyId }, caller({}))
    const by = caller({ scopes: ['manage:keys'] })
    await expect(rotate(key.keyId, by)).rejects.toMatchObject({ code: 'api_key_not_found' })
  })

  test('a key that is revoked or deleted meanwhile has no successor', async () => {
    const { room, mint, rotate, plain } = await stage()
    const { key: revoked } = await mint()
    const pending = rotate(revoked.keyId)
    const by = caller({})
    const outcome = expect(pending).rejects.toMatchObject({ code: 'api_key_not_found' })
    await room.revoke({ workspaceId, keyId: revoked.keyId }, by)
    await outcome
    const { key: deleted } = await mint()
    const orphaned = expect(rotate(deleted.keyId)).rejects.toMatchObject({ code: 'api_key_not_found' })
    await plain.atomic([{ op: 'delete', table: tables.apiKeys, key: [workspaceId, deleted.keyId] }])
    await orphaned
    expect(await plain.count(tables.apiKeys, 'byWorkspace', [workspaceId])).toBe(1)
  })

  test('two at once give two successors, one end, and a record for each', async () => {
    const { mint, rotate, room, plain, in: later } = await stage()
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

  test('a revocation at once with a rotation holds, whichever comes first', async () => {
    const { room, mint, rotate, plain } = await stage()
    for (let n = 0; n < 10; n++) {
      const { key } = await mint()
      const path = { workspaceId, keyId: key.keyId }
      const [rotated] = await Promise.allSettled([rotate(key.keyId), room.revoke(path, caller({}))])
      expect((await rowOf(plain, key)).revokedAt).not.toBeNull()
      const { items } = await room.list(workspaceId, { limit: 100 })
      const heirs = items.filter(one => one.principalId === key.keyId)
      expect(heirs).toHaveLength(rotated.status === 'fulfilled' ? 1 : 0)
    }
  })

  test('a unit that is refused for no known reason is a defect', async () => {
    const { rotate, plain } = await stage(rows => ({
      ...rows,
      atomic: async () => ({ ok: false, at: 0, reason: 'taken', unique: 'prefix' }),
    }))
    const { row } = await storedKey(plain)
    await expect(rotate(row.keyId)).rejects.toThrow('already exists')
  })
})

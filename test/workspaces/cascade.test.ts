import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { documents } from '../../src/contract/documents.ts'
import { kb } from '../../src/contract/knowledge.ts'
import { records } from '../../src/contract/records.ts'
import { workspaces } from '../../src/contract/workspaces.ts'
import type { ContentStore } from '../../src/storage/content.ts'
import { Cursors, Pager } from '../../src/storage/cursor.ts'
import { openEmbeddedStore } from '../../src/storage/open.ts'
import { tables } from '../../src/storage/tables.ts'
import { Workspaces } from '../../src/workspaces/workspaces.ts'
import { ingestSentences } from '../harness/fitted-spaces.ts'
import { type Base, makeBase, makeMockService, makeWorkspace } from '../harness/resources.ts'
import { open, type TestRuntime } from '../harness/runtime.ts'
import { failedStoreChecks } from '../harness/store-check.ts'
import { storeFile } from '../harness/store-file.ts'

const silent = { debug() {}, info() {}, warn() {}, error() {} }

/** Creates a workspace with rows in every table that a route writes. */
async function furnished(wb: TestRuntime) {
  const { workspaceId } = await makeWorkspace(wb)
  const { embeddingServiceId } = await makeMockService(wb, workspaceId)
  const bases = [
    await makeBase(wb, { workspaceId }),
    await makeBase(wb, { workspaceId, embeddingServiceId }),
    await makeBase(wb, { workspaceId }),
  ]
  for (const base of bases) await ingestSentences(base, 0, 12)
  const { params } = bases[0]!
  await wb.call(documents.create, { params, body: { sourceFilename: 'registered.md' } })
  await wb.call(records.upsert, { params, body: { records: [{ id: 'r', text: 'A record.' }] } })
  await wb.settle()
  return { workspaceId, bases }
}

const remove = ({ call }: TestRuntime, workspaceId: string) =>
  call(workspaces.delete, { params: { workspaceId } })

/** Audit records are kept after a workspace is deleted. */
const withoutTrail = (names: readonly string[]) => names.filter(name => name !== 'audit')

/** Returns postings of deleted collections, which are removed in the background. */
function strayPostings(dataDir: string): unknown[] {
  return storeFile(dataDir).all(
    `SELECT segment FROM posting_block EXCEPT SELECT s.id FROM posting_segment s
      JOIN posting_index i ON i.id = s.posting_index JOIN collection c ON c.id = i.collection`,
  )
}

function requireGone(wb: TestRuntime, { workspaceId, bases }: { workspaceId: string; bases: Base[] }): void {
  const file = storeFile(wb.dataDir)
  for (const id of [workspaceId, ...bases.map(({ params }) => params.knowledgeBaseId)])
    expect(withoutTrail(file.tablesContaining(id))).toEqual([])
  const ids = new Set(file.all('SELECT id FROM collection').map(({ id }) => String(id)))
  for (const table of ['record', 'record_gone', 'embedder_model', 'vector_space'])
    for (const { collection } of file.all(`SELECT collection FROM ${table}`))
      expect(ids).toContain(String(collection))
  const spaces = new Set(file.all('SELECT id FROM vector_space').map(({ id }) => String(id)))
  for (const name of file.tables().filter(table => /^vec_/.test(table)))
    expect(spaces).toContain(name.split('_')[1])
}

describe('deleting a workspace', () => {
  test('S4.2-09 S1-07: removes all its rows from every table, and keeps rows of other workspaces', async () => {
    const wb = await open()
    const other = await furnished(wb)
    const before = storeFile(wb.dataDir).dump()
    const doomed = await furnished(wb)
    await remove(wb, doomed.workspaceId)
    requireGone(wb, doomed)
    const kept = (dump: string) => dump.replace(/^(?:sqlite_sequence|audit|posting_\w+): .*$/gm, '')
    expect(kept(storeFile(wb.dataDir).dump())).toBe(kept(before))
    await vi.waitFor(() => expect(strayPostings(wb.dataDir)).toEqual([]), { timeout: 20_000 })
    expect(await other.bases[0]!.search('rotor')).not.toEqual([])
    expect(wb.loggedProblems).toEqual([])
  })

  test('that fails halfway is cascade_incomplete, keeps the workspace, and can be retried', async () => {
    const failing = { in: Number.POSITIVE_INFINITY }
    const wb = await open({
      content: store => ({
        ...store,
        async write(changes, rows) {
          if (changes.some(({ op }) => op === 'dropCollection') && failing.in-- === 0)
            throw new Error('EIO at /var/lib/secret')
          return store.write(changes, rows)
        },
      }),
    })
    const doomed = await furnished(wb)
    failing.in = 1
    const refused = await wb.send(`DELETE /api/v1/workspaces/${doomed.workspaceId}`)
    expect(refused).toMatchObject({ status: 500, body: { error: { code: 'cascade_incomplete' } } })
    expect(refused.text).not.toContain('/var/lib')
    expect(wb.loggedProblems).toMatchObject([{ message: 'a workspace was deleted only partially' }, {}])
    const params = { workspaceId: doomed.workspaceId }
    expect(await wb.call(workspaces.show, { params })).toMatchObject(params)
    expect((await wb.call(kb.list, { params, query: {} })).items).toHaveLength(2)
    await remove(wb, doomed.workspaceId)
    requireGone(wb, doomed)
    await expect(remove(wb, doomed.workspaceId)).rejects.toMatchObject({ code: 'workspace_not_found' })
  })

  test('repeats the purge if a knowledge base was created in the meantime', async () => {
    const { rows, close } = await openEmbeddedStore({ path: ':memory:' })
    onTestFinished(close)
    const parts = { rows, pager: new Pager(rows, new Cursors('key')), clock: systemClock, log: silent }
    const key = { workspaceId: '5e0ab0c4-3f0f-4e51-9f27-4c2c7be6d0a1', knowledgeBaseId: 'late' }
    const table = tables.knowledgeBases
    let purges = 0
    const purge = async () => {
      purges++
      if (purges === 1) await rows.atomic([{ op: 'insert', table, row: { ...key, name: 'late' } }])
      if (purges === 2) await rows.atomic([{ op: 'delete', table, key: Object.values(key) }])
    }
    const room = new Workspaces({
      ...parts,
      purge: [purge],
      publish: async () => {},
      refitAfter: async (_, change) => change(),
    })
    const record = () => ({ op: 'requireNone', table, index: 'byName', prefix: ['none'] }) as const
    const body = { name: 'w', kind: 'local', url: null, keyspace: null, credentials: {}, rlacEnabled: false }
    await room.create({ ...key, ...body, kind: 'local' }, { record })
    await room.delete(key.workspaceId)
    expect(purges).toBe(2)
    await expect(room.get(key.workspaceId)).rejects.toMatchObject({ code: 'workspace_not_found' })
  })

  test('twice at the same time happens once', async () => {
    const wb = await open()
    const doomed = await furnished(wb)
    const outcomes = await Promise.allSettled([
      remove(wb, doomed.workspaceId),
      remove(wb, doomed.workspaceId),
    ])
    for (const outcome of outcomes)
      if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ code: 'workspace_not_found' })
    expect(outcomes.some(({ status }) => status === 'fulfilled')).toBe(true)
    requireGone(wb, doomed)
  })
})

describe('an attached collection', () => {
  async function attached(wb: TestRuntime) {
    const { workspaceId } = await makeWorkspace(wb)
    const { embeddingServiceId } = await makeMockService(wb, workspaceId)
    const key = { workspaceId, name: 'theirs' }
    const store = await openEmbeddedStore({ path: join(wb.dataDir, 'workbase.db') })
    onTestFinished(() => store.close())
    await seed(store.content, key)
    const attach = () =>
      makeBase(wb, {
        workspaceId,
        embeddingServiceId,
        name: 'theirs',
        attach: true,
        vectorCollection: 'theirs',
      })
    return { key, attach, collection: () => store.content.collection(key) }
  }

  async function seed(content: ContentStore, key: { workspaceId: string; name: string }) {
    const record = { id: 'r', documentId: null, chunkIndex: null, title: null, text: 'kept', payload: {} }
    const made = await content.write(
      [
        {
          op: 'createCollection',
          ...key,
          dimension: 3,
          metric: 'cosine',
          lexical: true,
          language: null,
          fitted: false,
        },
        { op: 'upsert', ...key, generation: 0, records: [{ ...record, vector: Float32Array.of(1, 0, 0) }] },
      ],
      [],
    )
    expect(made).toEqual({ ok: true })
  }

  test('is kept when its knowledge base is deleted, and can be attached again', async () => {
    const wb = await open()
    const { attach, collection } = await attached(wb)
    const base = await attach()
    expect(await base.search('kept')).toHaveLength(1)
    await base.delete()
    expect(await collection()).toMatchObject({ records: 1 })
    expect(await (await attach()).search('kept')).toHaveLength(1)
  })

  test('is kept when its workspace is deleted, and is a valid state of the store', async () => {
    const wb = await open()
    const { attach, collection, key } = await attached(wb)
    await attach()
    await remove(wb, key.workspaceId)
    expect(await collection()).toMatchObject({ records: 1 })
    expect(withoutTrail(storeFile(wb.dataDir).tablesContaining(key.workspaceId))).toEqual(['collection'])
    expect(await failedStoreChecks(wb.dataDir)).toEqual([])
  })
})

describe('a mock workspace', () => {
  test('never has texts and vectors in the file, and is purged when the next server starts', async () => {
    const wb = await open({ server: true })
    const { workspaceId } = await makeWorkspace(wb, { kind: 'mock' })
    const base = await makeBase(wb, { workspaceId })
    await base.ingest('An ephemeral passage on zeppelins.')
    expect(await base.search('zeppelins')).toHaveLength(1)
    const file = storeFile(wb.dataDir)
    expect(file.tablesContaining('zeppelins')).toEqual([])
    expect(file.tables().filter(name => /^vec_/.test(name))).toEqual([])
    expect(file.tablesContaining(workspaceId)).not.toEqual([])
    const stays = await furnished(wb)
    await wb.close()
    const command = await open({ dataDir: wb.dataDir })
    expect((await command.call(workspaces.list, { query: {} })).items).toHaveLength(2)
    await command.close()
    const next = await open({ dataDir: wb.dataDir, server: true })
    const left = (await next.call(workspaces.list, { query: {} })).items
    expect(left.map(workspace => workspace.workspaceId)).toEqual([stays.workspaceId])
    requireGone(next, { workspaceId, bases: [base] })
    expect(next.loggedProblems).toEqual([])
  })

  test('cannot have a fitted space, which is reported when the knowledge base is created', async () => {
    const wb = await open()
    const { workspaceId } = await makeWorkspace(wb, { kind: 'mock' })
    const fields = { provider: 'workbase', modelName: 'workbase-lsa', embeddingDimension: 128 }
    const { embeddingServiceId } = await makeMockService(wb, workspaceId, fields)
    await expect(makeBase(wb, { workspaceId, embeddingServiceId })).rejects.toMatchObject({
      code: 'driver_unavailable',
    })
  })
})

test('the built-in embedder has 128 dimensions, regardless of the service', async () => {
  const wb = await open()
  const { workspaceId } = await makeWorkspace(wb)
  const fields = { provider: 'workbase', modelName: 'workbase-lsa', embeddingDimension: 64 }
  const { embeddingServiceId } = await makeMockService(wb, workspaceId, fields)
  await expect(makeBase(wb, { workspaceId, embeddingServiceId })).rejects.toMatchObject({
    code: 'dimension_mismatch',
  })
  expect((await wb.call(kb.list, { params: { workspaceId }, query: {} })).items).toEqual([])
})

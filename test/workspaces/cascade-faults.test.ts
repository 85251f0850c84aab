import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { newId } from '../../src/base/id.ts'
import { kb } from '../../src/contract/knowledge.ts'
import { openEmbeddedStore } from '../../src/storage/open.ts'
import type { AnyTable, RowStore, Write } from '../../src/storage/rows.ts'
import { tables } from '../../src/storage/tables.ts'
import { ingestSentences } from '../harness/fitted-spaces.ts'
import { programPath } from '../harness/program.ts'
import { type Base, makeBase, makeWorkspace } from '../harness/resources.ts'
import { open, type TestRuntime, type TestRuntimeOptions } from '../harness/runtime.ts'
import { storeFile } from '../harness/store-file.ts'

/** Moments at which the process is killed; a long run uses more. */
const moments = Number(process.env.WB_TEST_KILLS ?? 8)

/** Every table with rows of a workspace, except the workspaces table. */
const ofWorkspaces = (Object.values(tables) as AnyTable[]).filter(
  table =>
    table !== tables.workspaces &&
    [table.key, ...Object.values(table.indexes)].flat().includes('workspaceId'),
)
/** Knowledge bases need more than a row, so they are created with the API. */
const planted = ofWorkspaces.filter(table => table !== tables.knowledgeBases && table !== tables.audit)

interface Doomed {
  readonly workspaceId: string
  readonly path: string
  readonly bases: readonly Base[]
}

/** Creates a workspace with knowledge bases and a row in every other table. */
async function furnished(wb: TestRuntime, basesMade = 3): Promise<Doomed> {
  const { workspaceId } = await makeWorkspace(wb)
  const bases: Base[] = []
  for (let n = 0; n < basesMade; n++) bases.push(await makeBase(wb, { workspaceId }))
  for (const base of bases) await ingestSentences(base, 0, 4)
  const { rows, close } = await openEmbeddedStore({ path: join(wb.dataDir, 'workbase.db') })
  const outcome = await rows.atomic(planted.map(table => plant(table, workspaceId)))
  expect(outcome).toEqual({ ok: true })
  await close()
  return { workspaceId, path: `/api/v1/workspaces/${workspaceId}`, bases }
}

function plant(table: AnyTable, workspaceId: string): Write {
  const columns = [table.key, ...Object.values(table.unique), ...Object.values(table.indexes)].flat()
  const values = columns.filter(column => column !== 'ordinal').map(column => [column, newId()])
  return { op: 'insert', table, row: { ...Object.fromEntries(values), workspaceId } }
}

/** Returns the names of tables with rows of the workspace. */
function holding(wb: Pick<TestRuntime, 'dataDir'>, workspaceId: string): string[] {
  const file = storeFile(wb.dataDir)
  const found = ofWorkspaces
    .filter(
      ({ name }) => file.all(`SELECT 1 FROM ${name} WHERE body ->> '$.workspaceId' = ?`, workspaceId)[0],
    )
    .map(({ name }) => name)
  file.close()
  return found
}

/** Checks that only the audit trail of a workspace is left. */
function requireGone(wb: Pick<TestRuntime, 'dataDir'>, { workspaceId, bases }: Doomed): void {
  expect(holding(wb, workspaceId)).toEqual(['audit'])
  const file = storeFile(wb.dataDir)
  for (const { params } of bases)
    expect(file.tablesContaining(params.knowledgeBaseId).filter(name => name !== 'audit')).toEqual([])
  expect(file.all('SELECT 1 FROM collection WHERE workspace_id = ?', workspaceId)).toEqual([])
  const ids = new Set(file.all('SELECT id FROM collection').map(({ id }) => String(id)))
  const spaces = new Set(file.all('SELECT id FROM vector_space').map(({ id }) => String(id)))
  for (const name of file.tables().filter(table => /^vec_/.test(table)))
    expect(spaces).toContain(name.split('_')[1])
  for (const table of ['record', 'vector_space'])
    for (const { collection } of file.all(`SELECT DISTINCT collection FROM ${table}`))
      expect(ids).toContain(String(collection))
  file.close()
}

/** Checks that the workspace works and its remaining knowledge bases are complete. */
async function requireUsable(wb: TestRuntime, { workspaceId, path, bases }: Doomed): Promise<void> {
  expect((await wb.send(`GET ${path}`)).body).toMatchObject({ workspaceId })
  const { items: listed } = (await wb.send('GET /api/v1/workspaces?limit=200')).body
  expect(listed).toContainEqual(expect.objectContaining({ workspaceId }))
  const { items } = await wb.call(kb.list, { params: { workspaceId }, query: {} })
  const left = new Set(items.map(({ knowledgeBaseId }) => knowledgeBaseId))
  for (const base of bases.filter(({ params }) => left.has(params.knowledgeBaseId))) {
    expect(await base.documents()).toHaveLength(4)
    expect(await base.search('tunnel')).toHaveLength(4)
  }
  const late = await makeBase(wb, { workspaceId })
  await late.ingest('A passage on zeppelins.')
  expect(await late.search('zeppelins')).toHaveLength(1)
}

test('the deletion covers all tables with rows of the workspace, except the audit trail', async () => {
  const wb = await open()
  const doomed = await furnished(wb)
  const other = await furnished(wb)
  const everywhere = ofWorkspaces.map(({ name }) => name)
  expect(holding(wb, doomed.workspaceId)).toEqual(everywhere)
  expect((await wb.send(`DELETE ${doomed.path}`)).status).toBe(204)
  requireGone(wb, doomed)
  expect(holding(wb, other.workspaceId)).toEqual(everywhere)
  await requireUsable(wb, other)
})

describe('a failed write of a deletion', () => {
  /** Runtimes that count writes and fail at the n-th, starting with 0. */
  const seams: Record<string, (write: <T>(go: () => Promise<T>) => Promise<T>) => TestRuntimeOptions> = {
    'control rows': write => ({
      rows: store => ({ ...forwarded(store), atomic: writes => write(() => store.atomic(writes)) }),
    }),
    content: write => ({
      content: store => ({ ...store, write: (...unit) => write(() => store.write(...unit)) }),
    }),
  }

  function forwarded(store: RowStore): RowStore {
    return {
      get: (table, key) => store.get(table, key),
      list: (table, query) => store.list(table, query),
      count: (table, index, prefix) => store.count(table, index, prefix),
      measure: (table, index, prefix) => store.measure(table, index, prefix),
      atomic: writes => store.atomic(writes),
      feed: store.feed,
    }
  }

  test.each(Object.keys(seams))(
    'S4.2-11 S7.3-cascade_incomplete S7.3-02: to %s leaves a working workspace, and a retry completes the deletion',
    { timeout: 120_000 },
    async seam => {
      let left = Number.POSITIVE_INFINITY
      const wb = await open(
        seams[seam]!(async go => {
          if (left-- === 0) throw new Error('EIO at /var/lib/secret')
          return go()
        }),
      )
      let failed = 0
      for (let n = 0; ; n++) {
        const doomed = await furnished(wb)
        left = n
        const sent = await wb.send(`DELETE ${doomed.path}`)
        left = Number.POSITIVE_INFINITY
        if (sent.status === 204) break
        expect(sent.text).not.toContain('/var/lib')
        const { code } = sent.body.error as { code: string }
        // The first write checks that the deletion can be audited, before anything is deleted.
        const isRehearsal = seam === 'control rows' && n === 0
        expect([sent.status, code]).toEqual(
          isRehearsal ? [503, 'control_plane_unavailable'] : [500, 'cascade_incomplete'],
        )
        if (isRehearsal) expect(holding(wb, doomed.workspaceId)).toHaveLength(ofWorkspaces.length)
        await requireUsable(wb, doomed)
        expect((await wb.send(`DELETE ${doomed.path}`)).status).toBe(204)
        requireGone(wb, doomed)
        failed++
      }
      expect(failed).toBe(seam === 'content' ? 3 : 2)
    },
  )
})

test(`S4.2-11: a deletion that was killed at ${moments} points completes after a restart and a retry`, {
  timeout: 60_000 + moments * 15_000,
}, async () => {
  const wb = await open()
  let halfway = 0
  for (let n = 0; n < moments; n++) {
    const doomed = await furnished(wb, 6)
    const child = fork(programPath('runtime/process'), [wb.dataDir])
    const ended = once(child, 'exit')
    onTestFinished(() => void child.kill('SIGKILL'))
    await once(child, 'message')
    child.send({ id: 0, line: `DELETE ${doomed.path}` })
    await sleep(Math.random() * 40)
    child.kill('SIGKILL')
    await ended
    const again = await open({ dataDir: wb.dataDir, server: true })
    const { status } = await again.send(`GET ${doomed.path}`)
    if (status === 200) {
      const { items } = await again.call(kb.list, { params: { workspaceId: doomed.workspaceId }, query: {} })
      if (items.length < doomed.bases.length) halfway++
      await requireUsable(again, doomed)
      expect((await again.send(`DELETE ${doomed.path}`)).status).toBe(204)
    } else expect(status).toBe(404)
    requireGone(again, doomed)
    await again.close()
  }
  if (moments >= 100) expect(halfway).toBeGreaterThan(0)
})

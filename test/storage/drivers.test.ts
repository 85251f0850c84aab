import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { openMemoryContent } from '../../src/storage/memory/content.ts'
import { openEmbeddedStore } from '../../src/storage/open.ts'
import { SqliteConnection } from '../../src/storage/sqlite/connection.ts'
import type { OpenStore } from '../../src/storage/storage-driver.ts'
import { tables } from '../../src/storage/tables.ts'
import { withoutOptionalFeatures } from '../fakes/without-optional-features.ts'
import { writeMigratedStore } from '../harness/migrated-store.ts'
import { contentSuite } from './content.suite.ts'
import { feedSuite } from './feed.suite.ts'
import { rowsSuite } from './rows.suite.ts'
import { scratchPath } from './scratch.ts'

async function openFile(threads = false) {
  const path = scratchPath()
  await writeMigratedStore(path)
  return openEmbeddedStore({ path, threads })
}

const threaded = { path: join(mkdtempSync(join(tmpdir(), 'workbase-store-')), 'workbase.db') }
let threadedStore: OpenStore | undefined
afterAll(async () => {
  await threadedStore?.close()
  rmSync(join(threaded.path, '..'), { recursive: true })
})

/** Opens one store for all tests, because its threads take longer to start than a test. Closing it empties it. */
async function openThreaded(): Promise<OpenStore> {
  if (!threadedStore) await writeMigratedStore(threaded.path)
  threadedStore ??= await openEmbeddedStore({ ...threaded, threads: true })
  const { content } = threadedStore
  return { ...threadedStore, close: () => emptyStore(threaded.path, content) }
}

async function emptyStore(path: string, content: OpenStore['content']): Promise<void> {
  const { database } = new SqliteConnection(path)
  for (const { name } of Object.values(tables)) database.exec(`DELETE FROM ${name}`)
  const collections = database
    .prepare<[], { workspaceId: string; name: string }>(
      'SELECT workspace_id workspaceId, name FROM collection',
    )
    .all()
  database.close()
  const dropped = await content.write(
    collections.map(collection => ({ op: 'dropCollection', ...collection })),
    [],
  )
  if (!dropped.ok) throw new Error(`collection ${dropped.at} is ${dropped.reason}`)
}

const embedded = {
  'embedded, on the spot': () => openFile(),
  'embedded, with threads': openThreaded,
  'embedded, in memory': () => openEmbeddedStore({ path: ':memory:' }),
}

for (const [name, open] of Object.entries(embedded)) {
  rowsSuite(name, open)
  contentSuite(name, open)
  feedSuite(name, open)
}

test.each(Object.entries({ ...embedded, 'embedded, with threads': () => openFile(true) }))(
  '%s: a closed store throws an error that says so',
  async (_, open) => {
    const { rows, close } = await open()
    await close()
    const failure = { code: 'control_plane_unavailable', message: 'the store is closed' }
    await expect(rows.get(tables.settings, ['a'])).rejects.toMatchObject(failure)
    const write = { op: 'insert', table: tables.settings, row: { name: 'a', value: '' } } as const
    await expect(rows.atomic([write])).rejects.toMatchObject(failure)
  },
)

contentSuite('memory', async () => {
  const store = await openEmbeddedStore({ path: ':memory:' })
  return { ...store, content: openMemoryContent(store.rows) }
})

contentSuite('without optional powers', async () => {
  const store = await openEmbeddedStore({ path: ':memory:' })
  return { ...store, content: withoutOptionalFeatures(openMemoryContent(store.rows)) }
})

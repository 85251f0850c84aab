import { openMemoryContent } from '../../src/storage/memory/content.ts'
import { openEmbeddedStore } from '../../src/storage/open.ts'
import { withoutOptionalFeatures } from '../fakes/without-optional-features.ts'
import { writeMigratedStore } from '../harness/migrated-store.ts'
import { contentSuite } from './content.suite.ts'
import { feedSuite } from './feed.suite.ts'
import { rowsSuite } from './rows.suite.ts'
import { scratchPath } from './scratch.ts'

async function openFile(threads: boolean) {
  const path = scratchPath()
  await writeMigratedStore(path)
  return openEmbeddedStore({ path, threads })
}

const embedded = {
  'embedded, on the spot': () => openFile(false),
  'embedded, with threads': () => openFile(true),
  'embedded, in memory': () => openEmbeddedStore({ path: ':memory:' }),
}

for (const [name, open] of Object.entries(embedded)) {
  rowsSuite(name, open)
  contentSuite(name, open)
  feedSuite(name, open)
}

contentSuite('memory', async () => {
  const store = await openEmbeddedStore({ path: ':memory:' })
  return { ...store, content: openMemoryContent(store.rows) }
})

contentSuite('without optional powers', async () => {
  const store = await openEmbeddedStore({ path: ':memory:' })
  return { ...store, content: withoutOptionalFeatures(openMemoryContent(store.rows)) }
})

/**
 * Computes the sentence vectors of the documentation that `wb quickstart` ingests, and writes them to
 * `src/sentence-model/sample-vectors.bin`, so that the first search needs no time for them. Run it before a release, after
 * `npm run build`. Passages that changed since then get their vectors when they are ingested.
 *
 * npm run sample-vectors
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sentenceSpace } from '../src/knowledge/sentence-space.ts'
import { toModelText } from '../src/knowledge/vector-space.ts'
import { encodeVectors, KnownVectors } from '../src/sentence-model/known-vectors.ts'
import { SentenceEncoder } from '../src/sentence-model/sentence-encoder.ts'
import { openEmbeddedStore } from '../src/storage/open.ts'

const root = join(import.meta.dirname, '..')
const target = join(root, 'src/sentence-model/sample-vectors.bin')
const dataDir = mkdtempSync(join(tmpdir(), 'workbase-samples-'))
try {
  const env = { ...process.env, WB_DATA_DIR: dataDir, WB_SEMANTIC_SEARCH: 'off', CI: 'true' }
  execFileSync(process.execPath, [join(root, 'bin/run.js'), 'quickstart'], { env, stdio: 'ignore' })
  const store = await openEmbeddedStore({ path: join(dataDir, 'workbase.db') })
  const { spaces } = store.content
  const texts: string[] = []
  for (const key of await spaces!.unfilled(sentenceSpace)) {
    const { generation } = (await store.content.collection(key))!
    // No record has a vector in the next generation.
    texts.push(...(await spaces!.unstaged(key, generation + 1, Number.MAX_SAFE_INTEGER)).map(toModelText))
  }
  await store.close()
  const known = KnownVectors.read(target)
  const encoder = new SentenceEncoder()
  const vectors = new Map(texts.map(text => [text, known.get(text) ?? encoder.embed([text])[0]!]))
  writeFileSync(target, encodeVectors(vectors))
  console.log(`${vectors.size} vectors in ${target}`)
} finally {
  rmSync(dataDir, { recursive: true, force: true })
}

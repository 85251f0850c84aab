/**
 * Measures how well a search finds the passages that answer questions in the words of the text, in other words, and as whole
 * paragraphs: over HTTP, with and without the sentence model, on the half of the questions that no setting was chosen on.
 *
 * npm run bench:questions -- [tune|held-out] [--pages] [--chunker PRESET]
 *
 * With `--pages`, the sections of a page are one Markdown document, and a hit counts for the sections that its chunk contains.
 */

import { basename } from 'node:path'
import { parseArgs } from 'node:util'
import { questionFolders, readGrades, readQuestions, reciprocalRank } from '../test/harness/beir.ts'
import { ingestCorpus } from './beir-base.ts'
import { ingestPages } from './pages.ts'
import { call, createBase, remove, type Server, startServer, untilFitted } from './server.ts'
import { mean, median, table } from './statistics.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { pages: { type: 'boolean' }, chunker: { type: 'string' } },
})
const half = positionals[0] ?? 'held-out'
const kinds = ['rephrased', 'plain', 'paragraph'] as const
const modes = {
  words: { hybrid: true, lexicalWeight: 1 },
  vectors: { hybrid: false },
  default: {},
}

interface Measured {
  readonly kind: string
  readonly rank: number
  readonly ms: number
}

interface Hit {
  readonly payload: { readonly documentId: string; readonly chunkText: string }
}

/** Returns a function that returns the sections of a hit. */
async function ingest(server: Server, base: string, folder: string): Promise<(hit: Hit) => string[]> {
  if (values.pages) {
    const sectionsOf = await ingestPages(server, base, folder)
    return ({ payload }) => sectionsOf(payload.documentId, payload.chunkText)
  }
  const sourceIds = await ingestCorpus(server, base, folder)
  return ({ payload }) => [sourceIds.get(payload.documentId)!]
}

async function measure(semantic: 'on' | 'off', folder: string): Promise<Map<string, Measured[]>> {
  const server = await startServer(undefined, { env: { WB_SEMANTIC_SEARCH: semantic } })
  try {
    const base = await createBase(server, { chunker: values.chunker })
    const sectionsOf = await ingest(server, base, folder)
    await untilFitted(server, base, 300)
    const grades = readGrades(folder)
    const measured = new Map<string, Measured[]>()
    for (const [name, mode] of Object.entries(modes)) {
      const results: Measured[] = []
      for (const { _id, text, metadata } of readQuestions(folder)) {
        if (metadata.half !== half) continue
        const started = performance.now()
        const hits = await call<Hit[]>(server, 'POST', `${base}/search`, {
          text,
          topK: 100,
          ...mode,
        })
        const ms = performance.now() - started
        const ranking = [...new Set(hits.flatMap(sectionsOf))]
        results.push({ kind: metadata.kind, rank: reciprocalRank(ranking, grades.get(_id)!), ms })
      }
      measured.set(name, results)
    }
    return measured
  } finally {
    await server.stop()
    remove(server.dataDir)
  }
}

const all = new Map<string, Measured[]>()
for (const folder of questionFolders)
  for (const semantic of ['off', 'on'] as const)
    for (const [mode, results] of await measure(semantic, folder)) {
      const name = mode === 'default' ? `default, sentence model ${semantic}` : mode
      if (mode !== 'default' && semantic === 'on') continue
      for (const key of [name, `${name}, ${basename(folder)}`])
        all.set(key, [...(all.get(key) ?? []), ...results])
    }
const rows = Array.from(all, ([name, results]) => [
  name,
  ...kinds.map(kind => mean(results.filter(one => one.kind === kind).map(one => one.rank)).toFixed(3)),
  median(results.map(one => one.ms)).toFixed(1),
])
console.log(`MRR of the half ${half}`)
console.log(table(['search', ...kinds, 'p50 ms'], rows))

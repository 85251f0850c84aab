/**
 * Measures lexical or hybrid search over HTTP: time from the request to the complete response, for one client at a time, and
 * CPU time of the server. The text is random, with word frequencies of Zipf's law.
 *
 * npm run bench:lexical -- [--hybrid] [--semantic] [--chunks 50000] [--queries 500]
 *
 * With `--hybrid`, the knowledge base uses the built-in embedder, which is fitted before the searches. Otherwise, vectors
 * are not compared. With `--semantic` too, it also uses the sentence model, which embeds about 17 chunks/s before the searches.
 */
import { parseArgs } from 'node:util'
import { cpuSecondsOf, memoryOf } from '../test/harness/process-usage.ts'
import { drawChunk, drawQuery, type RandomChunk, wordOf } from './random-chunks.ts'
import { call, createBase, remove, startServer, unlimited, untilFitted } from './server.ts'
import { quantile, table } from './statistics.ts'

const { values } = parseArgs({
  options: {
    hybrid: { type: 'boolean', default: false },
    semantic: { type: 'boolean', default: false },
    chunks: { type: 'string', default: '50000' },
    queries: { type: 'string', default: '500' },
  },
})
const chunkCount = Number(values.chunks)
const queryCount = Number(values.queries)
const recordsPerRequest = 500
/** Time for merges after the last write. */
const quietMs = 10_000
const fitSeconds = 3_600

const withUnknownWord = 'unknown word'

/** Searches by name, with the fields of their requests. */
const searches: Readonly<Record<string, object>> = values.hybrid
  ? {
      'hybrid, first pass': {},
      'hybrid, second pass': {},
      'hybrid, filter of 1 %': { filter: { share: 7 } },
      vector: { hybrid: false },
      lexical: { lexicalWeight: 1 },
    }
  : {
      'first pass': { lexicalWeight: 1 },
      'second pass': { lexicalWeight: 1 },
      'filter of 1 %': { lexicalWeight: 1, filter: { share: 7 } },
      'unfinished last word': { lexicalWeight: 1, prefix: true },
      [withUnknownWord]: { lexicalWeight: 1 },
    }

const textOf = (ranks: readonly number[]) => ranks.map(wordOf).join(' ')

const server = await startServer(undefined, {
  config: unlimited,
  env: { WB_SEMANTIC_SEARCH: values.semantic ? 'on' : 'off' },
})
try {
  const base = await createBase(server, values.hybrid ? {} : { dimension: 3 })
  const asked: RandomChunk[] = []
  const started = performance.now()
  for (let first = 0; first < chunkCount; first += recordsPerRequest) {
    const chunks = Array.from({ length: Math.min(recordsPerRequest, chunkCount - first) }, drawChunk)
    if (asked.length < queryCount)
      asked.push(...chunks.slice(0, Math.ceil((queryCount * recordsPerRequest) / chunkCount)))
    const records = chunks.map(({ title, text }, at) => ({
      id: `r${first + at}`,
      text: textOf(text),
      payload: { title: textOf(title), share: (first + at) % 100 },
    }))
    await call(server, 'POST', `${base}/records`, { records })
  }
  const seconds = (performance.now() - started) / 1_000
  console.log(`${chunkCount} chunks, ${Math.round(chunkCount / seconds)} chunks/s with their vectors`)
  if (values.hybrid) {
    await untilFitted(server, base, fitSeconds)
    const fitted = (performance.now() - started) / 1_000 - seconds
    console.log(`fitted ${fitted.toFixed(0)} s after the last write`)
  }
  await new Promise(resolve => setTimeout(resolve, quietMs))
  const queries = asked.slice(0, queryCount).map(chunk => drawQuery(chunk).join(' '))
  const rows: string[][] = []
  for (const [name, fields] of Object.entries(searches)) {
    const times: number[] = []
    const cpu = 1_000 * cpuSecondsOf(server.pid)
    for (const [at, query] of queries.entries()) {
      const text = name === withUnknownWord ? `${query} zeppelin${wordOf(at)}` : query
      const begun = performance.now()
      await call(server, 'POST', `${base}/search`, { text, ...fields })
      times.push(performance.now() - begun)
    }
    rows.push([
      name,
      ...[0.5, 0.95, 0.99].map(share => quantile(times, share).toFixed(1)),
      ((1_000 * cpuSecondsOf(server.pid) - cpu) / queries.length).toFixed(1),
    ])
  }
  console.log(`memory of the server: ${(memoryOf(server.pid).now / 1e6).toFixed(0)} MB\n`)
  console.log(table(['', 'p50 ms', 'p95 ms', 'p99 ms', 'CPU ms'], rows))
} finally {
  await server.stop()
  remove(server.dataDir)
}

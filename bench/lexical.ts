/**
 * Measures lexical search over HTTP: time from the request to the complete response, for one client at a time. The text is
 * random, with word frequencies of Zipf's law, and its vectors are not compared.
 *
 * npm run bench:lexical -- [--chunks 50000] [--queries 500]
 */
import { parseArgs } from 'node:util'
import { drawChunk, drawQuery, type RandomChunk, wordOf } from './random-chunks.ts'
import { call, createVectorBase, remove, startServer, unlimited } from './server.ts'
import { quantile, table } from './statistics.ts'

const { values } = parseArgs({
  options: { chunks: { type: 'string', default: '50000' }, queries: { type: 'string', default: '500' } },
})
const chunkCount = Number(values.chunks)
const queryCount = Number(values.queries)
const recordsPerRequest = 500
/** Time for merges after the last write. */
const quietMs = 10_000

const textOf = (ranks: readonly number[]) => ranks.map(wordOf).join(' ')

const server = await startServer(undefined, { config: unlimited })
try {
  const base = await createVectorBase(server, 3)
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
  console.log(`${chunkCount} chunks, ${Math.round(chunkCount / seconds)} chunks/s with their vectors\n`)
  await new Promise(resolve => setTimeout(resolve, quietMs))
  const queries = asked.slice(0, queryCount).map(chunk => drawQuery(chunk).join(' '))
  const rows: string[][] = []
  for (const [name, fields] of Object.entries({
    'first pass': {},
    'second pass': {},
    'filter of 1 %': { filter: { share: 7 } },
    'unfinished last word': { prefix: true },
  })) {
    const times: number[] = []
    for (const text of queries) {
      const begun = performance.now()
      await call(server, 'POST', `${base}/search`, { text, lexicalWeight: 1, ...fields })
      times.push(performance.now() - begun)
    }
    rows.push([name, ...[0.5, 0.95, 0.99].map(share => quantile(times, share).toFixed(1))])
  }
  console.log(table(['', 'p50 ms', 'p95 ms', 'p99 ms'], rows))
} finally {
  await server.stop()
  remove(server.dataDir)
}

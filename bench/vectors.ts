/**
 * Measures vector searches over HTTP: latency, throughput, recall, inserts, memory, and the first search after a restart.
 *
 * npm run bench:vectors -- [VECTORS [DIMENSION]]     defaults: 100000, 384
 */

import { memoryOf } from '../test/harness/process-usage.ts'
import { clusteredVectors } from './clustered-vectors.ts'
import { call, createBase, remove, type Server, startServer, unlimited } from './server.ts'
import { quantile, table } from './statistics.ts'

const [count = 100_000, dimension = 384] = process.argv.slice(2).map(Number)
const recordsPerRequest = 500
const concurrentInserts = 4
const queryCount = 200
const clients = 8
const limit = 10
/** One record in so many matches the filter. */
const filterShare = 100

const createVector = clusteredVectors(dimension)

interface KnowledgeBase {
  readonly server: Server
  readonly path: string
}

/** Stores vectors, and returns the seconds without the time to create the requests. */
async function insert({ server, path }: KnowledgeBase, stored: Float32Array[]): Promise<number> {
  let seconds = 0
  for (let from = 0; from < count; from += recordsPerRequest * concurrentInserts) {
    const bodies: string[] = []
    for (let at = from; at < Math.min(count, from + recordsPerRequest * concurrentInserts); ) {
      const records = []
      for (let size = 0; size < recordsPerRequest && at < count; size++, at++) {
        const vector = createVector()
        stored.push(vector)
        const payload = { filtered: at % filterShare === 0 }
        records.push({
          id: String(at),
          vector: Array.from(vector, value => Number(value.toFixed(6))),
          payload,
        })
      }
      bodies.push(JSON.stringify({ records }))
    }
    const started = performance.now()
    await Promise.all(
      bodies.map(async body => {
        const response = await fetch(new URL(`${path}/records`, server.url), {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body,
        })
        if (!response.ok) throw new Error(await response.text())
      }),
    )
    seconds += (performance.now() - started) / 1_000
  }
  return seconds
}

interface Hit {
  readonly id: string
}

async function search(
  { server, path }: KnowledgeBase,
  vector: Float32Array,
  filter?: object,
): Promise<Hit[]> {
  const body = { vector: Array.from(vector), limit, hybrid: false, ...(filter && { filter }) }
  return call<Hit[]>(server, 'POST', `${path}/search`, body)
}

/** Returns the latencies of searches one after another, in milliseconds. */
async function latencies(
  base: KnowledgeBase,
  queries: readonly Float32Array[],
  filter?: object,
): Promise<number[]> {
  const sample: number[] = []
  for (const query of queries) {
    const started = performance.now()
    await search(base, query, filter)
    sample.push(performance.now() - started)
  }
  return sample
}

/** Returns the queries per second of several clients. */
async function throughput(base: KnowledgeBase, queries: readonly Float32Array[]): Promise<number> {
  const started = performance.now()
  await Promise.all(Array.from({ length: clients }, () => latencies(base, queries)))
  return (clients * queries.length) / ((performance.now() - started) / 1_000)
}

/** Returns the share of the exact nearest vectors that a search finds, by dot product of normalized vectors. */
async function recall(
  base: KnowledgeBase,
  queries: readonly Float32Array[],
  stored: readonly Float32Array[],
) {
  let found = 0
  for (const query of queries) {
    const scores = stored.map((vector, at) => {
      let [dot, square] = [0, 0]
      for (let i = 0; i < dimension; i++) {
        dot += query[i]! * vector[i]!
        square += vector[i]! ** 2
      }
      return { at, score: dot / Math.sqrt(square) }
    })
    const nearest = scores.sort((a, b) => b.score - a.score).slice(0, limit)
    const ids = new Set((await search(base, query)).map(({ id }) => id))
    found += nearest.filter(({ at }) => ids.has(String(at))).length
  }
  return found / (queries.length * limit)
}

function latencyRow(name: string, sample: readonly number[]): string[] {
  return [name, quantile(sample, 0.5).toFixed(1), quantile(sample, 0.95).toFixed(1)]
}

let server = await startServer(undefined, { config: unlimited })
const path = await createBase(server, { dimension })
const stored: Float32Array[] = []
const seconds = await insert({ server, path }, stored)
const queries = Array.from({ length: queryCount }, createVector)
const filter = { filtered: true }
await latencies({ server, path }, queries.slice(0, 20))
const all = await latencies({ server, path }, queries)
const filtered = await latencies({ server, path }, queries, filter)
const perSecond = await throughput({ server, path }, queries)
const share = await recall({ server, path }, queries.slice(0, 20), stored)
const memory = (memoryOf(server.pid).now / 1e6).toFixed(0)
await server.stop()
const restarted = performance.now()
server = await startServer(server.dataDir, { config: unlimited })
const ready = performance.now() - restarted
const [first] = await latencies({ server, path }, queries.slice(0, 1))
const memoryAfterFirst = (memoryOf(server.pid).now / 1e6).toFixed(0)
await server.stop()
remove(server.dataDir)

console.log(`${count} vectors of ${dimension} dimensions\n`)
console.log(
  table(
    ['search', 'p50 ms', 'p95 ms'],
    [latencyRow('10 nearest', all), latencyRow(`10 nearest of 1 in ${filterShare}`, filtered)],
  ),
)
console.log(
  `\n${table(
    ['measure', 'value'],
    [
      [`queries/s with ${clients} clients`, perSecond.toFixed(0)],
      ['recall of the 10 nearest', share.toFixed(3)],
      ['durable inserts/s', (count / seconds).toFixed(0)],
      ['memory of the server after the searches, MB', memory],
      ['ready after a restart, ms', ready.toFixed(0)],
      ['first search after a restart, ms', first!.toFixed(0)],
      ['memory of the server after it, MB', memoryAfterFirst],
    ],
  )}`,
)

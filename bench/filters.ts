/**
 * Measures the evaluation of filters in one process: CPU time until the records that match are known, for a filter on a key
 * that no search has used yet, for another value of the key, for a repeated filter, and for one after a write. Each record
 * has a text and a payload of about 600 and 300 bytes. Then measures the CPU time of a vector scan over some of the records.
 *
 * npm run bench:filters -- [--records 100000]
 */
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { fullVisibility } from '../src/access/row-access.ts'
import type { CollectionKey, ContentRecord } from '../src/storage/content.ts'
import type { Filter } from '../src/storage/filter.ts'
import { openEmbeddedStore } from '../src/storage/open.ts'
import { loadScanModule } from '../src/storage/scan/module.ts'
import { Segment } from '../src/storage/scan/segment.ts'
import { AllowedRecords } from '../src/storage/sqlite/allowed-records.ts'
import { requireCollection } from '../src/storage/sqlite/collections.ts'
import { SqliteConnection } from '../src/storage/sqlite/connection.ts'
import { random } from './random-chunks.ts'
import { remove, temporaryFolder } from './server.ts'
import { table } from './statistics.ts'

const { values } = parseArgs({ options: { records: { type: 'string', default: '100000' } } })
const recordCount = Number(values.records)
const recordsPerWrite = 1_000
const dimension = 384
const queryCount = 100
const key: CollectionKey = { workspaceId: 'bench', name: 'bench' }

function recordOf(n: number): ContentRecord {
  const payload = {
    knowledgeBaseId: '7d2f4b0e-55a5-4f4e-9d0a-3d2f3c1b2a10',
    documentId: `7d2f4b0e-55a5-4f4e-9d0a-${String(Math.floor(n / 20)).padStart(12, '0')}`,
    title: `Title of document ${Math.floor(n / 20)}`,
    share: n % 100,
    created: new Date(1.7e12 + n * 60_000).toISOString(),
    tags: [`tag${n % 7}`, `tag${n % 11}`],
    source: `https://example.com/documents/${Math.floor(n / 20)}.html`,
  }
  const ids = { id: `r${n}`, documentId: null, chunkIndex: null }
  return { ...ids, title: null, text: 'word '.repeat(120), payload, vector: Float32Array.of(1) }
}

const folder = temporaryFolder()
const path = join(folder, 'workbase.db')
const store = await openEmbeddedStore({ path, threads: false })
const upsert = (records: ContentRecord[]) =>
  store.content.write([{ op: 'upsert', ...key, generation: 0, records }], [])
const settings = { dimension: 1, metric: 'dot', lexical: false, language: null, fitted: false } as const
await store.content.write([{ op: 'createCollection', ...key, ...settings }], [])
for (let from = 0; from < recordCount; from += recordsPerWrite)
  await upsert(
    Array.from({ length: Math.min(recordsPerWrite, recordCount - from) }, (_, n) => recordOf(from + n)),
  )

const connection = new SqliteConnection(path)
connection.makeReadOnly()

/** Returns the CPU time of an evaluation in milliseconds, and the number of records that match. */
function evaluate(allowed: AllowedRecords, filter: Filter): { ms: number; size: number } {
  const before = process.cpuUsage()
  const size = allowed.allowed(requireCollection(connection, key), {
    visibility: fullVisibility(),
    filter,
  })!.size
  const { user, system } = process.cpuUsage(before)
  return { ms: (user + system) / 1_000, size }
}

const below = (bound: number): Filter => ({ kind: 'range', key: 'share', operator: '<', bound })
const filters: Record<string, [Filter, Filter]> = {
  'number, 1 %': [below(1), below(2)],
  'number, 10 %': [below(10), below(11)],
  'number, 50 %': [below(50), below(51)],
  'not a number, 99 %': [
    { kind: 'not', operand: below(1) },
    { kind: 'not', operand: below(2) },
  ],
  'array, 42 %': [
    { kind: 'in', key: 'tags', values: ['tag1', 'tag2'] },
    { kind: 'in', key: 'tags', values: ['tag3', 'tag4'] },
  ],
  'distinct dates, 50 %': [
    {
      kind: 'range',
      key: 'created',
      operator: '>',
      bound: new Date(1.7e12 + recordCount * 30_000).toISOString(),
    },
    {
      kind: 'range',
      key: 'created',
      operator: '<',
      bound: new Date(1.7e12 + recordCount * 30_000).toISOString(),
    },
  ],
}
const rows: string[][] = []
for (const [name, [filter, other]] of Object.entries(filters)) {
  const allowed = new AllowedRecords(connection)
  const first = evaluate(allowed, filter)
  const next = evaluate(allowed, other)
  const repeated = evaluate(allowed, filter)
  await upsert([recordOf(0)])
  const afterWrite = evaluate(allowed, filter)
  const times = [first, next, repeated, afterWrite].map(({ ms }) => ms.toFixed(2))
  rows.push([name, String(first.size), ...times])
}
console.log(table(['filter', 'records', 'new key', 'new value', 'repeated', 'after a write'], rows))
connection.close()
await store.close()
remove(folder)

const drawVector = () => Float32Array.from({ length: dimension }, () => random() - 0.5)
const vectors = Array.from({ length: recordCount }, drawVector)
const segment = new Segment(loadScanModule(), dimension, 'cosine', records =>
  records.map(record => vectors[record]!),
)
for (const [record, vector] of vectors.entries()) segment.append(record, vector)
const queries = Array.from({ length: queryCount }, drawVector)
const scans = [1, 10, 24, 50, 100].map(percent => {
  const records = Array.from({ length: recordCount }, (_, record) => record)
  const allowed = new Set(records.filter(record => (record * 7_919) % 100 < percent))
  const before = process.cpuUsage()
  for (const query of queries) segment.nearest(query, 10, percent === 100 ? undefined : allowed)
  const { user, system } = process.cpuUsage(before)
  return [`${percent} %`, ((user + system) / 1_000 / queryCount).toFixed(2)]
})
console.log(`\n${table(['records', `CPU ms per scan of ${dimension} dimensions`], scans)}`)

/**
 * Measures the posting store next to the full-text index of SQLite (FTS5), with the same words: indexing, merges, size,
 * and searches over all rows and over some. The text is random, with word frequencies of Zipf's law.
 *
 * npm run bench:postings -- [--chunks 100000] [--queries 1000]
 */
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { SqliteConnection } from '../src/storage/sqlite/connection.ts'
import { PostingMerger } from '../src/storage/sqlite/postings/posting-merger.ts'
import { PostingReader } from '../src/storage/sqlite/postings/posting-reader.ts'
import { POSTING_SLICE_MAX, PostingWriter } from '../src/storage/sqlite/postings/posting-writer.ts'
import type { VisibleRecords } from '../src/storage/sqlite/postings/record-masks.ts'
import { postingsSchema, segmentBytesSchema } from '../src/storage/sqlite/postings/schema.ts'
import { drawChunk, drawQuery, random, wordOf } from './random-chunks.ts'
import { remove, temporaryFolder } from './server.ts'
import { quantile, table } from './statistics.ts'

const { values } = parseArgs({
  options: { chunks: { type: 'string', default: '100000' }, queries: { type: 'string', default: '1000' } },
})
const chunkCount = Number(values.chunks)
const queryCount = Number(values.queries)
const limit = 10
const index = { collection: 1, generation: 1 }

function countWords(ranks: readonly number[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const rank of ranks) counts.set(wordOf(rank), (counts.get(wordOf(rank)) ?? 0) + 1)
  return counts
}

function milliseconds(work: () => unknown): number {
  const started = performance.now()
  work()
  return performance.now() - started
}

function open(path: string): SqliteConnection {
  const connection = new SqliteConnection(path)
  connection.makeDurable()
  return connection
}

function commit<T>(connection: SqliteConnection, work: () => T): T {
  connection.prepare('BEGIN IMMEDIATE').run()
  const result = work()
  connection.prepare('COMMIT').run()
  return result
}

/** Returns the bytes of all pages in use, and the size of the file. */
function sizeOf(connection: SqliteConnection, path: string): string {
  connection.truncateLog()
  const pragma = (name: string) => connection.database.pragma(name, { simple: true }) as number
  const used = (pragma('page_count') - pragma('freelist_count')) * pragma('page_size')
  return `${(used / 1e6).toFixed(1)} MB (file ${(statSync(path).size / 1e6).toFixed(1)})`
}

const folder = temporaryFolder()
const paths = { postings: join(folder, 'postings.db'), fts: join(folder, 'fts.db') }
const chunks = Array.from({ length: chunkCount }, drawChunk)
const queries = Array.from({ length: queryCount }, () =>
  drawQuery(chunks[Math.floor(random() * chunkCount)]!),
)
const rows: (string | number)[][] = []
const rate = (ms: number) => `${Math.round((1_000 * chunkCount) / ms)} chunks/s`
const p = (sample: readonly number[], share: number) => quantile(sample, share).toFixed(2)

const store = open(paths.postings)
store.database.exec(postingsSchema + segmentBytesSchema)
const writer = new PostingWriter(store)
const merger = new PostingMerger(store, 'bench')
commit(store, () => {
  writer.create(index, { language: 'auto', analyzer: 1 })
  writer.activate(index)
})
const commits: number[] = []
const steps: number[] = []
for (let start = 0; start < chunkCount; start += POSTING_SLICE_MAX) {
  const slice = chunks.slice(start, start + POSTING_SLICE_MAX).map((chunk, at) => ({
    record: start + at + 1,
    title: countWords(chunk.title),
    text: countWords(chunk.text),
  }))
  commits.push(milliseconds(() => commit(store, () => writer.add(index, slice))))
  for (let isBusy = true; isBusy; )
    steps.push(
      milliseconds(() => {
        isBusy = commit(store, () => merger.step(Date.now()))
      }),
    )
}
const total = (sample: readonly number[]) => sample.reduce((sum, ms) => sum + ms, 0)
rows.push([
  'postings: index, without merges',
  rate(total(commits)),
  p(commits, 0.5),
  p(commits, 0.95),
  p(commits, 1),
])
rows.push([
  'postings: merges',
  `${(total(steps) / 1_000).toFixed(1)} s`,
  p(steps, 0.5),
  p(steps, 0.95),
  p(steps, 1),
])
rows.push(['postings: index, with merges', rate(total(commits) + total(steps)), '', '', ''])

const fts = open(paths.fts)
fts.database.exec(
  `CREATE VIRTUAL TABLE fts USING fts5(title, text, content='', contentless_delete=1, tokenize='ascii')`,
)
const insert = fts.prepare('INSERT INTO fts (rowid, title, text) VALUES (?, ?, ?)')
const textOf = (ranks: readonly number[]) => ranks.map(wordOf).join(' ')
const ftsCommits: number[] = []
for (let start = 0; start < chunkCount; start += POSTING_SLICE_MAX) {
  const slice = chunks
    .slice(start, start + POSTING_SLICE_MAX)
    .map(({ title, text }, at) => [start + at + 1, textOf(title), textOf(text)])
  ftsCommits.push(
    milliseconds(() =>
      commit(fts, () => {
        for (const values of slice) insert.run(...values)
      }),
    ),
  )
}
rows.push([
  'FTS5: index, with merges',
  rate(total(ftsCommits)),
  p(ftsCommits, 0.5),
  p(ftsCommits, 0.95),
  p(ftsCommits, 1),
])

const match = fts.prepare(
  `SELECT rowid AS record, -bm25(fts, 3.0, 1.0) AS score FROM fts WHERE fts MATCH ? ORDER BY score DESC, record LIMIT ${limit}`,
)
const reading = open(paths.postings)
const reader = new PostingReader(reading)
const everyHundredth = Float64Array.from({ length: chunkCount / 100 }, (_, n) => n * 100 + 1)
const reaches: Readonly<Record<string, VisibleRecords | undefined>> = {
  'all rows': undefined,
  'a filter of 1 %': { key: 'f', read: () => everyHundredth },
}
const search = (query: readonly string[], reach: VisibleRecords | undefined) =>
  reader.search(index.collection, {
    words: query.map(term => ({ terms: [term], weight: 1 })),
    limit,
    visible: reach,
  })
for (const [name, reach] of Object.entries(reaches)) {
  const first = milliseconds(() => search(queries[0]!, reach))
  const times = queries.map(query => milliseconds(() => search(query, reach)))
  rows.push([`postings: ${name}`, `first ${first.toFixed(1)} ms`, p(times, 0.5), p(times, 0.95), p(times, 1)])
}
const again = queries.map(query => milliseconds(() => search(query, undefined)))
rows.push(['postings: all rows, postings cached', '', p(again, 0.5), p(again, 0.95), p(again, 1)])
const expression = (query: readonly string[]) => query.map(word => `"${word}"`).join(' OR ')
const ftsTimes = queries.map(query => milliseconds(() => match.all(expression(query))))
rows.push(['FTS5: all rows', '', p(ftsTimes, 0.5), p(ftsTimes, 0.95), p(ftsTimes, 1)])

const { n } = store.prepare<{ n: number }>('SELECT count(*) AS n FROM posting_segment').get()!
console.log(`${chunkCount} chunks, ${queryCount} queries, ${n} segments\n`)
console.log(table(['', 'rate or first', 'p50 ms', 'p95 ms', 'max ms'], rows))
console.log(
  `\npostings: ${sizeOf(store, paths.postings)}, ${(reader.cachedBytes / 1e6).toFixed(1)} MB cached`,
)
console.log(`FTS5: ${sizeOf(fts, paths.fts)}`)
for (const connection of [reading, store, fts]) connection.close()
remove(folder)

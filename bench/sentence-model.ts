/**
 * Measures the built-in sentence model: load time, queries, chunks, memory, and queries during background work.
 *
 * npm run bench:sentence-model -- [QUERIES [CHUNKS]]     defaults: 200, 200
 */

import { SentenceEncoder } from '../src/sentence-model/sentence-encoder.ts'
import { SentenceModel } from '../src/sentence-model/sentence-model.ts'
import { cranfield, readEntries } from '../test/harness/beir.ts'
import { mean, median, quantile, table } from './statistics.ts'

const [queryCount = 200, chunkCount = 200] = process.argv.slice(2).map(Number)
const chunkCharacters = 1_000
const loads = 10

const queries = readEntries(cranfield, 'queries.jsonl')
  .map(({ text }) => text)
  .slice(0, queryCount)
const chunks = readEntries(cranfield, 'corpus.jsonl')
  .map(({ text }) => text.slice(0, chunkCharacters))
  .filter(text => text.length === chunkCharacters)
  .slice(0, chunkCount)

const megabytes = () => process.memoryUsage.rss() / 1e6

async function timed(run: () => unknown): Promise<number> {
  const started = performance.now()
  await run()
  return performance.now() - started
}

/** Returns the CPU time of each call in milliseconds. On a busy machine, it is what the call takes on an idle one. */
function cpuTimesOf(texts: readonly string[], run: (text: string) => unknown): number[] {
  return texts.map(text => {
    const before = process.cpuUsage()
    run(text)
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1_000
  })
}

async function timesOf(texts: readonly string[], run: (text: string) => unknown): Promise<number[]> {
  const times: number[] = []
  for (const text of texts) times.push(await timed(() => run(text)))
  return times
}

const rows: (string | number)[][] = []
function report(name: string, values: readonly number[], digits = 1): void {
  rows.push([name, median(values).toFixed(digits), quantile(values, 0.95).toFixed(digits)])
}

for (const threads of [1, 2]) {
  const before = megabytes()
  const model = new SentenceModel({ threads })
  const name = `${threads} worker${threads > 1 ? 's' : ''}`
  report(`${name}: first query, with start and load, ms`, [
    await timed(() => model.embed([queries[0]!], { priority: 'query' })),
  ])
  await model.embed(queries.slice(0, 20), { priority: 'background' })
  report(`${name}: query, ms`, await timesOf(queries, text => model.embed([text], { priority: 'query' })))
  let isDone = false
  const work = timed(() => model.embed(chunks, { priority: 'background' })).then(ms => {
    isDone = true
    return ms
  })
  const waits: number[] = []
  while (!isDone) {
    const text = queries[waits.length % queries.length]!
    waits.push(await timed(() => model.embed([text], { priority: 'query' })))
    await new Promise(resolve => setTimeout(resolve, 200))
  }
  report(`${name}: chunks/s, with five queries per second`, [(chunks.length / (await work)) * 1_000])
  report(`${name}: query during background work, ms`, waits)
  report(`${name}: memory, MB`, [megabytes() - before])
  await model.close()
}

report('load, ms', await timesOf(queries.slice(0, loads), () => new SentenceEncoder()))
report(
  'load, CPU ms',
  cpuTimesOf(queries.slice(0, loads), () => new SentenceEncoder()),
)
const encoder = new SentenceEncoder()
encoder.embed(queries.slice(0, 20))
const tokensIn = (texts: readonly string[]) =>
  mean(encoder.encode(texts).map(({ tokens }) => tokens.length)).toFixed(0)
const embed = (text: string) => encoder.embed([text])
report(`query of ${tokensIn(queries)} tokens, CPU ms`, cpuTimesOf(queries, embed))
const chunkTimes = cpuTimesOf(chunks, embed)
report(`chunk of ${tokensIn(chunks)} tokens, CPU ms`, chunkTimes)
report('chunks per CPU second', [1_000 / mean(chunkTimes)])
console.log(table(['', 'p50', 'p95'], rows))

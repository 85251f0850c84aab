/**
 * Measures the built-in sentence model: load time, queries, chunks, memory, and queries during background work.
 *
 * npm run bench:sentence-model -- [QUERIES [CHUNKS [RUNTIME]]]     defaults: 200, 200, none
 *
 * RUNTIME is a folder of onnxruntime-node, with which the model is measured too.
 */

import { resolve } from 'node:path'
import { NativeEncoder } from '../src/sentence-model/native-encoder.ts'
import { loadNativeRuntime } from '../src/sentence-model/native-runtime.ts'
import { SentenceEncoder } from '../src/sentence-model/sentence-encoder.ts'
import { SentenceModel } from '../src/sentence-model/sentence-model.ts'
import { cranfield, readEntries } from '../test/harness/beir.ts'
import { mean, median, quantile, table } from './statistics.ts'

const [, , queryCount = 200, chunkCount = 200, folder] = process.argv
const runtime = folder === undefined ? null : resolve(folder)
const chunkCharacters = 1_000
const loads = 10

const queries = readEntries(cranfield, 'queries.jsonl')
  .map(({ text }) => text)
  .slice(0, Number(queryCount))
const chunks = readEntries(cranfield, 'corpus.jsonl')
  .map(({ text }) => text.slice(0, chunkCharacters))
  .filter(text => text.length === chunkCharacters)
  .slice(0, Number(chunkCount))

const megabytes = () => process.memoryUsage.rss() / 1e6

async function timed(run: () => unknown): Promise<number> {
  const started = performance.now()
  await run()
  return performance.now() - started
}

/** Returns the CPU time of each call in milliseconds. On a busy machine, it is what the call takes on an idle one. */
async function cpuTimesOf(texts: readonly string[], run: (text: string) => unknown): Promise<number[]> {
  const times: number[] = []
  for (const text of texts) {
    const before = process.cpuUsage()
    await run(text)
    const { user, system } = process.cpuUsage(before)
    times.push((user + system) / 1_000)
  }
  return times
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

const engines = [
  { name: '1 worker', options: { threads: 1, runtime: null } },
  { name: '2 workers', options: { threads: 2, runtime: null } },
  ...(runtime === null ? [] : [{ name: '1 native worker', options: { threads: 1, runtime } }]),
]
for (const { name, options } of engines) {
  const before = megabytes()
  const model = new SentenceModel(options)
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
report('load, CPU ms', await cpuTimesOf(queries.slice(0, loads), () => new SentenceEncoder()))
const encoder = new SentenceEncoder()
const tokensIn = (texts: readonly string[]) =>
  mean(encoder.encode(texts).map(({ tokens }) => tokens.length)).toFixed(0)
const [queryTokens, chunkTokens] = [tokensIn(queries), tokensIn(chunks)]

async function reportEncoder(name: string, { embed }: { embed(texts: string[]): unknown }): Promise<void> {
  await embed(queries.slice(0, 20))
  const one = (text: string) => embed([text])
  report(`${name}query of ${queryTokens} tokens, CPU ms`, await cpuTimesOf(queries, one))
  const chunkTimes = await cpuTimesOf(chunks, one)
  report(`${name}chunk of ${chunkTokens} tokens, CPU ms`, chunkTimes)
  report(`${name}chunks per CPU second`, [1_000 / mean(chunkTimes)])
}

await reportEncoder('', { embed: texts => encoder.embed(texts) })
if (runtime !== null) {
  const loaded = loadNativeRuntime(runtime)
  const open = async () => (await NativeEncoder.open(loaded)).close()
  report('native: load, CPU ms', await cpuTimesOf(queries.slice(0, loads), open))
  const native = await NativeEncoder.open(loaded)
  await reportEncoder('native: ', { embed: texts => native.embed(texts) })
}
console.log(table(['', 'p50', 'p95'], rows))

/**
 * Measures vector search of Workbase next to LanceDB, usearch and sqlite-vec, on the same vectors: inserts, latency and
 * CPU time of searches with and without a filter, recall, size on disk, and memory. Linux only.
 *
 * npm run bench:comparison -- [VECTORS [DIMENSION [LIBRARY]]]     defaults: 100000, 384, all
 *
 * LIBRARY is a part of a name, such as `lance`. The other libraries are not dependencies of Workbase: the benchmark
 * installs them into a temporary folder, in the exact versions of `packages` in `vector-libraries.ts`, without running
 * their install scripts. To skip this, install them yourself, and set WB_BENCH_MODULES to the folder of `node_modules`.
 */
import { spawnSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readdirSync, statSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { runBenchProgram } from './bench-program.ts'
import { clusteredVectors } from './clustered-vectors.ts'
import type { InsertMeasures, RunOptions, SearchMeasures, SearchSample } from './comparison-run.ts'
import { remove, temporaryFolder } from './server.ts'
import { quantile, table } from './statistics.ts'
import { isInFilter, libraries, NEAREST, packages } from './vector-libraries.ts'

const [rows = 100_000, dimension = 384] = process.argv.slice(2, 4).map(Number)
const wanted = process.argv[4]?.toLowerCase() ?? ''
const QUERIES = 200

function installPackages(): string {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'package.json'), '{ "private": true }')
  const names = Object.entries(packages).map(([name, version]) => `${name}@${version}`)
  const flags = ['--ignore-scripts', '--omit=optional', '--no-audit', '--no-fund', '--loglevel=error']
  // The libraries require Node.js 22, but run on 20. npm passes its settings for this repository on.
  const here = ['--engine-strict=false', '--prefix', folder]
  const { status } = spawnSync('npm', ['install', ...flags, ...here, ...names], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  if (status === 0) return folder
  remove(folder)
  throw new Error(
    `npm could not install the other libraries. Install them into a folder (npm install ${names.join(' ')}), ` +
      'and set WB_BENCH_MODULES to it.',
  )
}

/** Rows with the highest scores for one query, unordered. */
class Best {
  readonly ids: number[] = []
  readonly #scores: number[] = []

  add(id: number, score: number): void {
    if (this.ids.length < NEAREST) {
      this.ids.push(id)
      this.#scores.push(score)
      return
    }
    const worst = this.#scores.indexOf(Math.min(...this.#scores))
    if (score <= this.#scores[worst]!) return
    this.ids[worst] = id
    this.#scores[worst] = score
  }
}

/** Writes the vectors and the queries, and returns the nearest vectors of each query. */
function writeData(folder: string): { all: Best[]; filtered: Best[] } {
  const createVector = clusteredVectors(dimension)
  const queries = Array.from({ length: QUERIES }, createVector)
  writeFileSync(join(folder, 'queries'), Buffer.concat(queries.map(({ buffer }) => Buffer.from(buffer))))
  const nearest = { all: queries.map(() => new Best()), filtered: queries.map(() => new Best()) }
  const file = openSync(join(folder, 'vectors'), 'w')
  for (let id = 0; id < rows; id++) {
    const vector = createVector()
    writeSync(file, new Uint8Array(vector.buffer))
    let square = 0
    for (const value of vector) square += value ** 2
    const norm = Math.sqrt(square)
    for (const [at, query] of queries.entries()) {
      let dot = 0
      for (let i = 0; i < dimension; i++) dot += query[i]! * vector[i]!
      nearest.all[at]!.add(id, dot / norm)
      if (isInFilter(id)) nearest.filtered[at]!.add(id, dot / norm)
    }
  }
  closeSync(file)
  return nearest
}

function sizeOf(path: string): number {
  const stats = statSync(path)
  if (!stats.isDirectory()) return stats.size
  return readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0)
}

function recall({ found }: SearchSample, nearest: readonly Best[]): string {
  const right = found.flatMap((ids, at) => ids.filter(id => nearest[at]!.ids.includes(id)))
  return (right.length / nearest.reduce((sum, { ids }) => sum + ids.length, 0)).toFixed(3)
}

function cells(sample: SearchSample | undefined, nearest: readonly Best[]): string[] {
  if (!sample) return ['none', '', '', '']
  const { milliseconds, cpu } = sample
  return [
    quantile(milliseconds, 0.5).toFixed(1),
    quantile(milliseconds, 0.95).toFixed(1),
    cpu.toFixed(1),
    recall(sample, nearest),
  ]
}

const run = async <Measures>(options: RunOptions) =>
  runBenchProgram<Measures>('comparison-run.ts', options).result

const modules = process.env.WB_BENCH_MODULES ?? installPackages()
const data = temporaryFolder()
try {
  const nearest = writeData(data)
  const searches: string[][] = []
  const stores: string[][] = []
  for (const { name } of libraries.filter(each => each.name.toLowerCase().includes(wanted))) {
    const folder = join(data, 'store')
    mkdirSync(folder)
    const options = { library: name, folder, modules, data, dimension, rows }
    const { seconds, cpuSeconds } = await run<InsertMeasures>({ ...options, step: 'insert' })
    const { all, filtered, megabytes } = await run<SearchMeasures>({ ...options, step: 'search' })
    searches.push([name, ...cells(all, nearest.all), ...cells(filtered, nearest.filtered)])
    stores.push([
      name,
      (rows / seconds).toFixed(0),
      ((1_000 * cpuSeconds) / (rows / 1_000)).toFixed(0),
      (sizeOf(folder) / 1e6).toFixed(0),
      megabytes.toFixed(0),
    ])
    remove(folder)
  }
  console.log(`${rows} vectors of ${dimension} dimensions, ${NEAREST} nearest, ${QUERIES} queries\n`)
  const heads = ['p50 ms', 'p95 ms', 'CPU ms', 'recall']
  console.log(table(['', ...heads, ...heads.map(head => `1 %: ${head}`)], searches))
  console.log(`\n${table(['', 'inserts/s', 'CPU ms per 1,000', 'disk MB', 'memory MB'], stores)}`)
} finally {
  remove(data)
  if (!process.env.WB_BENCH_MODULES) remove(modules)
}

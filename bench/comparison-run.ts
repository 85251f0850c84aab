/**
 * Inserts or searches the vectors of `comparison.ts` with one library, and prints {@link InsertMeasures} or
 * {@link SearchMeasures} as JSON. Each step runs in a separate process, so that memory and CPU time can be measured.
 */
import { closeSync, openSync, readSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { cpuSecondsOf, memoryOf } from '../test/harness/process-usage.ts'
import { type LibrarySettings, libraries, type VectorLibrary } from './vector-libraries.ts'

export interface RunOptions extends LibrarySettings {
  readonly library: string
  readonly step: 'insert' | 'search'
  /** Folder with the files `vectors` and `queries`: 32-bit floats. */
  readonly data: string
}

export interface InsertMeasures {
  /** Time of the writes and of the indexes. */
  readonly seconds: number
  /** CPU time of all threads in that time. */
  readonly cpuSeconds: number
}

/** Searches one after another. */
export interface SearchSample {
  readonly milliseconds: readonly number[]
  /** CPU time of all threads, in milliseconds per search. */
  readonly cpu: number
  readonly found: readonly (readonly number[])[]
}

export interface SearchMeasures {
  readonly all: SearchSample
  /** Undefined if the library has no filters. */
  readonly filtered?: SearchSample
  /** Resident set after the searches, in MB. In process: without that of the process before it opened the library. */
  readonly megabytes: number
}

const WARM_UP = 20

/** Reads vectors from a file, without the rest of the file in memory. */
function* readVectors(path: string, dimension: number, count: number): Generator<Float32Array[]> {
  const bytes = 4 * dimension
  const rows = statSync(path).size / bytes
  const file = openSync(path, 'r')
  for (let first = 0; first < rows; first += count) {
    const buffer = new ArrayBuffer(bytes * Math.min(count, rows - first))
    readSync(file, new Uint8Array(buffer), 0, buffer.byteLength, first * bytes)
    yield Array.from(
      { length: buffer.byteLength / bytes },
      (_, at) => new Float32Array(buffer, at * bytes, dimension),
    )
  }
  closeSync(file)
}

async function insert(library: VectorLibrary, options: RunOptions): Promise<InsertMeasures> {
  const inserter = await library.insert(options)
  let first = 0
  let [milliseconds, cpu] = [0, 0]
  const measure = async (work: () => unknown) => {
    const [started, usedBefore] = [performance.now(), 1_000 * cpuSecondsOf(inserter.pid)]
    await work()
    milliseconds += performance.now() - started
    cpu += 1_000 * cpuSecondsOf(inserter.pid) - usedBefore
  }
  for (const vectors of readVectors(join(options.data, 'vectors'), options.dimension, inserter.batchSize)) {
    const prepared = inserter.prepare({ first, vectors })
    await measure(() => inserter.write(prepared))
    first += vectors.length
  }
  await measure(() => inserter.finish())
  await inserter.close()
  return { seconds: milliseconds / 1_000, cpuSeconds: cpu / 1_000 }
}

async function search(library: VectorLibrary, options: RunOptions): Promise<SearchMeasures> {
  const before = memoryOf(process.pid).now / 1e6
  const searcher = await library.open(options)
  const queries = [...readVectors(join(options.data, 'queries'), options.dimension, 1)].flat()
  const sample = async (filtered: boolean): Promise<SearchSample> => {
    for (const query of queries.slice(0, WARM_UP)) await searcher.search(query, filtered)
    const milliseconds: number[] = []
    const found: number[][] = []
    const cpu = 1_000 * cpuSecondsOf(searcher.pid)
    for (const query of queries) {
      const started = performance.now()
      found.push(await searcher.search(query, filtered))
      milliseconds.push(performance.now() - started)
    }
    return { milliseconds, found, cpu: (1_000 * cpuSecondsOf(searcher.pid) - cpu) / queries.length }
  }
  const all = await sample(false)
  const filtered = searcher.canFilter ? await sample(true) : undefined
  const isInProcess = searcher.pid === process.pid
  const megabytes = memoryOf(searcher.pid).now / 1e6 - (isInProcess ? before : 0)
  await searcher.close()
  return { all, filtered, megabytes }
}

const options = JSON.parse(process.argv[2]!) as RunOptions
const library = libraries.find(({ name }) => name === options.library)!
const measures = await (options.step === 'insert' ? insert : search)(library, options)
process.stdout.write(JSON.stringify(measures))

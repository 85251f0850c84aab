/**
 * Measures an ingest of a corpus with the command line: chunking, embedding, indexing, durable storage, and
 * the fit that follows.
 *
 * npm run bench:ingest -- [DATA_FOLDER]
 *
 * With a number of random documents, measures their ingest through a server over HTTP:
 *
 * npm run bench:ingest -- --documents 5700 [--profile]
 */
import { spawnSync } from 'node:child_process'
import { parseArgs } from 'node:util'
import { cranfield } from '../test/harness/beir.ts'
import { measureIngest } from './ingest-many.ts'
import { remove, startServer, temporaryFolder, wb } from './server.ts'
import { median, table } from './statistics.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { documents: { type: 'string' }, profile: { type: 'boolean', default: false } },
})
if (values.documents !== undefined) {
  await measureIngest(Number(values.documents), values.profile)
  process.exit()
}

const runs = 5
const corpus = `${positionals[0] ?? cranfield}/corpus.jsonl`

interface Summary {
  added: number
  failed: unknown[]
}

function ingest(dataDir: string, ...flags: string[]): { seconds: number; documents: number } {
  const { command, args, env } = wb(dataDir, 'kb', 'ingest', 'cran', corpus, '--create', '--json', ...flags)
  const started = performance.now()
  const { stdout, stderr } = spawnSync(command, args, { env, encoding: 'utf8' })
  const seconds = (performance.now() - started) / 1_000
  const summary = JSON.parse(stdout) as Summary
  if (summary.failed.length > 0) throw new Error(stderr)
  return { seconds, documents: summary.added }
}

function row(name: string, sample: readonly { seconds: number; documents: number }[]): (string | number)[] {
  const seconds = median(sample.map(one => one.seconds))
  return [name, sample[0]!.documents, seconds.toFixed(2), (sample[0]!.documents / seconds).toFixed(0)]
}

const alone = Array.from({ length: runs }, () => {
  const dataDir = temporaryFolder()
  const result = ingest(dataDir)
  remove(dataDir)
  return result
})
const unfitted = Array.from({ length: runs }, () => {
  const dataDir = temporaryFolder()
  const result = ingest(dataDir, '--no-wait')
  remove(dataDir)
  return result
})
const served: { seconds: number; documents: number }[] = []
for (let at = 0; at < runs; at++) {
  const server = await startServer()
  served.push(ingest(server.dataDir))
  await server.stop()
  remove(server.dataDir)
}
console.log(
  table(
    ['process', 'documents', 'median s', 'documents/s'],
    [
      row('no server, embedder fitted', alone),
      row('no server, embedder not fitted (--no-wait)', unfitted),
      row('through a running server', served),
    ],
  ),
)

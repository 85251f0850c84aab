/**
 * Measures the duration of whole commands, alternating with `node -e 0`, and the time until a server is ready.
 *
 * npm run bench:startup -- [DATA_FOLDER]
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cranfield } from '../test/harness/beir.ts'
import { memoryOf } from '../test/harness/process-usage.ts'
import { compare, time } from './processes.ts'
import { call, remove, type Server, startServer, temporaryFolder, wb } from './server.ts'
import { median, table } from './statistics.ts'

const question =
  'what similarity laws must be obeyed when constructing aeroelastic models of heated high speed aircraft'
const corpus = `${process.argv[2] ?? cranfield}/corpus.jsonl`
/** Number of copies of the corpus, each with a distinct word, for a store of over 10,000 chunks. */
const copies = 6

async function untilReady(dataDir: string): Promise<{ readyMs: number; server: Server }> {
  const started = performance.now()
  const server = await startServer(dataDir)
  await call(server, 'GET', '/readyz')
  return { readyMs: performance.now() - started, server }
}

function residentMegabytes(pid: number): string {
  return (memoryOf(pid).now / 1_048_576).toFixed(0)
}

/** Creates a folder of BEIR files, one for each copy. */
function multiplied(): string {
  const folder = temporaryFolder()
  const entries = readFileSync(corpus, 'utf8').trim().split('\n')
  for (let copy = 0; copy < copies; copy++) {
    const lines = entries.map(line => {
      const entry = JSON.parse(line) as { _id: string; title: string; text: string }
      return JSON.stringify({ ...entry, _id: `${entry._id}-${copy}`, text: `${entry.text} copy${copy}` })
    })
    writeFileSync(join(folder, `copy-${copy}.jsonl`), lines.join('\n'))
  }
  return folder
}

const local = temporaryFolder()
const served = temporaryFolder()
const many = multiplied()
try {
  time(wb(local, 'kb', 'ingest', 'cran', corpus, '--create'))
  time(wb(served, 'kb', 'ingest', 'cran', many, '--create'))
  const { server } = await untilReady(served)
  const search = ['kb', 'search', 'cran', question]
  const rows = compare({
    'wb --version': wb(local, '--version'),
    'wb kb list --help': wb(local, 'kb', 'list', '--help'),
    'wb kb search, server running': wb(served, ...search),
    'wb kb search, no server': wb(local, ...search),
  })
  console.log(table(['command', 'median ms', 'ratio to node -e 0'], rows))
  await server.stop()

  const ready: number[] = []
  let resident = ''
  for (let at = 0; at < 7; at++) {
    const boot = await untilReady(served)
    ready.push(boot.readyMs)
    await new Promise(resolve => setTimeout(resolve, 1_000))
    resident = residentMegabytes(boot.server.pid)
    await boot.server.stop()
  }
  console.log(
    `\nwb serve: first 200 on /readyz after ${median(ready).toFixed(0)} ms (median of 7), idle RSS ${resident} MB`,
  )
} finally {
  remove(local)
  remove(served)
  remove(many)
}

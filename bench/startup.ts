/**
 * Start of whole processes, in turn with `node -e 0`, and the time until a server answers.
 *
 * npm run bench:startup
 */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { call, remove, type Server, startServer, temporaryFolder, wb } from './server.ts'
import { median, table } from './statistics.ts'

const runs = 15
const question =
  'what similarity laws must be obeyed when constructing aeroelastic models of heated high speed aircraft'
const corpus = `${process.argv[2] ?? '../shared/data/cranfield'}/corpus.jsonl`
/** Copies of the corpus, told apart by a word, that make a store of over 10,000 chunks. */
const copies = 6

interface Command {
  name: string
  dataDir: string
  args: string[]
}

function time(command: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): number {
  const started = performance.now()
  const { status, stderr } = spawnSync(command, args, { env, encoding: 'utf8' })
  if (status !== 0) throw new Error(`${args.join(' ')}: ${stderr}`)
  return performance.now() - started
}

function run(command: Command): number {
  const { command: node, args, env } = wb(command.dataDir, ...command.args)
  return time(node, args, env)
}

/** Each command in turn with bare Node, so that a drift of the machine meets both. */
function compare(commands: readonly Command[]): string[][] {
  const bare: number[] = []
  const times = new Map(commands.map(command => [command.name, [] as number[]]))
  for (const command of commands) run(command)
  for (let at = 0; at < runs; at++) {
    bare.push(time(process.execPath, ['-e', '0']))
    for (const command of commands) times.get(command.name)!.push(run(command))
  }
  const base = median(bare)
  const rows = [...times].map(([name, sample]) => [
    name,
    median(sample).toFixed(0),
    (median(sample) / base).toFixed(2),
  ])
  return [['node -e 0', base.toFixed(0), '1.00'], ...rows]
}

async function untilReady(dataDir: string): Promise<{ readyMs: number; server: Server }> {
  const started = performance.now()
  const server = await startServer(dataDir)
  await call(server, 'GET', '/readyz')
  return { readyMs: performance.now() - started, server }
}

function residentMegabytes(pid: number): string {
  const kilobytes = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return (Number(kilobytes) / 1_024).toFixed(0)
}

/** A folder of BEIR files, one for each copy. */
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
  run({ name: 'ingest', dataDir: local, args: ['kb', 'ingest', 'cran', corpus, '--create'] })
  run({ name: 'ingest', dataDir: served, args: ['kb', 'ingest', 'cran', many, '--create'] })
  const { server } = await untilReady(served)
  const search = ['kb', 'search', 'cran', question]
  const rows = compare([
    { name: 'wb --version', dataDir: local, args: ['--version'] },
    { name: 'wb kb list --help', dataDir: local, args: ['kb', 'list', '--help'] },
    { name: 'wb kb search, server running', dataDir: served, args: search },
    { name: 'wb kb search, no server', dataDir: local, args: search },
  ])
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

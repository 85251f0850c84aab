import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type CommandResult, createSandbox, type Sandbox } from '../commands/sandbox.ts'
import { sentence } from '../harness/fitted-spaces.ts'
import { openDatabase } from '../harness/store-file.ts'

/** Queries for inconsistencies in a store; each should return no rows. */
const faults = [
  'SELECT 1 FROM collection c WHERE records <> (SELECT count(*) FROM record WHERE collection = c.id)',
  'SELECT 1 FROM record WHERE document_id NOT IN (SELECT documentId FROM documents)',
  `SELECT 1 FROM documents d
    WHERE body ->> '$.chunkTotal' <> (SELECT count(*) FROM record WHERE document_id = d.documentId)`,
]

function inStore<T>(dataDir: string, read: (database: ReturnType<typeof openDatabase>) => T): T {
  const database = openDatabase(join(dataDir, 'workbase.db'), { readonly: true })
  try {
    return read(database)
  } finally {
    database.close()
  }
}

function requireSound(dataDir: string): void {
  inStore(dataDir, database => {
    expect(database.pragma('integrity_check', { simple: true })).toBe('ok')
    for (const fault of faults) expect(database.prepare(fault).all(), fault).toEqual([])
  })
}

async function succeed(running: Promise<CommandResult>): Promise<string> {
  const { status, stdout, stderr } = await running
  expect(status, stderr).toBe(0)
  return stdout
}

/** A data directory with a knowledge base of a few documents. */
async function filled(): Promise<Sandbox> {
  const here = createSandbox()
  for (let n = 0; n < 3; n++) writeFileSync(join(here.home, `note${n}.md`), sentence(n))
  const notes = [0, 1, 2].map(n => join(here.home, `note${n}.md`))
  await succeed(here.wb(['kb', 'ingest', 'notes', ...notes, '--create']))
  return here
}

test('eight concurrent first commands in a new directory use the store of the first', {
  timeout: 120_000,
}, async () => {
  const here = createSandbox()
  const first = Array.from({ length: 8 }, (_, n) =>
    here.spawnWb(['kb', 'ingest', 'notes', '-', '--name', `${n}.txt`, '--create'], { input: sentence(n) }),
  )
  await Promise.all(first.map(succeed))
  const listed = await succeed(here.wb(['documents', 'list', '--kb', 'notes', '--json']))
  expect((JSON.parse(listed) as unknown[]).length).toBe(8)
  requireSound(here.dataDir)
})

describe('twenty commands at once on one data directory', () => {
  test.each(['with no server', 'beside a server'])('%s', { timeout: 120_000 }, async way => {
    const here = await filled()
    const server = way === 'beside a server' ? await here.spawnServe() : undefined
    const numbers = [0, 1, 2, 3, 4]
    // Beside a server, commands only send requests to it, so they can share a process.
    const run = server ? here.wb : here.spawnWb
    const commands = numbers.flatMap(n => [
      run(['kb', 'list', '--json']),
      run(['kb', 'search', 'notes', 'the wing flutters', '--json']),
      run(['kb', 'ingest', 'notes', '-', '--name', `late${n}.txt`], { input: sentence(100 + n) }),
      run(['kb', 'create', `base${n}`]),
    ])
    const ended = await Promise.all(commands)
    expect(ended.filter(({ status }) => status !== 0)).toEqual([])
    for (const { stdout } of ended.filter((_, at) => at % 4 === 1))
      expect((JSON.parse(stdout) as unknown[]).length).toBeGreaterThanOrEqual(1)
    const bases = JSON.parse(await succeed(here.wb(['kb', 'list', '--json']))) as { name: string }[]
    expect(bases.map(({ name }) => name).sort()).toEqual([...numbers.map(n => `base${n}`), 'notes'])
    const documents = JSON.parse(await succeed(here.wb(['documents', 'list', 'notes', '--json']))) as {
      status: string
      sourceFilename: string
    }[]
    expect(documents.map(({ status }) => status)).toEqual(Array(8).fill('ready'))
    server?.process.kill('SIGTERM')
    expect((await server?.ended)?.status ?? 0).toBe(0)
    requireSound(here.dataDir)
  })
})

describe('kill -9', () => {
  test('an ingest without a server can be completed by repeating the command', {
    timeout: 120_000,
  }, async () => {
    const here = createSandbox()
    const total = 600
    const corpus = join(here.home, 'corpus.jsonl')
    const lines = Array.from({ length: total }, (_, n) =>
      JSON.stringify({ _id: `${n}`, title: `Run ${n}`, text: sentence(n).repeat(1 + (n % 20)) }),
    )
    writeFileSync(corpus, lines.join('\n'))
    const line = ['kb', 'ingest', 'runs', corpus, '--create']
    const stored = () => {
      try {
        return inStore(
          here.dataDir,
          db => db.prepare('SELECT count(*) FROM documents').pluck().get() as number,
        )
      } catch {
        return 0
      }
    }
    const child = spawn(process.execPath, [resolve('bin/run.js'), ...line], {
      cwd: here.home,
      env: here.env,
      stdio: 'ignore',
    })
    const exited = once(child, 'exit')
    while (stored() < 50 && child.exitCode === null) await new Promise(done => setTimeout(done, 2))
    child.kill('SIGKILL')
    expect(await exited).toEqual([null, 'SIGKILL'])
    const before = stored()
    expect(before).toBeLessThan(total)
    requireSound(here.dataDir)
    await succeed(here.spawnWb(line))
    expect(stored()).toBe(total)
    requireSound(here.dataDir)
    const [hit] = JSON.parse(
      await succeed(here.wb(['kb', 'search', 'runs', `run ${total - 1} of the tunnel`, '--json'])),
    ) as { payload: { title: string } }[]
    expect(hit!.payload.title).toBe(`Run ${total - 1}`)
  })

  test('a server killed during ingest and fit keeps all acknowledged data', {
    timeout: 120_000,
  }, async () => {
    const child = spawn(process.execPath, ['--import', 'tsx', 'bench/durability.ts', '--rounds', '3'])
    const said: string[] = []
    child.stdout.on('data', part => said.push(String(part)))
    const [status] = (await once(child, 'exit')) as [number | null]
    const words = said.join('')
    expect(words).toMatch(/^3 kills: [1-9]\d+ documents confirmed, 0 lost; the store was invalid 0 times/)
    expect(status, words).toBe(0)
  })
})

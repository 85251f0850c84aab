import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createSandbox } from '../commands/sandbox.ts'
import { FakeIo } from '../harness/fake-io.ts'
import { runInProcess } from '../harness/in-process.ts'

/** Creates I/O with a separate home folder and data directory. */
function newIo(options: { input?: string } = {}): FakeIo {
  const home = mkdtempSync(join(tmpdir(), 'wb-main-'))
  onTestFinished(() => rmSync(home, { recursive: true }))
  return new FakeIo({ ...options, cwd: home, env: { HOME: home, WB_DATA_DIR: join(home, 'data') } })
}

describe('main', () => {
  test('returns the exit status, and writes to the given streams', async () => {
    const io = newIo()
    const before = process.exitCode
    expect(await runInProcess(['explain', 'no_such_code'], io)).toBe(2)
    expect(io.stdout.text).toBe('')
    expect(io.stderr.text).toContain('"no_such_code" is not an error code')
    expect(process.exitCode).toBe(before)
  })

  test('does not read a missing argument from stdin', async () => {
    const io = newIo({ input: 'kb_name_taken\n' })
    expect(await runInProcess(['explain'], io)).toBe(0)
    expect(io.stdout.text.trim().split('\n').length).toBeGreaterThan(10)
    expect(io.stdin.readableEnded).toBe(false)
  })

  test('removes WB_API_KEY from its environment, and keeps other variables', async () => {
    const io = newIo()
    Object.assign(io.env, { WB_API_KEY: 'wb_live_secret', WB_WORKSPACE: 'demo' })
    expect(await runInProcess(['version'], io)).toBe(0)
    expect(io.env).toMatchObject({ WB_WORKSPACE: 'demo' })
    expect(io.env).not.toHaveProperty('WB_API_KEY')
  })

  test.each([
    ['api POST /api/v1/workspaces -d @body.json', 0, /"demo"/],
    ['kb ingest notes docs --create', 0, /^added\t1$/m],
    ['kb ingest notes docs/*.md --create', 0, /^added\t1$/m],
    ['quickstart docs refunds', 0, /All refunds/],
    ['config path --config docs/a.md', 0, /^\/.*\/docs\/a\.md$/m],
    ['serve --https-cert docs/a.md --https-key docs/a.md', 2, /docs\/a\.md contains no certificate/],
    ['trust docs', 2, /\/docs has no files that need trust/],
  ])('resolves the paths of wb %s from its working directory', async (line, status, printed) => {
    const io = newIo()
    mkdirSync(join(io.cwd, 'docs'))
    writeFileSync(join(io.cwd, 'docs', 'a.md'), 'All refunds take a week.')
    writeFileSync(join(io.cwd, 'body.json'), '{"name": "demo"}')
    expect(await runInProcess(line.split(' '), io)).toBe(status)
    expect(io.stdout.text + io.stderr.text).toMatch(printed)
  })

  test('ends with status 130 at a signal, and stops listening', async () => {
    const io = newIo()
    const endless = new PassThrough()
    Object.assign(io, { stdin: endless })
    const ended = runInProcess(['kb', 'ingest', 'notes', '-', '--name', 'a.jsonl', '--create'], io)
    // The first command of a run also loads its modules.
    await expect.poll(() => endless.listenerCount('readable'), { timeout: 30_000 }).toBe(1)
    io.signals.raise('SIGINT')
    endless.end('{"_id": "1", "text": "too late"}\n')
    expect(await ended).toBe(130)
    expect(io.stderr.text).toMatch(/interrupted/i)
    expect(io.signals.listeners.size).toBe(0)
  })
})

const lines: readonly { args: string[]; input?: string }[] = [
  { args: ['--help'] },
  { args: ['kb', 'nope'] },
  { args: ['kb', 'create', 'handbook'] },
  { args: ['kb', 'ingest', 'handbook', '-', '--name', 'a.md'], input: 'Refunds take a week.\n' },
  { args: ['kb', 'search', 'handbook', 'refunds'] },
  { args: ['kb', 'list', '--jq', '.[].name'] },
  { args: ['kb', 'show', 'missing'] },
  { args: ['documents', 'list'] },
  { args: ['doctor'] },
  { args: ['api', 'POST', '/api/v1/workspaces', '-d', '{}'] },
]

/** Returns the listeners, handles and open files of this process. */
function leftovers(dataDir: string) {
  const events = ['SIGINT', 'SIGTERM', 'SIGHUP', 'exit', 'uncaughtException', 'unhandledRejection'] as const
  const open = readdirSync('/proc/self/fd').flatMap(fd => {
    try {
      return [readlinkSync(`/proc/self/fd/${fd}`)]
    } catch {
      return []
    }
  })
  return {
    listeners: events.map(name => process.listenerCount(name)),
    sockets: process.getActiveResourcesInfo().filter(name => /TCP|Process|Worker|MessagePort/.test(name)),
    files: open.filter(path => path.startsWith(dataDir)),
  }
}

/** Returns what there is more of than before. Earlier tests in this process may still be closing sockets. */
function growth(before: ReturnType<typeof leftovers>, after: ReturnType<typeof leftovers>): string[] {
  const sockets = [...after.sockets]
  for (const name of before.sockets) if (sockets.includes(name)) sockets.splice(sockets.indexOf(name), 1)
  const listeners = after.listeners.flatMap((count, at) =>
    count > before.listeners[at]! ? [`${count} listeners of event ${at}`] : [],
  )
  return [...sockets, ...listeners, ...after.files]
}

test.runIf(process.platform === 'linux')(
  'fifty commands leave no listeners, connections, processes or open files behind',
  async () => {
    const sandbox = createSandbox()
    const served = createSandbox()
    const { url } = await served.serve()
    const runAll = async (more: readonly string[]) => {
      for (const { args, input } of lines) await sandbox.wb([...args, ...more], { input })
    }
    // Native parts of jq and SQLite are loaded once per process.
    await runAll([])
    const before = leftovers(sandbox.home)
    for (const more of [[], ['--url', url], [], ['--url', url], []]) await runAll(more)
    expect(before.files).toEqual([])
    await expect.poll(() => growth(before, leftovers(sandbox.home))).toEqual([])
  },
)

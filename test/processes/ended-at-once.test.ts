import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join, resolve } from 'node:path'
import { spawn } from '@lydell/node-pty'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { openClient } from '../../src/client/client.ts'
import { agents } from '../../src/contract/agents.ts'
import { createSandbox } from '../commands/sandbox.ts'
import { isAlive } from '../harness/is-alive.ts'
import { makeWorkspace } from '../harness/resources.ts'

const program = resolve('test/fixtures/mcp/stdio-server.mjs')

/** A folder whose servers can start a tool server that ignores requests to exit. */
function withToolServer() {
  const here = createSandbox()
  const started = join(here.dataDir, 'started')
  const run = `echo $$ >"$1"; exec "${process.execPath}" "${program}" stubborn`
  const local = { id: 'local', command: 'sh', args: ['-c', run, 'sh', started] }
  mkdirSync(here.dataDir, { recursive: true })
  writeFileSync(
    join(here.dataDir, 'workbase.yaml'),
    JSON.stringify({ version: 1, mcp: { stdioServers: [local] } }),
  )
  /** Makes the server at an address start the tool server. */
  const start = async (baseUrl: string): Promise<number> => {
    const client = openClient({ baseUrl, fetch })
    const { workspaceId } = await makeWorkspace(client)
    await client.call(agents.tools, { params: { workspaceId } })
    const pid = Number(readFileSync(started, 'utf8'))
    onTestFinished(() => void (isAlive(pid) && process.kill(pid, 'SIGKILL')))
    return pid
  }
  return { here, start }
}

describe.runIf(process.platform !== 'win32')('a tool server exits with the server that started it', () => {
  test('on a second Ctrl-C while the first is pending', async () => {
    const { here, start } = withToolServer()
    const server = await here.spawnServe()
    const pid = await start(server.url)
    server.process.kill('SIGINT')
    await vi.waitFor(async () => {
      server.process.kill('SIGINT')
      expect(server.process.signalCode ?? server.process.exitCode).not.toBeNull()
    }, 10_000)
    await server.ended
    await expect.poll(() => isAlive(pid)).toBe(false)
  })

  test('when its terminal is closed, which sends two signals, after shutdown', async () => {
    const { here, start } = withToolServer()
    const { env, home: cwd } = here
    const args = [resolve('bin/run.js'), 'serve', '--port', '0', '--json']
    const server = spawn(process.execPath, args, { env, cwd, cols: 500 })
    onTestFinished(() => void (isAlive(server.pid) && process.kill(server.pid, 'SIGKILL')))
    const ended = new Promise<{ signal?: number }>(done => server.onExit(done))
    const ready = await new Promise<string>(done => server.onData(done))
    const { url } = JSON.parse(ready.split('\n')[0]!)
    const pid = await start(url)
    const isReady = () =>
      fetch(`${url}/readyz`)
        .then(({ ok }) => ok)
        .catch(() => false)
    expect(await isReady()).toBe(true)
    // Closes the other end of the terminal, so output fails.
    ;(server as unknown as { destroy(): void }).destroy()
    await expect.poll(async () => !(await isReady()), { timeout: 10_000 }).toBe(true)
    process.kill(server.pid, 'SIGHUP')
    // An exit by the signal shows that the process did not crash.
    expect(await ended).toMatchObject({ signal: constants.signals.SIGHUP })
    // A server that exits without shutdown leaves this file.
    expect(existsSync(join(here.dataDir, 'serve.json'))).toBe(false)
    expect(isAlive(pid)).toBe(false)
  })
})

test.runIf(process.platform !== 'win32').each(['keys create', 'playground'])(
  'wb %s exits without a crash when its terminal is closed',
  async words => {
    const { env, home: cwd, wb } = createSandbox()
    await wb(['kb', 'create', 'handbook'])
    const args = [resolve('bin/run.js'), ...words.split(' ')]
    const asking = spawn(process.execPath, args, { env: { ...env, TERM: 'xterm-256color' }, cwd })
    onTestFinished(() => void (isAlive(asking.pid) && process.kill(asking.pid, 'SIGKILL')))
    const ended = new Promise<{ signal?: number }>(done => asking.onExit(done))
    let shown = ''
    asking.onData(text => {
      shown += text
    })
    await expect.poll(() => shown).toMatch(/LABEL|ask handbook/)
    ;(asking as unknown as { destroy(): void }).destroy()
    expect(await ended).toMatchObject({ signal: constants.signals.SIGHUP })
  },
)

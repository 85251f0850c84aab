import { spawn } from 'node:child_process'
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startDiscoveryServer } from '../commands/discovery.ts'
import { createSandbox, type Sandbox } from '../commands/sandbox.ts'
import { FakeIo } from '../harness/fake-io.ts'
import { runInProcess } from '../harness/in-process.ts'

type Said = Record<string, unknown>

/** A server, and the JSON lines of its output that are not log records. */
interface Watched {
  readonly url: string
  /** Waits for the next event with a name, including earlier ones that were not read. */
  event(name: string): Promise<Said>
  /** Sends SIGTERM, and waits for the exit status. */
  stop(): Promise<number | null>
}

const serveLine = ['serve', '--port', '0', '--json']

/** Starts a server in a process. */
async function watchProcess(here: Sandbox): Promise<Watched & { pid: number | undefined }> {
  const child = spawn(process.execPath, ['bin/run.js', ...serveLine], { env: here.env })
  onTestFinished(() => void child.kill('SIGKILL'))
  child.stderr.resume()
  const ended = new Promise<number | null>(done => child.on('close', done))
  const stop = () => {
    child.kill('SIGTERM')
    return ended
  }
  return { ...(await watchEvents(child.stdout)), stop, pid: child.pid }
}

/** Starts a server in this process. */
async function watch(here: Sandbox, args: string[] = [], env: Record<string, string> = {}): Promise<Watched> {
  const io = new FakeIo({ env: { ...here.env, ...env }, cwd: here.home, keyCost: here.keyCost })
  const events = watchEvents(io.stdout)
  const ended = runInProcess([...serveLine, ...args], io)
  const stop = () => {
    io.signals.raise('SIGTERM')
    return ended
  }
  onTestFinished(() => void stop())
  return { ...(await events), stop }
}

async function watchEvents(stdout: NodeJS.EventEmitter): Promise<Pick<Watched, 'url' | 'event'>> {
  const said: Said[] = []
  let rest = ''
  stdout.on('data', part => {
    const lines = (rest + String(part)).split('\n')
    rest = lines.pop()!
    for (const event of lines.map(line => JSON.parse(line) as Said))
      if (event.event !== undefined) said.push(event)
  })
  const until = async <T>(find: () => T | undefined): Promise<T> => {
    for (let tries = 0; tries < 2_000; tries++) {
      const found = find()
      if (found !== undefined) return found
      await setTimeout(10)
    }
    throw new Error(`it said ${JSON.stringify(said)}`)
  }
  const event = (name: string) =>
    until(() => {
      const at = said.findIndex(one => one.event === name)
      return at < 0 ? undefined : said.splice(at, 1)[0]
    })
  const first = await until(() => said[0])
  return { url: String(first.url), event }
}

async function ask(url: string, line: string, json?: unknown, more: Record<string, string> = {}) {
  const [method, path] = line.split(' ') as [string, string]
  const answer = await fetch(url + path, {
    method,
    headers: { ...(json !== undefined && { 'content-type': 'application/json' }), ...more },
    ...(json !== undefined && { body: JSON.stringify(json) }),
  })
  const text = await answer.text()
  return { status: answer.status, text, headers: answer.headers, body: JSON.parse(text) as Said }
}

const accepted = { status: 202, body: { ok: true, note: expect.any(String) } }

describe('POST /setup/restart', () => {
  test('S4.2-33 S4.2-35: applies new values in the same process on the same port', async () => {
    const here = createSandbox()
    const server = await watchProcess(here)
    await ask(server.url, 'POST /api/v1/workspaces', { name: 'kept' })
    await ask(server.url, 'POST /setup/env', { values: { OPENROUTER_API_KEY: 'sk-1' } })
    expect((await ask(server.url, 'GET /setup-status')).body).toMatchObject({
      hasChatProvider: false,
      managedEnv: { present: true, configuredKeys: [] },
    })
    const announced = readFileSync(join(here.dataDir, 'serve.json'), 'utf8')
    expect(await ask(server.url, 'POST /setup/restart')).toMatchObject(accepted)
    expect(await server.event('restarted')).toMatchObject({ url: server.url, pid: server.pid })
    expect((await ask(server.url, 'GET /setup-status')).body).toMatchObject({
      workspacesCount: 1,
      hasChatProvider: true,
      managedEnv: { configuredKeys: ['OPENROUTER_API_KEY'] },
    })
    expect(readFileSync(join(here.dataDir, 'serve.json'), 'utf8')).toBe(announced)
    expect((await here.wb(['serve', '--port', '0'])).stderr).toContain('is already served')
    expect(await server.stop()).toBe(0)
    await expect(fetch(server.url)).rejects.toThrow()
  })

  test('finishes pending requests and refuses no connections', async () => {
    const server = await watch(createSandbox())
    const unfinished = request(`${server.url}/api/v1/workspaces`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'content-length': 15 },
    })
    const answered = new Promise<number | undefined>((done, fail) =>
      unfinished.once('response', ({ statusCode }) => done(statusCode)).once('error', fail),
    )
    unfinished.write('{"name"')
    await setTimeout(100)
    await ask(server.url, 'POST /setup/restart')
    const seen = new Set<number>()
    while (!seen.has(503)) seen.add((await ask(server.url, 'GET /readyz')).status)
    expect((await ask(server.url, 'GET /healthz')).status).toBe(200)
    unfinished.end(':"demo"}')
    expect(await answered).toBe(201)
    await server.event('restarted')
    expect((await ask(server.url, 'GET /readyz')).body).toMatchObject({ status: 'ready', workspaces: 1 })
  })

  test('rejects an invalid configuration without a change, and applies a corrected one', async () => {
    const here = createSandbox()
    const file = join(here.home, 'wb.yaml')
    const write = (text: string) => writeFileSync(file, `version: 1\n${text}\n`)
    write('runtime: { requestIdHeader: X-One }')
    const server = await watch(here, ['--config', file])
    for (const broken of [
      'runtime: { port: none }',
      'auth: { mode: apiKey, bootstrapTokenRef: "env:MISSING" }',
    ]) {
      write(broken)
      await ask(server.url, 'POST /setup/restart')
      expect(await server.event('not restarted')).toMatchObject({ error: { code: 'validation_error' } })
      expect((await ask(server.url, 'GET /readyz')).headers.has('x-one')).toBe(true)
    }
    write('runtime: { requestIdHeader: X-Two }')
    await ask(server.url, 'POST /setup/restart')
    await server.event('restarted')
    const { status, headers } = await ask(server.url, 'GET /readyz')
    expect([status, headers.has('x-one'), headers.has('x-two')]).toEqual([200, false, true])
  })

  test('does not apply an untrusted file that appeared in its folder [security rule 6]', async () => {
    const here = createSandbox()
    const server = await watch(here)
    writeFileSync(join(here.home, 'workbase.yaml'), 'version: 1\nruntime: { requestIdHeader: X-Evil }\n')
    await ask(server.url, 'POST /setup/restart')
    const { error } = (await server.event('not restarted'))!
    expect((error as Said).message).toContain('workbase.yaml')
    expect((await ask(server.url, 'GET /readyz')).headers.has('x-evil')).toBe(false)
  })

  test('does not listen on a network address that would be rejected at startup [security rule 2]', async () => {
    const here = createSandbox()
    const file = join(here.home, 'wb.yaml')
    const closed =
      'version: 1\nauth: { mode: apiKey, anonymousPolicy: reject, bootstrapTokenRef: "env:BOOT" }\n'
    writeFileSync(file, closed)
    const token = 'b'.repeat(32)
    const server = await watch(here, ['--config', file, '--host', '0.0.0.0'], { BOOT: token })
    writeFileSync(file, 'version: 1\n')
    const bearer = { authorization: `Bearer ${token}` }
    expect(await ask(server.url, 'POST /setup/restart', undefined, bearer)).toMatchObject(accepted)
    await server.event('not restarted')
    expect((await ask(server.url, 'GET /api/v1/workspaces')).status).toBe(401)
  })

  test('combines two concurrent requests, and a signal during the restart stops the server', async () => {
    const server = await watch(createSandbox())
    const twice = await Promise.all([1, 2].map(() => ask(server.url, 'POST /setup/restart')))
    expect(twice.map(({ status }) => status)).toContain(202)
    expect(await server.stop()).toBe(0)
    await expect(fetch(server.url)).rejects.toThrow()
  })
})

describe('rescue mode', () => {
  const token = 'b'.repeat(32)
  const closed =
    'version: 1\nauth: { mode: apiKey, anonymousPolicy: reject, bootstrapTokenRef: "env:BOOT" }\n'

  /** A data directory whose store is damaged by `spoil`. */
  function spoilt(spoil: (store: string) => void): Sandbox {
    const here = createSandbox()
    mkdirSync(here.dataDir, { mode: 0o700 })
    spoil(join(here.dataDir, 'workbase.db'))
    return here
  }

  test.each<[what: string, spoil: (store: string) => void, message: string]>([
    ['is no database', store => writeFileSync(store, 'no database '.repeat(1_000)), 'not a database'],
    ['is a folder', store => mkdirSync(store), 'there is a folder at its path'],
  ])(
    'S7.3-control_plane_unavailable: a store that %s starts a server in rescue mode until it is repaired',
    async (_what, spoil, message) => {
      const here = spoilt(spoil)
      const server = await watch(here)
      expect(await server.event('rescue')).toMatchObject({
        url: server.url,
        error: { code: 'control_plane_unavailable', message: expect.stringContaining(message) },
      })
      for (const probe of ['GET /healthz', 'GET /readyz'])
        expect(await ask(server.url, probe)).toMatchObject({
          status: 503,
          body: { status: 'degraded', reason: 'control_plane_unavailable' },
        })
      expect((await ask(server.url, 'GET /setup-status')).body).toEqual({
        setupComplete: false,
        workspacesCount: 0,
        controlPlane: { kind: 'unavailable', healthy: false },
        hasChatProvider: false,
        hasAstraCreds: false,
        managedEnv: { path: join(here.dataDir, '.env'), present: false, writable: true, configuredKeys: [] },
        bootError: { code: 'control_plane_unavailable', message: expect.stringContaining(message) },
      })
      for (const line of [
        'GET /api/v1/workspaces',
        'POST /api/v1/workspaces',
        'GET /api/v1/openapi.json',
        'GET /api/v1/nothing',
        'GET /auth/config',
      ]) {
        const refused = await ask(server.url, line)
        expect([line, refused.status, (refused.body.error as Said).code]).toEqual([
          line,
          503,
          'control_plane_unavailable',
        ])
        expect(refused.headers.get('x-content-type-options')).toBe('nosniff')
        expect(refused.headers.get('x-request-id')).toBe((refused.body.error as Said).requestId)
      }
      for (const path of ['/', '/version', '/features', '/error-codes', '/docs'])
        expect((await fetch(server.url + path)).status, path).toBe(200)
      const evil = { origin: 'https://evil.example' }
      expect((await ask(server.url, 'POST /setup/restart', undefined, evil)).status).toBe(403)

      expect((await ask(server.url, 'POST /setup/env', { values: { OPENAI_API_KEY: 'o' } })).status).toBe(200)
      expect(await ask(server.url, 'POST /setup/restart')).toMatchObject(accepted)
      await server.event('rescue')
      renameSync(join(here.dataDir, 'workbase.db'), join(here.dataDir, 'aside'))
      await ask(server.url, 'POST /setup/restart')
      expect(await server.event('restarted')).toMatchObject({ url: server.url })
      expect((await ask(server.url, 'GET /readyz')).status).toBe(200)
      expect((await ask(server.url, 'GET /setup-status')).body).toMatchObject({
        controlPlane: { kind: 'sqlite', healthy: true },
        managedEnv: { configuredKeys: ['OPENAI_API_KEY'] },
      })
      expect((await ask(server.url, 'GET /setup-status')).body).not.toHaveProperty('bootError')
      expect(await server.stop()).toBe(0)
    },
  )

  test('a truncated store is not replaced by an empty one, and works again when its backup is restored', async () => {
    const here = createSandbox()
    const store = join(here.dataDir, 'workbase.db')
    await here.wb(['workspaces', 'create', 'kept'])
    const backup = readFileSync(store)
    truncateSync(store)
    const server = await watch(here)
    const message = 'workbase.db is empty, and the data is lost: restore your backup'
    expect(await server.event('rescue')).toMatchObject({ error: { message } })
    const [listed, looked] = [await here.wb(['workspaces', 'list']), await here.wb(['doctor', '--deep'])]
    expect(listed).toMatchObject({ status: 6, stderr: expect.stringContaining(message) })
    expect(looked).toMatchObject({ status: 1, stdout: expect.stringContaining(`store\tfailed\t${message}`) })
    expect(looked.stdout + looked.stderr).not.toContain('defect')
    expect(statSync(store).size).toBe(0)
    writeFileSync(store, backup)
    await ask(server.url, 'POST /setup/restart')
    await server.event('restarted')
    expect((await ask(server.url, 'GET /api/v1/workspaces')).body).toMatchObject({
      items: [{ name: 'kept' }],
    })
    expect(await server.stop()).toBe(0)
  })

  test('a store that is lost while the server runs is reported at a restart', async () => {
    const here = createSandbox()
    const server = await watch(here)
    await ask(server.url, 'POST /api/v1/workspaces', { name: 'kept' })
    const store = join(here.dataDir, 'workbase.db')
    renameSync(store, join(here.dataDir, 'aside'))
    mkdirSync(store)
    await ask(server.url, 'POST /setup/restart')
    await server.event('rescue')
    expect((await here.wb(['workspaces', 'list'])).status).toBe(6)
    rmSync(store, { recursive: true })
    renameSync(join(here.dataDir, 'aside'), store)
    await ask(server.url, 'POST /setup/restart')
    await server.event('restarted')
    expect((await ask(server.url, 'GET /readyz')).body).toMatchObject({ workspaces: 1 })
  })

  test.each([
    ['astra', 'controlPlane: { driver: astra, endpoint: "https://db.example", tokenRef: "env:T" }'],
    ['postgres', 'controlPlane: { driver: postgres, urlRef: "env:PG" }'],
  ])(
    'the driver %s is not supported: the server starts in rescue mode, and a command fails',
    async (driver, line) => {
      const here = createSandbox()
      const file = join(here.home, 'wb.yaml')
      writeFileSync(file, `version: 1\n${line}\n`)
      const server = await watch(here, ['--config', file])
      expect(await server.event('rescue')).toMatchObject({ error: { code: 'driver_unavailable' } })
      expect((await ask(server.url, 'GET /readyz')).body).toEqual({
        status: 'degraded',
        reason: 'driver_unavailable',
      })
      expect((await ask(server.url, 'GET /setup-status')).body).toMatchObject({
        bootError: { code: 'driver_unavailable', message: expect.stringContaining(driver) },
      })
      expect(await ask(server.url, 'GET /api/v1/workspaces')).toMatchObject({
        status: 503,
        body: { error: { code: 'control_plane_unavailable' } },
      })
      expect(await server.stop()).toBe(0)
      expect(await here.wb(['workspaces', 'list', '--config', file])).toMatchObject({
        status: 6,
        stdout: '',
      })
    },
  )

  test('with authentication, anonymous callers see no paths and cannot change anything; the bootstrap token can [security rule 17]', async () => {
    const here = spoilt(store => mkdirSync(store))
    const file = join(here.home, 'wb.yaml')
    writeFileSync(file, closed)
    const server = await watch(here, ['--config', file], { BOOT: token })
    await server.event('rescue')
    const values = { values: { OPENAI_API_KEY: 'o' } }
    const bearer = (text: string) => ({ authorization: `Bearer ${text}` })
    for (const headers of [{}, bearer(`wb_live_${'a'.repeat(40)}`), bearer('b'.repeat(31))]) {
      const status = await ask(server.url, 'GET /setup-status', undefined, headers)
      expect(status.body).toMatchObject({ managedEnv: { path: null } })
      const refused = await ask(server.url, 'POST /setup/env', values, headers)
      expect(refused.status).toBe(401)
      const api = await ask(server.url, 'GET /api/v1/workspaces', undefined, headers)
      expect(status.text + refused.text + api.text).not.toContain(here.home)
    }
    expect((await ask(server.url, 'GET /setup-status', undefined, bearer(token))).body).toMatchObject({
      managedEnv: { path: join(here.dataDir, '.env') },
    })
    expect((await ask(server.url, 'POST /setup/env', values, bearer(token))).status).toBe(200)
    rmSync(join(here.dataDir, 'workbase.db'), { recursive: true })
    expect((await ask(server.url, 'POST /setup/restart', undefined, bearer(token))).status).toBe(202)
    await server.event('restarted')
    expect((await ask(server.url, 'GET /readyz')).status).toBe(200)
  })

  test('ends after a failed restart, and anonymous callers do not see the failing address', async () => {
    const here = createSandbox()
    const file = join(here.home, 'wb.yaml')
    const issuer = await startDiscoveryServer()
    const oidc = `oidc: { issuer: "${issuer}", audience: api }`
    writeFileSync(file, closed.replace('apiKey', 'any').replace(' }', `, ${oidc} }`))
    const server = await watch(here, ['--config', file], { BOOT: token })
    await server.event('ready')
    writeFileSync(file, readFileSync(file, 'utf8').replace(issuer, 'http://127.0.0.1:1'))
    const restart = () =>
      ask(server.url, 'POST /setup/restart', undefined, { authorization: `Bearer ${token}` })
    await restart()
    expect(await server.event('rescue')).toMatchObject({
      error: { code: 'validation_error', message: expect.stringContaining('http://127.0.0.1:1') },
    })
    const { body, text } = await ask(server.url, 'GET /setup-status')
    expect(body).toMatchObject({ bootError: { code: 'validation_error' } })
    expect(text).not.toContain('127.0.0.1')
    writeFileSync(file, readFileSync(file, 'utf8').replace('http://127.0.0.1:1', issuer))
    expect((await restart()).status).toBe(202)
    await server.event('restarted')
    expect((await ask(server.url, 'GET /readyz')).status).toBe(200)
  })

  test('is shown in the terminal with its reason and the commands to run', async () => {
    const here = spoilt(store => mkdirSync(store))
    const child = spawn(process.execPath, ['bin/run.js', 'serve', '--port', '0'], { env: here.env })
    onTestFinished(() => void child.kill('SIGKILL'))
    let shown = ''
    child.stderr.setEncoding('utf8').on('data', text => {
      shown += text
    })
    for (let tries = 0; !shown.includes('mended') && tries < 1_000; tries++) await setTimeout(10)
    expect(shown).toMatch(
      /^ {2}✗ Rescue mode: the store cannot be opened: there is a folder at its path \(control_plane_unavailable\)\n {4}Move the folder away, .*\n\n {4}http:\/\/127\.0\.0\.1:\d+\/setup-status {4}shows the state; most other requests are rejected\n {4}wb api POST \/setup\/restart {4}in another terminal, after you have fixed the cause\n/,
    )
    rmSync(join(here.dataDir, 'workbase.db'), { recursive: true })
    const { status, stdout } = await here.wb(['api', 'POST', '/setup/restart'])
    expect([status, JSON.parse(stdout)]).toEqual([0, { ok: true, note: expect.any(String) }])
    for (let tries = 0; !shown.includes('✓') && tries < 1_000; tries++) await setTimeout(10)
    // The log can contain a message that the audit record of the restart was lost.
    expect(shown.replace(/^\{.*\n/gm, '')).toMatch(
      /\n {2}restarting: waiting for requests in progress\n {2}✓ restarted at http:\/\/127\.0\.0\.1:\d+\n/,
    )
  })
})

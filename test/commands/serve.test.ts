import type { ChildProcess } from 'node:child_process'
import { on, once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { type ClientRequest, createServer as createHttp, type IncomingMessage, request } from 'node:http'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { serve } from '../../src/cli/serve/serve.ts'
import { readProfile } from '../../src/cli/settings/profile.ts'
import { acquireServerLock, findServer } from '../../src/locks/server-lock.ts'
import { FakeIo } from '../harness/fake-io.ts'
import { runInProcess } from '../harness/in-process.ts'
import { discovery, oidcConfig } from './discovery.ts'
import { type Place, place } from './wb.ts'

describe('wb serve', () => {
  test('says in one line of JSON where it is, then logs, and ends with 0 when asked to', async () => {
    const here = place()
    const server = await here.spawnServe()
    expect(server.ready).toEqual({
      event: 'ready',
      url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      pid: server.process.pid,
      dataDir: here.dataDir,
    })
    expect((await fetch(`${server.url}/readyz`)).status).toBe(200)
    const announced = JSON.parse(readFileSync(join(here.dataDir, 'serve.json'), 'utf8')) as object
    expect(announced).toEqual({ url: server.url, pid: server.pid, startedAt: expect.any(String) })
    server.process.kill('SIGTERM')
    const { status, stdout } = await server.ended
    expect(status).toBe(0)
    for (const line of stdout.trim().split('\n')) expect(JSON.parse(line)).toBeTypeOf('object')
    expect(existsSync(join(here.dataDir, 'serve.json'))).toBe(false)
  })

  test('is ready in its first line also where its start has something to log', async () => {
    const here = place()
    const config = join(here.home, 'wb.yaml')
    writeFileSync(config, oidcConfig(await discovery()))
    const server = await here.serve(['--config', config])
    expect(server.ready).toMatchObject({ event: 'ready', url: server.url })
    expect((await server.stop()).stdout).toContain('sessionSecretRef is not set')
  })

  test('a second one on a data directory names the pid and the address of the first', async () => {
    const here = place()
    const { pid, url } = await here.serve()
    expect(await here.wb(['serve', '--port', '0'])).toEqual({
      status: 5,
      stdout: '',
      stderr: `  ✗ ${here.dataDir} is already served by process ${pid} at ${url} (conflict)\n    wb kb list    uses it\n    kill ${pid}    stops it\n`,
    })
  })

  test('a data directory that takes no file is told, and the process ends', async () => {
    const here = place()
    mkdirSync(join(here.dataDir, 'serve.lock'), { recursive: true, mode: 0o700 })
    expect(await here.wb(['serve', '--port', '0'])).toMatchObject({
      status: 6,
      stderr: expect.stringMatching(/data directory cannot be written \(control_plane_unavailable\)/),
    })
  })

  test('one that cannot tell where it is gives its port back', async () => {
    const here = place()
    const config = join(here.home, 'wb.yaml')
    writeFileSync(config, 'version: 1\ncontrolPlane:\n  driver: memory\n')
    const free = createServer().listen(0, '127.0.0.1')
    await once(free, 'listening')
    const { port } = free.address() as { port: number }
    await new Promise(resolve => free.close(resolve))
    const io = new FakeIo()
    const profile = readProfile({ dataDir: here.dataDir, config }, io)
    const logSettings = () => {
      mkdirSync(join(here.dataDir, 'serve.json', 'in-the-way'), { recursive: true })
      return { level: 'silent', stream: process.stderr } as const
    }
    const told = { logSettings, restarting() {}, restarted() {}, notRestarted() {} }
    const started = serve(profile, io, { port, allowOpenAccess: false }, told)
    await expect(started).rejects.toMatchObject({ code: 'control_plane_unavailable' })
    const next = createServer().listen(port, '127.0.0.1')
    await once(next, 'listening')
    next.close()
  })

  test('a server that was killed leaves nothing in the way', async () => {
    const here = place()
    const first = await here.spawnServe()
    first.process.kill('SIGKILL')
    await first.ended
    expect(existsSync(join(here.dataDir, 'serve.json'))).toBe(true)
    expect((await here.wb(['workspaces', 'list'])).status).toBe(0)
    const second = await here.serve()
    expect(second.url).not.toBe(first.url)
    expect((await here.wb(['workspaces', 'list'])).status).toBe(0)
  })

  test('a taken port names who has it', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await new Promise(resolve => taken.once('listening', resolve))
    const { port } = taken.address() as { port: number }
    const { status, stderr } = await place().wb(['serve', '--port', String(port)])
    taken.close()
    expect({ status, stderr }).toEqual({
      status: 5,
      stderr: expect.stringMatching(
        new RegExp(`✗ Port ${port} is in use.*\\(conflict\\)\\n {4}wb serve --port 0`),
      ),
    })
    if (process.platform === 'linux') expect(stderr).toContain(`(pid ${process.pid})`)
  })

  test.each([
    [
      ['--host', 'nohost.invalid', '--allow-open-access'],
      '"nohost.invalid" is not an address of this machine',
    ],
    [['--https-cert', '/nowhere.pem', '--https-key', '/nowhere.pem'], '/nowhere.pem cannot be read'],
    [['--https-cert', '/nowhere.pem'], '--https-key'],
    [['--port', '70000'], '--port'],
  ])('%j is a usage error, and leaves the data directory free', async (args, words) => {
    const here = place()
    const { status, stderr } = await here.wb(['serve', '--port', '0', ...args])
    expect({ status, stderr }).toEqual({ status: 2, stderr: expect.stringMatching(new RegExp(words, 'i')) })
    await here.serve()
  })

  test('other machines are let in only on request, while callers need no credential', async () => {
    const here = place()
    const refused = await here.wb(['serve', '--host', '0.0.0.0', '--port', '0'])
    expect(refused).toMatchObject({ status: 2, stdout: '' })
    expect(refused.stderr).toContain('wb serve    accepts connections from this machine only')
    expect(refused.stderr).toContain('wb serve --host 0.0.0.0 --allow-open-access')
    const allowed = await here.serve(['--host', '0.0.0.0', '--allow-open-access'])
    expect((await fetch(`${allowed.url}/healthz`)).status).toBe(200)
  })

  test('a configuration file of the folder is not read unless it is named or trusted', async () => {
    const here = place()
    const config = join(here.home, 'workbase.yaml')
    writeFileSync(config, 'version: 1\nruntime: { logLevel: error }\n')
    expect(await here.wb(['serve', '--port', '0'])).toEqual({
      status: 2,
      stdout: '',
      stderr: `  ✗ ${config} is not used because its folder is not trusted; run wb trust, or name it\n    wb trust    trusts the files of this folder, for all commands\n    wb serve --config ${config}\n`,
    })
    const hinted = await here.wb(['workspaces', 'list'])
    expect(hinted.stderr).toBe(
      `  ${config} is not used because its folder is not trusted; run wb trust, or name it:\n    --config ${config}\n  no workspaces yet; create one:\n    wb workspaces create demo\n`,
    )
    await here.serve(['--config', config])
  })

  test.each([
    [
      'controlPlane.driver',
      'controlPlane: { driver: astra, endpoint: "https://db.example", tokenRef: "env:T" }',
    ],
    ['controlPlane.driver', 'controlPlane: { driver: postgres, urlRef: "env:PG" }'],
  ])('what is not built yet is what validate says: %s', async (key, line) => {
    const here = place()
    const file = join(here.home, 'wb.yaml')
    writeFileSync(file, `version: 1\n${line}\n`)
    const validated = await here.wb(['config', 'validate', '--config', file])
    expect(validated).toMatchObject({
      status: 1,
      stdout: `${key}\tis not implemented; with it, a server starts in rescue mode, and commands fail\n`,
    })
    const listed = await here.wb(['workspaces', 'list', '--config', file])
    expect(listed.status).toBe(6)
    expect(listed.stderr).toContain('driver_unavailable')
  })

  test('finishes what is in flight, refuses the rest, and a second signal ends it at once', async () => {
    const here = place()
    const server = await here.spawnServe()
    // Accepted before the request, of which the server says that it came.
    const second = await connection(server.url)
    const unfinished = await half(server.url)
    const answered = new Promise<IncomingMessage>((done, fail) =>
      unfinished.once('response', done).once('error', fail),
    )
    answered.catch(() => {})
    server.process.kill('SIGTERM')
    await said(server.process, 'shutting down')
    expect(await second.get('/api/v1/workspaces')).toMatch(/^HTTP\/1.1 503[\s\S]*draining/)
    unfinished.end(':"demo"}')
    expect((await answered).statusCode).toBe(201)
    expect((await server.ended).status).toBe(0)

    const stuck = await here.spawnServe()
    const cut = await half(stuck.url)
    cut.on('error', () => {})
    stuck.process.kill('SIGTERM')
    await said(stuck.process, 'shutting down')
    stuck.process.kill('SIGTERM')
    expect((await stuck.ended).status).toBe(130)
  })
})

describe('wb serve, and who may call', () => {
  const secret = 's'.repeat(32)
  const oidc = (issuer: string, client = '') =>
    `version: 1\nauth: { mode: any, anonymousPolicy: reject, bootstrapTokenRef: "env:BOOT", oidc: { issuer: "${issuer}", audience: wb${client} } }\n`
  const client = ', client: { clientId: c, clientSecretRef: "env:CLIENT", sessionSecretRef: "env:SESSION" }'

  /** What a person sees at the start, up to the last line; then it is asked to end. */
  async function screen(
    here: Place,
    yaml: string | undefined,
    env: Record<string, string> = {},
    args: string[] = [],
  ) {
    const file = join(here.home, 'wb.yaml')
    if (yaml) writeFileSync(file, yaml)
    const io = new FakeIo({ env: { ...here.env, ...env }, cwd: here.home, keyCost: here.keyCost })
    io.stdout.on('data', () => {
      if (/another terminal|access token/.test(io.stdout.text)) io.signals.raise('SIGTERM')
    })
    const line = ['serve', '--port', '0', ...args, ...(yaml ? ['--config', file] : [])]
    const status = await runInProcess(line, io)
    return { status, stdout: io.stdout.text, stderr: io.stderr.text }
  }

  test('an open runtime whose store lasts warns of it, on this machine and beyond it [security rule 2]', async () => {
    const here = place()
    const near = await screen(here, undefined)
    expect(near.stdout).toContain('\n  callers    anyone on this machine\n')
    expect(near.stderr).toContain(
      `  ! anyone on this machine can read and change everything in ${here.dataDir} without a credential; to require one, set auth.mode: apiKey and anonymousPolicy: reject\n`,
    )
    const far = await screen(here, undefined, {}, ['--host', '0.0.0.0', '--allow-open-access'])
    expect(far.stderr).toContain('! anyone who can reach this address can read and change everything')
    const allowing = await screen(here, 'version: 1\nauth: { mode: apiKey }\n')
    expect(allowing.stdout).toContain(
      '  callers    anyone on this machine; with an API key (auth.mode apiKey)\n',
    )
    expect(allowing.stderr).toContain('; to require one, set auth.anonymousPolicy: reject\n')
    const passing = await screen(here, 'version: 1\ncontrolPlane: { driver: memory }\n')
    expect(passing.stderr).not.toContain('!')
  })

  test('S2.2-06: one that asks says for what, whether there is a bootstrap token, and how the first key is made', async () => {
    const here = place()
    const closed = 'version: 1\nauth: { mode: apiKey, anonymousPolicy: reject }\n'
    const { status, stdout, stderr } = await screen(here, closed)
    expect({ status, stderr }).toEqual({
      status: 0,
      stderr: '  shutting down: waiting for requests in progress\n',
    })
    expect(stdout).toMatch(
      /\n {2}callers {4}with an API key \(auth\.mode apiKey\)\n {2}bootstrap {2}no token\n {2}reference /,
    )
    expect(stdout).toMatch(
      /\n {2}wb keys create NAME --role admin --as-operator --data-dir \S+ {4}in another terminal\n$/,
    )
    const token = closed.replace('}', ', bootstrapTokenRef: "env:BOOT" }')
    const booted = await screen(here, token, { BOOT: secret })
    expect(booted.stdout).toContain('\n  bootstrap  token set; each use is audited\n')
    expect(booted.stdout + booted.stderr).not.toContain(secret)
  })

  test('S5.3-11: an identity provider that was found is named, with the ways of signing in', async () => {
    const here = place()
    const env = { BOOT: secret, CLIENT: 'c', SESSION: secret }
    const plain = await discovery({})
    const tokens = await screen(here, oidc(plain), env)
    expect(tokens.stdout).toMatch(
      /\n {2}callers {4}with an API key or an access token of the identity provider \(auth\.mode any\)\n/,
    )
    expect(tokens.stdout).toContain(`\n  provider   ${plain} · access tokens only\n`)
    const browsers = await screen(here, oidc(plain, client), env)
    expect(browsers.stdout).toContain(`\n  provider   ${plain} · browser sign-in\n`)
    const device = await discovery({ device_authorization_endpoint: 'http://127.0.0.1/device' })
    const both = await screen(here, oidc(device, client), env)
    expect(both.stdout).toContain(`\n  provider   ${device} · browser sign-in and device sign-in\n`)
  })

  test('where keys are not looked at, none is made; a browser is sent to sign in', async () => {
    const here = place()
    const { stdout } = await screen(here, oidcConfig(await discovery()))
    expect(stdout).toMatch(
      /\n {2}sign in at http:\/\/127\.0\.0\.1:\d+\/auth\/login, or set WB_API_KEY to an access token\n$/,
    )
    expect(stdout).not.toContain('wb keys create')
  })

  test('S5.3-12: one that cannot be found stops the start with what was tried, and leaves the data directory free', async () => {
    const here = place()
    const { status, stdout, stderr } = await screen(here, oidc('http://127.0.0.1:1'), { BOOT: secret })
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
    expect(stderr).toMatch(
      /^ {2}✗ auth\.oidc\.issuer: .*http:\/\/127\.0\.0\.1:1\/\.well-known\/openid-configuration.* \(validation_error\)\n/,
    )
    await here.serve()
  })

  test('validate counts what it warns of, and with --json says what is wrong in its object alone', async () => {
    const here = place()
    const file = join(here.home, 'wb.yaml')
    writeFileSync(file, 'version: 1\nauth: { mode: apiKey }\n')
    const careful = await here.wb(['config', 'validate', '--config', file])
    expect(careful).toMatchObject({ status: 0, stdout: '' })
    expect(careful.stderr).toMatch(new RegExp(`^  ! .+\\n  ✓ ${file}: valid, 1 warning\\n$`))
    writeFileSync(file, 'version: 1\nauth: { mode: none }\n')
    const wrong = await here.wb(['config', 'validate', '--config', file, '--json'])
    expect(wrong).toMatchObject({ status: 1, stderr: '' })
    expect(JSON.parse(wrong.stdout)).toMatchObject({ valid: false, problems: [{ key: 'auth.mode' }] })
  })

  test('S2.2-07 S2.2-32: secrets that are missing or too short stop it, and validate names all of them without a network', async () => {
    const here = place()
    const file = join(here.home, 'wb.yaml')
    const validate = (env: Record<string, string>) =>
      here.wb(['config', 'validate', '--config', file], { env })
    const yaml = oidc('http://127.0.0.1:1', client)
    writeFileSync(file, yaml)
    expect(await validate({ SESSION: 'too short' })).toEqual({
      status: 1,
      stdout: [
        'auth.bootstrapTokenRef\tenv:BOOT is not set',
        'auth.oidc.client.clientSecretRef\tenv:CLIENT is not set',
        'auth.oidc.client.sessionSecretRef\tthe secret must have at least 32 bytes',
        '',
      ].join('\n'),
      stderr: `  ✗ ${file}: 3 problems\n`,
    })
    expect(await validate({ BOOT: secret, CLIENT: 'c', SESSION: secret })).toEqual({
      status: 0,
      stdout: '',
      stderr: `  ✓ ${file}: no problems\n`,
    })
    expect(await screen(here, yaml, { BOOT: secret.slice(1), CLIENT: 'c', SESSION: secret })).toEqual({
      status: 1,
      stdout: '',
      stderr:
        '  ✗ auth.bootstrapTokenRef: the secret must have at least 32 characters (validation_error)\n    Create one with: openssl rand -hex 32\n',
    })
  })
})

/** A connection that was open before the server began to drain. */
/** A request that a server has begun to take, with the first half of its body. */
async function half(url: string): Promise<ClientRequest> {
  const unfinished = request(`${url}/api/v1/workspaces`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'content-length': 15, expect: '100-continue' },
  })
  unfinished.flushHeaders()
  await once(unfinished, 'continue')
  unfinished.write('{"name"')
  return unfinished
}

async function connection(url: string) {
  const { hostname, port, host } = new URL(url)
  const socket = connect(Number(port), hostname).setEncoding('utf8')
  await once(socket, 'connect')
  return {
    async get(path: string) {
      socket.write(`GET ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`)
      let text = ''
      for await (const part of socket) text += part
      return text
    },
  }
}

async function said(child: ChildProcess, words: string): Promise<void> {
  for await (const text of on(child.stderr!, 'data')) if (String(text).includes(words)) return
}

describe('how a server is found', () => {
  function folder() {
    const { dataDir } = place()
    mkdirSync(dataDir, { mode: 0o700 })
    return dataDir
  }
  const announcement = { url: 'http://127.0.0.1:1', pid: 1, startedAt: '2026-01-01T00:00:00.000Z' }

  test('while the lock is held, and not after', () => {
    const dataDir = folder()
    const taken = acquireServerLock(dataDir)
    if (!('lock' in taken)) throw new Error('nobody else can hold it')
    expect(findServer(dataDir)).toBeUndefined()
    taken.lock.announce(announcement)
    expect(findServer(dataDir)).toMatchObject(announcement)
    expect(acquireServerLock(dataDir)).toMatchObject({ heldBy: announcement })
    taken.lock.release()
    expect(findServer(dataDir)).toBeUndefined()
    writeFileSync(join(dataDir, 'serve.json'), JSON.stringify(announcement), { mode: 0o600 })
    expect(findServer(dataDir)).toBeUndefined()
  })

  test.each([
    ['the folder', 0o777, 0o600],
    ['the file', 0o700, 0o666],
  ])('not when others can write %s', (_what, folderMode, fileMode) => {
    const dataDir = folder()
    const taken = acquireServerLock(dataDir)
    if (!('lock' in taken)) throw new Error('nobody else can hold it')
    taken.lock.announce(announcement)
    chmodSync(dataDir, folderMode)
    chmodSync(join(dataDir, 'serve.json'), fileMode)
    expect(findServer(dataDir)).toBeUndefined()
    taken.lock.release()
  })

  test('a key goes to it, but not one that is meant for another runtime', async () => {
    const here = place()
    mkdirSync(here.dataDir, { mode: 0o700 })
    const seen: (string | undefined)[] = []
    const fake = createHttp((asked, response) => {
      seen.push(asked.headers.authorization)
      response.setHeader('content-type', 'application/json').end('{"items":[],"nextCursor":null}')
    }).listen(0, '127.0.0.1')
    await once(fake, 'listening')
    const taken = acquireServerLock(here.dataDir)
    if (!('lock' in taken)) throw new Error('nobody else can hold it')
    const { port } = fake.address() as { port: number }
    taken.lock.announce({ ...announcement, url: `http://127.0.0.1:${port}` })
    const list = ['workspaces', 'list', '--data-dir', here.dataDir]
    await here.wb(list, { env: { WB_URL: 'https://wb.example', WB_API_KEY: 'other' } })
    await here.wb(list, { env: { WB_API_KEY: 'ours' } })
    taken.lock.release()
    fake.closeAllConnections()
    fake.close()
    expect(new Set(seen.slice(0, 2))).toEqual(new Set([undefined]))
    expect(new Set(seen.slice(2))).toEqual(new Set(['Bearer ours']))
  })
})

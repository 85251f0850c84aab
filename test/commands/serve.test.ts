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
import { oidcConfig, startDiscoveryServer } from './discovery.ts'
import { createSandbox, type Sandbox } from './sandbox.ts'

describe('wb serve', () => {
  test('prints its address as a line of JSON, then logs, and ends with 0 on SIGTERM', async () => {
    const sandbox = createSandbox()
    const server = await sandbox.spawnServe()
    expect(server.ready).toEqual({
      event: 'ready',
      url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      pid: server.process.pid,
      dataDir: sandbox.dataDir,
    })
    expect((await fetch(`${server.url}/readyz`)).status).toBe(200)
    const announced = JSON.parse(readFileSync(join(sandbox.dataDir, 'serve.json'), 'utf8')) as object
    expect(announced).toEqual({ url: server.url, pid: server.pid, startedAt: expect.any(String) })
    server.process.kill('SIGTERM')
    const { status, stdout } = await server.ended
    expect(status).toBe(0)
    for (const line of stdout.trim().split('\n')) expect(JSON.parse(line)).toBeTypeOf('object')
    expect(existsSync(join(sandbox.dataDir, 'serve.json'))).toBe(false)
  })

  test('prints the ready line first even if startup logs something', async () => {
    const sandbox = createSandbox()
    const config = join(sandbox.home, 'wb.yaml')
    writeFileSync(config, oidcConfig(await startDiscoveryServer()))
    const server = await sandbox.serve(['--config', config])
    expect(server.ready).toMatchObject({ event: 'ready', url: server.url })
    expect((await server.stop()).stdout).toContain('sessionSecretRef is not set')
  })

  test('reports the PID and address of a server that already uses the data directory', async () => {
    const sandbox = createSandbox()
    const { pid, url } = await sandbox.serve()
    expect(await sandbox.wb(['serve', '--port', '0'])).toEqual({
      status: 5,
      stdout: '',
      stderr: `  ✗ ${sandbox.dataDir} is already served by process ${pid} at ${url} (conflict)\n    wb kb list    uses that server\n    kill ${pid}    stops it\n`,
    })
  })

  test('reports a read-only data directory, and ends', async () => {
    const sandbox = createSandbox()
    mkdirSync(join(sandbox.dataDir, 'serve.lock'), { recursive: true, mode: 0o700 })
    expect(await sandbox.wb(['serve', '--port', '0'])).toMatchObject({
      status: 6,
      stderr: expect.stringMatching(/data directory cannot be written \(control_plane_unavailable\)/),
    })
  })

  test('releases its port if it cannot announce its address', async () => {
    const sandbox = createSandbox()
    const config = join(sandbox.home, 'wb.yaml')
    writeFileSync(config, 'version: 1\ncontrolPlane:\n  driver: memory\n')
    const free = createServer().listen(0, '127.0.0.1')
    await once(free, 'listening')
    const { port } = free.address() as { port: number }
    await new Promise(resolve => free.close(resolve))
    const io = new FakeIo()
    const profile = readProfile({ dataDir: sandbox.dataDir, config }, io)
    const logSettings = () => {
      mkdirSync(join(sandbox.dataDir, 'serve.json', 'in-the-way'), { recursive: true })
      return { level: 'silent', stream: process.stderr } as const
    }
    const callbacks = { logSettings, restarting() {}, restarted() {}, notRestarted() {} }
    const started = serve(profile, io, { port, allowOpenAccess: false }, callbacks)
    await expect(started).rejects.toMatchObject({ code: 'control_plane_unavailable' })
    const next = createServer().listen(port, '127.0.0.1')
    await once(next, 'listening')
    next.close()
  })

  test('starts after a server was killed', async () => {
    const sandbox = createSandbox()
    const first = await sandbox.spawnServe()
    first.process.kill('SIGKILL')
    await first.ended
    expect(existsSync(join(sandbox.dataDir, 'serve.json'))).toBe(true)
    expect((await sandbox.wb(['workspaces', 'list'])).status).toBe(0)
    const second = await sandbox.serve()
    expect(second.url).not.toBe(first.url)
    expect((await sandbox.wb(['workspaces', 'list'])).status).toBe(0)
  })

  test('reports which process uses the port', async () => {
    const occupied = createServer().listen(0, '127.0.0.1')
    await new Promise(resolve => occupied.once('listening', resolve))
    const { port } = occupied.address() as { port: number }
    const { status, stderr } = await createSandbox().wb(['serve', '--port', String(port)])
    occupied.close()
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
  ])('%j is a usage error, and releases the data directory', async (args, words) => {
    const sandbox = createSandbox()
    const { status, stderr } = await sandbox.wb(['serve', '--port', '0', ...args])
    expect({ status, stderr }).toEqual({ status: 2, stderr: expect.stringMatching(new RegExp(words, 'i')) })
    await sandbox.serve()
  })

  test('accepts other machines only on request if callers need no credential', async () => {
    const sandbox = createSandbox()
    const refused = await sandbox.wb(['serve', '--host', '0.0.0.0', '--port', '0'])
    expect(refused).toMatchObject({ status: 2, stdout: '' })
    expect(refused.stderr).toContain('wb serve    accepts connections from this machine only')
    expect(refused.stderr).toContain('wb serve --host 0.0.0.0 --allow-open-access')
    const allowed = await sandbox.serve(['--host', '0.0.0.0', '--allow-open-access'])
    expect((await fetch(`${allowed.url}/healthz`)).status).toBe(200)
  })

  test('reads a configuration file of the folder only if it is named or trusted', async () => {
    const sandbox = createSandbox()
    const config = join(sandbox.home, 'workbase.yaml')
    writeFileSync(config, 'version: 1\nruntime: { logLevel: error }\n')
    expect(await sandbox.wb(['serve', '--port', '0'])).toEqual({
      status: 2,
      stdout: '',
      stderr: `  ✗ ${config} is not used because its folder is not trusted; run wb trust, or select the file with a flag\n    wb trust    trusts the files of this folder, for all commands\n    wb serve --config ${config}\n`,
    })
    const hinted = await sandbox.wb(['workspaces', 'list'])
    expect(hinted.stderr).toBe(
      `  ${config} is not used because its folder is not trusted; run wb trust, or select the file with a flag:\n    --config ${config}\n  no workspaces yet; create one:\n    wb workspaces create demo\n`,
    )
    await sandbox.serve(['--config', config])
  })

  test.each([
    [
      'controlPlane.driver',
      'controlPlane: { driver: astra, endpoint: "https://db.example", tokenRef: "env:T" }',
    ],
    ['controlPlane.driver', 'controlPlane: { driver: postgres, urlRef: "env:PG" }'],
  ])('config validate also reports a feature that is not implemented: %s', async (key, line) => {
    const sandbox = createSandbox()
    const file = join(sandbox.home, 'wb.yaml')
    writeFileSync(file, `version: 1\n${line}\n`)
    const validated = await sandbox.wb(['config', 'validate', '--config', file])
    expect(validated).toMatchObject({
      status: 1,
      stdout: `${key}\tis not implemented; with it, a server starts in rescue mode, and commands fail\n`,
    })
    const listed = await sandbox.wb(['workspaces', 'list', '--config', file])
    expect(listed.status).toBe(6)
    expect(listed.stderr).toContain('driver_unavailable')
  })

  test('finishes requests in progress, rejects new ones, and ends immediately on a second signal', async () => {
    const sandbox = createSandbox()
    const server = await sandbox.spawnServe()
    // The server logs that it has received the request.
    const second = await openConnection(server.url)
    const unfinished = await startRequest(server.url)
    const answered = new Promise<IncomingMessage>((done, fail) =>
      unfinished.once('response', done).once('error', fail),
    )
    answered.catch(() => {})
    server.process.kill('SIGTERM')
    await waitForLog(server.process, 'shutting down')
    expect(await second.get('/api/v1/workspaces')).toMatch(/^HTTP\/1.1 503[\s\S]*draining/)
    unfinished.end(':"demo"}')
    expect((await answered).statusCode).toBe(201)
    expect((await server.ended).status).toBe(0)

    const stuck = await sandbox.spawnServe()
    const cut = await startRequest(stuck.url)
    cut.on('error', () => {})
    stuck.process.kill('SIGTERM')
    await waitForLog(stuck.process, 'shutting down')
    stuck.process.kill('SIGTERM')
    expect((await stuck.ended).status).toBe(130)
  })
})

describe('wb serve and authentication', () => {
  const secret = 's'.repeat(32)
  const oidc = (issuer: string, client = '') =>
    `version: 1\nauth: { mode: any, anonymousPolicy: reject, bootstrapTokenRef: "env:BOOT", oidc: { issuer: "${issuer}", audience: wb${client} } }\n`
  const client = ', client: { clientId: c, clientSecretRef: "env:CLIENT", sessionSecretRef: "env:SESSION" }'

  /** Starts a server, collects its output up to the last startup line, and stops it. */
  async function startupOutput(
    sandbox: Sandbox,
    yaml: string | undefined,
    env: Record<string, string> = {},
    args: string[] = [],
  ) {
    const file = join(sandbox.home, 'wb.yaml')
    if (yaml) writeFileSync(file, yaml)
    const io = new FakeIo({ env: { ...sandbox.env, ...env }, cwd: sandbox.home, keyCost: sandbox.keyCost })
    io.stdout.on('data', () => {
      if (/another terminal|access token/.test(io.stdout.text)) io.signals.raise('SIGTERM')
    })
    const line = ['serve', '--port', '0', ...args, ...(yaml ? ['--config', file] : [])]
    const status = await runInProcess(line, io)
    return { status, stdout: io.stdout.text, stderr: io.stderr.text }
  }

  test('warns about open access to a persistent store, on this machine and beyond [security rule 2]', async () => {
    const sandbox = createSandbox()
    const near = await startupOutput(sandbox, undefined)
    expect(near.stdout).toContain('\n  callers    anyone on this machine\n')
    expect(near.stderr).toContain(
      `  ! anyone on this machine can read and change everything in ${sandbox.dataDir} without a credential; to require one, set auth.mode: apiKey and auth.anonymousPolicy: reject\n`,
    )
    const far = await startupOutput(sandbox, undefined, {}, ['--host', '0.0.0.0', '--allow-open-access'])
    expect(far.stderr).toContain('! anyone who can reach this address can read and change everything')
    const allowing = await startupOutput(sandbox, 'version: 1\nauth: { mode: apiKey }\n')
    expect(allowing.stdout).toContain(
      '  callers    anyone on this machine; with an API key (auth.mode apiKey)\n',
    )
    expect(allowing.stderr).toContain('; to require one, set auth.anonymousPolicy: reject\n')
    const passing = await startupOutput(sandbox, 'version: 1\ncontrolPlane: { driver: memory }\n')
    expect(passing.stderr).not.toContain('!')
  })

  test('S2.2-06: shows the accepted credentials, whether a bootstrap token is set, and how to create the first key', async () => {
    const sandbox = createSandbox()
    const closed = 'version: 1\nauth: { mode: apiKey, anonymousPolicy: reject }\n'
    const { status, stdout, stderr } = await startupOutput(sandbox, closed)
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
    const booted = await startupOutput(sandbox, token, { BOOT: secret })
    expect(booted.stdout).toContain('\n  bootstrap  token set; each use is audited\n')
    expect(booted.stdout + booted.stderr).not.toContain(secret)
  })

  test('S5.3-11: shows the discovered identity provider and its sign-in methods', async () => {
    const sandbox = createSandbox()
    const env = { BOOT: secret, CLIENT: 'c', SESSION: secret }
    const plain = await startDiscoveryServer({})
    const tokens = await startupOutput(sandbox, oidc(plain), env)
    expect(tokens.stdout).toMatch(
      /\n {2}callers {4}with an API key or an access token of the identity provider \(auth\.mode any\)\n/,
    )
    expect(tokens.stdout).toContain(`\n  provider   ${plain} · access tokens only\n`)
    const browsers = await startupOutput(sandbox, oidc(plain, client), env)
    expect(browsers.stdout).toContain(`\n  provider   ${plain} · browser sign-in\n`)
    const device = await startDiscoveryServer({ device_authorization_endpoint: 'http://127.0.0.1/device' })
    const both = await startupOutput(sandbox, oidc(device, client), env)
    expect(both.stdout).toContain(`\n  provider   ${device} · browser sign-in and device sign-in\n`)
  })

  test('suggests sign-in instead of a key if the runtime does not accept keys', async () => {
    const sandbox = createSandbox()
    const { stdout } = await startupOutput(sandbox, oidcConfig(await startDiscoveryServer()))
    expect(stdout).toMatch(
      /\n {2}sign in at http:\/\/127\.0\.0\.1:\d+\/auth\/login, or set WB_API_KEY to an access token\n$/,
    )
    expect(stdout).not.toContain('wb keys create')
  })

  test('S5.3-12: fails with the discovery address if the identity provider is unreachable, and releases the data directory', async () => {
    const sandbox = createSandbox()
    const { status, stdout, stderr } = await startupOutput(sandbox, oidc('http://127.0.0.1:1'), {
      BOOT: secret,
    })
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
    expect(stderr).toMatch(
      /^ {2}✗ auth\.oidc\.issuer: .*http:\/\/127\.0\.0\.1:1\/\.well-known\/openid-configuration.* \(validation_error\)\n/,
    )
    await sandbox.serve()
  })

  test('config validate counts warnings, and with --json reports problems only in its object', async () => {
    const sandbox = createSandbox()
    const file = join(sandbox.home, 'wb.yaml')
    writeFileSync(file, 'version: 1\nauth: { mode: apiKey }\n')
    const careful = await sandbox.wb(['config', 'validate', '--config', file])
    expect(careful).toMatchObject({ status: 0, stdout: '' })
    expect(careful.stderr).toMatch(new RegExp(`^  ! .+\\n  ✓ ${file}: valid, 1 warning\\n$`))
    writeFileSync(file, 'version: 1\nauth: { mode: none }\n')
    const invalid = await sandbox.wb(['config', 'validate', '--config', file, '--json'])
    expect(invalid).toMatchObject({ status: 1, stderr: '' })
    expect(JSON.parse(invalid.stdout)).toMatchObject({ valid: false, problems: [{ key: 'auth.mode' }] })
  })

  test('S2.2-07 S2.2-32: missing or short secrets prevent startup, and config validate lists all of them offline', async () => {
    const sandbox = createSandbox()
    const file = join(sandbox.home, 'wb.yaml')
    const validate = (env: Record<string, string>) =>
      sandbox.wb(['config', 'validate', '--config', file], { env })
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
    expect(
      await startupOutput(sandbox, yaml, { BOOT: secret.slice(1), CLIENT: 'c', SESSION: secret }),
    ).toEqual({
      status: 1,
      stdout: '',
      stderr:
        '  ✗ auth.bootstrapTokenRef: the secret must have at least 32 characters (validation_error)\n    Create one with: openssl rand -hex 32\n',
    })
  })
})

/** Sends the headers and the first half of a request body. */
async function startRequest(url: string): Promise<ClientRequest> {
  const unfinished = request(`${url}/api/v1/workspaces`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'content-length': 15, expect: '100-continue' },
  })
  unfinished.flushHeaders()
  await once(unfinished, 'continue')
  unfinished.write('{"name"')
  return unfinished
}

async function openConnection(url: string) {
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

async function waitForLog(child: ChildProcess, words: string): Promise<void> {
  for await (const text of on(child.stderr!, 'data')) if (String(text).includes(words)) return
}

describe('server discovery', () => {
  function folder() {
    const { dataDir } = createSandbox()
    mkdirSync(dataDir, { mode: 0o700 })
    return dataDir
  }
  const announcement = { url: 'http://127.0.0.1:1', pid: 1, startedAt: '2026-01-01T00:00:00.000Z' }

  test('finds a server only while its lock is held', () => {
    const dataDir = folder()
    const lock = acquireServerLock(dataDir)
    if (!('lock' in lock)) throw new Error('nobody else can hold it')
    expect(findServer(dataDir)).toBeUndefined()
    lock.lock.announce(announcement)
    expect(findServer(dataDir)).toMatchObject(announcement)
    expect(acquireServerLock(dataDir)).toMatchObject({ heldBy: announcement })
    lock.lock.release()
    expect(findServer(dataDir)).toBeUndefined()
    writeFileSync(join(dataDir, 'serve.json'), JSON.stringify(announcement), { mode: 0o600 })
    expect(findServer(dataDir)).toBeUndefined()
  })

  test.each([
    ['the folder', 0o777, 0o600],
    ['the file', 0o700, 0o666],
  ])('ignores a server if others can write %s', (_what, folderMode, fileMode) => {
    const dataDir = folder()
    const lock = acquireServerLock(dataDir)
    if (!('lock' in lock)) throw new Error('nobody else can hold it')
    lock.lock.announce(announcement)
    chmodSync(dataDir, folderMode)
    chmodSync(join(dataDir, 'serve.json'), fileMode)
    expect(findServer(dataDir)).toBeUndefined()
    lock.lock.release()
  })

  test('sends it a key, unless the key belongs to another runtime', async () => {
    const sandbox = createSandbox()
    mkdirSync(sandbox.dataDir, { mode: 0o700 })
    const seen: (string | undefined)[] = []
    const fake = createHttp((asked, response) => {
      seen.push(asked.headers.authorization)
      response.setHeader('content-type', 'application/json').end('{"items":[],"nextCursor":null}')
    }).listen(0, '127.0.0.1')
    await once(fake, 'listening')
    const lock = acquireServerLock(sandbox.dataDir)
    if (!('lock' in lock)) throw new Error('nobody else can hold it')
    const { port } = fake.address() as { port: number }
    lock.lock.announce({ ...announcement, url: `http://127.0.0.1:${port}` })
    const list = ['workspaces', 'list', '--data-dir', sandbox.dataDir]
    await sandbox.wb(list, { env: { WB_URL: 'https://wb.example', WB_API_KEY: 'other' } })
    await sandbox.wb(list, { env: { WB_API_KEY: 'ours' } })
    lock.lock.release()
    fake.closeAllConnections()
    fake.close()
    expect(new Set(seen.slice(0, 2))).toEqual(new Set([undefined]))
    expect(new Set(seen.slice(2))).toEqual(new Set(['Bearer ours']))
  })
})

import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { type ClockSkew, clockSkewFinding } from '../../src/cli/doctor/clock.ts'
import { checkNode } from '../../src/cli/doctor/this-machine.ts'
import { openDatabase } from '../harness/store-file.ts'
import { type CommandResult, createSandbox, type Sandbox } from './sandbox.ts'
import { startRuntimeWithKeys } from './sign-in.ts'
import { runInFakeTerminal, stripSequences } from './terminal.ts'

vi.setConfig({ testTimeout: 60_000 })

interface Line {
  name: string
  state: string
  detail: string
  fix: string
}

/** Splits tab-separated output into its lines. */
function lines({ stdout }: CommandResult): Line[] {
  return stdout
    .replace(/\n$/, '')
    .split('\n')
    .map(text => text.split('\t'))
    .map(([name, state, detail, fix]) => ({ name: name!, state: state!, detail: detail!, fix: fix! }))
}

function line(ended: CommandResult, name: string): Line | undefined {
  return lines(ended).find(one => one.name === name)
}

/** Returns the states of all lines that are not `ok` or `skipped`, by name. */
function problemsIn(ended: CommandResult): Record<string, string> {
  const found = lines(ended).filter(({ state }) => state === 'warning' || state === 'failed')
  return Object.fromEntries(found.map(({ name, state }) => [name, state]))
}

/** Creates a sandbox with a working keychain and a configured free port. */
function createMachine(config: object = {}): Sandbox {
  const sandbox = createSandbox()
  sandbox.env.WB_KEYCHAIN = 'file'
  sandbox.env.WB_CONFIG = join(sandbox.home, 'workbase.yaml')
  writeFileSync(
    sandbox.env.WB_CONFIG,
    JSON.stringify({ version: 1, runtime: { port: 20_000 + (process.pid % 10_000) }, ...config }),
  )
  return sandbox
}

/** Starts an HTTP server that closes when the test ends. */
async function startHttpServer(handler: RequestListener): Promise<{ url: string; port: number }> {
  const server = createServer(handler)
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, port }
}

/** Starts a runtime with another version and a wrong clock. */
function startOtherRuntime({ aheadMs, version = '9.9.9' }: { aheadMs: number; version?: string }) {
  const bodies: Record<string, object> = {
    '/readyz': { status: 'ready', workspaces: 1 },
    '/version': { version, commit: 'c', buildTime: '2026-01-01T00:00:00.000Z', node: '20' },
    '/healthz': { status: 'ok' },
    '/setup-status': { hasChatProvider: false },
    '/auth/me': {
      id: 'k',
      label: 'ci',
      type: 'apiKey',
      role: 'viewer',
      scopes: null,
      workspaceScopes: null,
      expiresAt: null,
    },
    '/api/v1/workspaces': { items: [], nextCursor: null },
  }
  return startHttpServer((request, response) => {
    const date = new Date(Date.now() + aheadMs).toUTCString()
    response.writeHead(200, { date, 'content-type': 'application/json' })
    response.end(JSON.stringify(bodies[new URL(request.url!, 'http://x').pathname] ?? {}))
  })
}

test('reports no problems and creates no files on a fresh machine', async () => {
  const sandbox = createMachine()
  const { wb, dataDir, env } = sandbox
  const [ended, json] = await Promise.all([wb(['doctor', '--deep']), wb(['doctor', '--json'])])
  expect(ended.stderr).toBe('  ✓ no problems found\n')
  expect(ended.status).toBe(0)
  expect(lines(ended).map(({ name, state }) => `${name} ${state}`)).toEqual([
    'node ok',
    'data ok',
    'secrets ok',
    'config ok',
    'folder ok',
    'lock ok',
    'port ok',
    'identity skipped',
    'runtime skipped',
    'auth skipped',
    'chat skipped',
    'keychain ok',
    'store ok',
  ])
  expect(line(ended, 'data')?.detail).toBe(`${dataDir}, not created yet`)
  expect(JSON.parse(json.stdout)).toEqual({
    ok: true,
    node: process.version,
    dataDir,
    server: null,
    config: { path: env.WB_CONFIG, problems: [], warnings: [] },
    checks: expect.arrayContaining([
      { name: 'lock', state: 'ok', detail: 'no wb serve is running' },
      {
        name: 'auth',
        state: 'skipped',
        detail: 'no credential; no server is running to check it',
        fix: 'wb whoami',
      },
    ]),
  })
  expect(existsSync(dataDir)).toBe(false)
  expect(existsSync(join(env.XDG_CONFIG_HOME!, 'workbase'))).toBe(false)
})

test('reports an invalid configuration as a failure', async () => {
  const { wb, home } = createMachine()
  const path = join(home, 'broken.yaml')
  writeFileSync(path, 'version: 1\nruntime:\n  prot: 1\n')
  const [ended, json] = await Promise.all([
    wb(['doctor', '--deep', '--config', path]),
    wb(['doctor', '--config', path, '--json']),
  ])
  expect(ended.status).toBe(1)
  expect(problemsIn(ended)).toEqual({ config: 'failed' })
  expect(line(ended, 'config')).toMatchObject({
    detail: expect.stringMatching(/^runtime\.prot: /),
    fix: 'wb config validate',
  })
  expect(json.status).toBe(1)
  expect(JSON.parse(json.stdout)).toMatchObject({ ok: false, config: { path, problems: [{}] } })
})

describe('the build of a running server', () => {
  test('matches the build of wb, and is reported by /version and wb version', async () => {
    const { wb, serve } = createMachine()
    const { url } = await serve()
    const { version, commit, buildTime } = JSON.parse((await wb(['version', '--json'])).stdout)
    expect(await (await fetch(`${url}/version`)).json()).toEqual({
      ...{ version, commit, buildTime },
      node: process.version,
    })
    expect(JSON.parse((await wb(['api', 'GET', '/version', '--as-operator'])).stdout)).toMatchObject({
      commit,
      buildTime,
    })
    expect(line(await wb(['doctor']), 'version')).toMatchObject({
      state: 'ok',
      detail: `${version}, same as the runtime`,
    })
  })

  test('is a warning if it is from another commit, but not if only the version name differs', async () => {
    const sandbox = createMachine()
    const { version, commit } = JSON.parse((await sandbox.wb(['version', '--json'])).stdout)
    const renamed = await sandbox.spawnServe([], { env: { APP_VERSION: '7.7.7-ours', APP_COMMIT: commit } })
    expect(line(await sandbox.wb(['doctor']), 'version')).toMatchObject({
      state: 'ok',
      detail: `${version}, which the runtime reports as 7.7.7-ours`,
    })
    renamed.process.kill('SIGKILL')
    await renamed.ended
    const { pid } = await sandbox.spawnServe([], { env: { APP_COMMIT: '0'.repeat(40) } })
    expect(line(await sandbox.wb(['doctor']), 'version')).toEqual({
      name: 'version',
      state: 'warning',
      detail: `wb ${version} is commit ${commit}, but the server runs ${'0'.repeat(40)}`,
      fix: `kill ${pid}; wb serve`,
    })
  })
})

/** A document row without the keys that identify its content. */
const unregisteredDocument = {
  ...{ sourceDocId: null, sourceFilename: null, fileType: null, fileSize: null, contentHash: null },
  ...{ chunkTotal: null, ingestedAt: null, status: 'pending', errorMessage: null, metadata: {} },
  ...{ visibleTo: null, ownerPrincipalId: null },
}

test('checks the store while a server runs, and prints a line for each finding', async () => {
  const { wb, serve, dataDir } = createMachine()
  const { url, pid } = await serve()
  await wb(['workspaces', 'create', 'demo'])
  const [sound, keyed] = await Promise.all([
    wb(['doctor', '--deep']),
    wb(['doctor'], { env: { WB_API_KEY: 'wb_live_x' } }),
  ])
  expect(problemsIn(sound)).toEqual({})
  expect(sound.stderr).toBe('  ✓ no problems found\n')
  expect(line(sound, 'lock')?.detail).toMatch(
    new RegExp(`^held by wb serve at ${url}, process ${pid}, started (?:now|\\d+ s ago)$`),
  )
  expect(line(sound, 'runtime')).toMatchObject({ state: 'ok', detail: `${url} serves 1 workspace` })
  expect(line(sound, 'auth')?.detail).toBe('no credential is needed')
  expect(line(keyed, 'auth')).toMatchObject({ state: 'failed', fix: 'unset WB_API_KEY' })
  expect(line(sound, 'store')?.detail).toMatch(/workbase\.db, schema \d+; \d+ checks$/)
  expect(lines(sound).map(({ name }) => name)).toEqual(
    expect.arrayContaining(['version', 'clock', 'chat', 'embedding']),
  )

  const database = openDatabase(join(dataDir, 'workbase.db'))
  const missingIds = { workspaceId: randomUUID(), knowledgeBaseId: randomUUID(), documentId: randomUUID() }
  const row = { ...missingIds, ...unregisteredDocument, updatedAt: '2026-01-01T00:00:00.000Z' }
  database.prepare('INSERT INTO documents (version, body) VALUES (1, ?)').run(JSON.stringify(row))
  database.close()
  const key = Object.values(missingIds).join('/')
  mkdirSync(join(dataDir, 'uploads'), { recursive: true })
  writeFileSync(join(dataDir, 'uploads', '999999999-ab'), 'left')
  const [found, json] = await Promise.all([wb(['doctor', '--deep']), wb(['doctor', '--deep', '--json'])])
  expect(found.status).toBe(1)
  const goBack = `kill ${pid}; mv ${dataDir} ${dataDir}.old && cp -a BACKUP ${dataDir}`
  expect(lines(found).filter(({ name }) => name === 'store')).toEqual([
    {
      name: 'store',
      state: 'failed',
      detail: `1 documents whose workspaceId no longer exists: ${key}`,
      fix: goBack,
    },
    {
      name: 'store',
      state: 'failed',
      detail: `1 documents whose knowledgeBaseId no longer exists: ${key}`,
      fix: goBack,
    },
    {
      name: 'store',
      state: 'failed',
      detail: `1 unfinished uploads of a killed process: ${join(dataDir, 'uploads', '999999999-ab')}`,
      fix: 'wb serve',
    },
  ])
  expect(found.stderr).toContain('3 problems found')
  expect(json.status).toBe(1)
  const { ok, store } = JSON.parse(json.stdout) as { ok: boolean; store: { checks: { count: number }[] } }
  expect(ok).toBe(false)
  expect(store.checks.filter(({ count }) => count > 0)).toHaveLength(3)
})

test('a server in rescue mode is a failure, also at its readiness endpoint', async () => {
  const { wb, serve, dataDir } = createMachine()
  mkdirSync(dataDir, { mode: 0o700 })
  writeFileSync(join(dataDir, 'workbase.db'), 'no database '.repeat(1_000))
  await serve()
  const [ended, json, probe] = await Promise.all([
    wb(['doctor']),
    wb(['doctor', '--json']),
    wb(['api', 'GET', '/readyz']),
  ])
  expect(ended).toMatchObject({ status: 1, stderr: '  ✗ 1 problem found\n' })
  expect(line(ended, 'runtime')).toMatchObject({
    state: 'failed',
    detail: expect.stringMatching(/rescue mode \(control_plane_\w+\); fix the cause first$/),
    fix: 'wb api POST /setup/restart',
  })
  expect(line(ended, 'auth')?.state).toBe('skipped')
  expect(JSON.parse(json.stdout)).toMatchObject({ ok: false, server: { ready: false } })
  expect(probe).toMatchObject({ status: 6, stderr: expect.stringContaining('rescue mode (control_plane_') })
  expect(probe.stderr).toContain('POST /setup/restart')
})

describe('file permissions', () => {
  test('reports files that others can open and folders without write access, with commands that fix them', async () => {
    const { wb, dataDir, env, home } = createMachine()
    const credentials = join(env.XDG_CONFIG_HOME!, 'workbase', 'credentials')
    mkdirSync(join(dataDir, 'secrets'), { recursive: true })
    mkdirSync(credentials, { recursive: true, mode: 0o700 })
    for (const path of [join(dataDir, '.env'), join(dataDir, 'secrets', 'a'), join(credentials, 'a.json')]) {
      writeFileSync(path, '')
      chmodSync(path, 0o644)
    }
    chmodSync(dataDir, 0o755)
    const file = join(home, 'a file')
    const shared = join(home, 'shared')
    writeFileSync(file, '')
    mkdirSync(shared)
    chmodSync(shared, 0o722)
    const [open, written, none, nowhere] = await Promise.all([
      wb(['doctor']),
      ...[shared, file, join(file, 'below')].map(folder => wb(['doctor', '--data-dir', folder])),
    ])
    expect(lines(open).filter(({ name }) => name === 'secrets' || name === 'data')).toEqual([
      {
        name: 'data',
        state: 'warning',
        detail: `${dataDir} is readable by other users (755)`,
        fix: `chmod 700 ${dataDir}`,
      },
      {
        name: 'secrets',
        state: 'failed',
        detail: `${join(dataDir, '.env')} is open to other users`,
        fix: `chmod 600 ${join(dataDir, '.env')}`,
      },
      expect.objectContaining({ fix: `chmod -R go= ${join(dataDir, 'secrets')}` }),
      expect.objectContaining({ fix: `chmod 600 ${join(credentials, 'a.json')}` }),
    ])
    expect(line(written!, 'data')).toMatchObject({ state: 'failed', fix: `chmod 700 ${shared}` })
    expect(line(none!, 'data')).toMatchObject({ state: 'failed', fix: `mv "${file}" "${file}.old"` })
    expect(line(nowhere!, 'data')).toMatchObject({ state: 'failed', fix: 'wb doctor --data-dir DIR' })
    for (const { fix } of lines(open).filter(one => one.fix.startsWith('chmod')))
      execFileSync('sh', ['-c', fix])
    const mended = await wb(['doctor'])
    expect(mended).toMatchObject({ status: 0, stderr: expect.stringContaining('no problems') })
  })
})

test('reports a port in use, the selected keychain, and providers that do not respond', async () => {
  const { port } = await startHttpServer(() => {})
  const provider = await startOtherRuntime({ aheadMs: 300_000 })
  const configured = (issuer: string) => ({
    runtime: { port },
    auth: { mode: 'oidc', oidc: { issuer, audience: 'wb' } },
    chat: { provider: 'ollama', baseUrl: 'http://127.0.0.1:9' },
  })
  const [chosen, usual] = await Promise.all([
    createMachine(configured('http://127.0.0.1:9')).wb(['doctor'], { env: { WB_KEYCHAIN: 'keytar' } }),
    createMachine(configured(provider.url)).wb(['doctor'], { env: { WB_KEYCHAIN: '' } }),
  ])
  expect(chosen.status).toBe(1)
  expect(problemsIn(chosen)).toMatchObject({
    port: 'warning',
    identity: 'failed',
    chat: 'failed',
    keychain: 'failed',
  })
  expect(problemsIn(usual)).toMatchObject({ identity: 'failed', keychain: 'warning' })
  expect(line(chosen, 'port')).toMatchObject({
    detail: expect.stringMatching(new RegExp(`^${port} is in use by .+ \\(pid ${process.pid}\\)$`)),
    fix: 'wb serve --port 0',
  })
  expect(line(chosen, 'keychain')).toMatchObject({
    detail: expect.stringMatching(/^keytar: /),
    fix: 'wb login --insecure-storage',
  })
  expect(line(chosen, 'chat')).toMatchObject({
    detail: expect.stringMatching(/^the chat provider could not be reached: .*refused\. Start the model/),
    fix: 'wb config show',
  })
  expect(line(chosen, 'identity')).toMatchObject({
    detail: 'http://127.0.0.1:9 does not respond',
    fix: 'curl -v http://127.0.0.1:9/.well-known/openid-configuration',
  })
  expect(line(usual, 'identity')?.detail).toMatch(/^this machine is (299|3\d\d) s behind/)
})

describe('a runtime with another clock or version', () => {
  test('fails if the clock differs by two minutes, and warns about another version', async () => {
    const { wb } = createMachine()
    const { url } = await startOtherRuntime({ aheadMs: 300_000 })
    const ended = await wb(['doctor', '--url', url], { env: { WB_API_KEY: 'wb_live_x' } })
    expect(problemsIn(ended)).toEqual({ clock: 'failed', version: 'warning' })
    expect(line(ended, 'clock')?.detail).toMatch(/^this machine is (299|3\d\d) s behind the runtime;/)
    expect(line(ended, 'version')?.fix).toBe('npm install --global workbase@9.9.9')
    expect(line(ended, 'auth')?.detail).toBe('an API key in WB_API_KEY; you are ci')
    expect(ended.status).toBe(1)
  })

  test('the version of a runtime is not inserted into a suggested command', async () => {
    const { wb } = createMachine()
    const { url } = await startOtherRuntime({ aheadMs: -60_000, version: '1.0.0; rm -rf ~' })
    const ended = await wb(['doctor', '--url', url])
    expect(problemsIn(ended)).toEqual({ clock: 'warning', version: 'warning' })
    expect(line(ended, 'clock')?.detail).toMatch(/ahead of the runtime/)
    expect(line(ended, 'version')?.fix).toBe('')
    expect(ended.status).toBe(0)
  })

  const skew = (ms: number, uncertaintyMs = 500): ClockSkew => ({ ms, uncertaintyMs })
  test.each([
    [skew(30_500), 'ok'],
    [skew(-30_501), 'warning'],
    [skew(120_500), 'warning'],
    [skew(120_501), 'failed'],
    [skew(100_000, 70_000), 'ok'],
    [undefined, 'skipped'],
  ])('the clock check with %j is %s', (found, state) =>
    expect(clockSkewFinding(found, 'it').state).toBe(state),
  )
})

describe('credentials', () => {
  test('reports an unknown key, a missing key, and a valid key', async () => {
    const { wb, serve } = createMachine({
      auth: { mode: 'apiKey', anonymousPolicy: 'reject', bootstrapTokenRef: 'env:BOOTSTRAP' },
      chat: { provider: 'ollama', baseUrl: 'http://127.0.0.1:9' },
    })
    const BOOTSTRAP = 'bootstrap-token-of-a-test-of-32-bytes-and-more'
    await serve([], { env: { BOOTSTRAP } })
    const [stranger, nobody, known] = await Promise.all(
      ['wb_live_aaaaaaaaaaaa_bbbb', '', BOOTSTRAP].map(WB_API_KEY =>
        wb(['doctor'], { env: { WB_API_KEY, BOOTSTRAP } }),
      ),
    )
    const maker = 'wb keys create NAME --role admin --as-operator'
    expect(line(stranger!, 'auth')).toMatchObject({
      state: 'failed',
      detail: expect.stringContaining('does not accept the key aaaaaaaaaaaa in WB_API_KEY'),
      fix: maker,
    })
    expect(line(nobody!, 'auth')).toMatchObject({
      state: 'failed',
      detail: 'no credential, but the runtime requires one',
      fix: maker,
    })
    expect(line(nobody!, 'chat')).toMatchObject({
      state: 'skipped',
      detail: 'the runtime reports this only to its operator',
    })
    expect(line(known!, 'auth')?.state).toBe('ok')
    expect(problemsIn(known!)).toEqual({ chat: 'failed' })
  })
})

test('warns about a server without authentication if its configuration requires it since a change', async () => {
  const machine = createMachine()
  await machine.serve()
  const auth = { mode: 'apiKey', anonymousPolicy: 'reject' }
  writeFileSync(machine.env.WB_CONFIG!, JSON.stringify({ version: 1, auth }))
  expect(line(await machine.wb(['doctor']), 'auth')).toEqual({
    name: 'auth',
    state: 'warning',
    detail: 'no credential is needed, but the configuration requires one; restart the server',
    fix: 'wb api POST /setup/restart',
  })
})

test('reports a missing login once, and an unreadable keychain on the keychain line', async () => {
  const { sandbox, url, key } = await startRuntimeWithKeys()
  await sandbox.wb(['login', url, '--with-token'], { input: key })
  const folder = join(sandbox.env.XDG_CONFIG_HOME!, 'workbase', 'credentials')
  const entry = join(folder, readdirSync(folder)[0]!)
  chmodSync(entry, 0o644)
  const shut = await sandbox.wb(['doctor'])
  expect(problemsIn(shut)).toEqual({ secrets: 'failed', keychain: 'failed' })
  expect(line(shut, 'auth')?.detail).toMatch(/^an API key stored by wb login for laptop, .*; see keychain$/)
  rmSync(entry)
  const ended = await sandbox.wb(['doctor'])
  expect(problemsIn(ended)).toEqual({ auth: 'failed' })
  expect(line(ended, 'auth')).toMatchObject({
    detail: 'the keychain no longer contains this login',
    fix: `wb login ${url}`,
  })
  for (const name of ['chat', 'embedding'])
    expect(line(ended, name)).toMatchObject({ state: 'skipped', detail: 'needs a login; see auth' })
})

describe('an unreachable runtime', () => {
  test('only the connection check fails, in bounded time, if nothing listens or responds', async () => {
    const silent = await startHttpServer(() => {})
    const { wb } = createMachine()
    const [unreachable, late] = await Promise.all([
      wb(['doctor', '--url', 'http://127.0.0.1:9']),
      wb(['doctor', '--url', silent.url]),
    ])
    expect(problemsIn(unreachable)).toEqual({ runtime: 'failed' })
    expect(line(unreachable, 'runtime')?.fix).toBe('wb serve --port 9')
    expect(line(unreachable, 'auth')?.state).toBe('skipped')
    expect(problemsIn(late)).toEqual({ runtime: 'failed' })
    expect(line(late, 'runtime')).toMatchObject({
      detail: `${silent.url} does not respond in time`,
      fix: 'wb doctor --url URL',
    })
  })

  test('prints the suggested command on its own line in a terminal', async () => {
    const sandbox = createMachine()
    const { status, text } = await runInFakeTerminal(sandbox, ['doctor', '--url', 'http://127.0.0.1:9'], {
      cols: 60,
    })
    const shown = stripSequences(text)
    expect(status).toBe(1)
    expect(shown).toContain('  ✓ secrets     no files with secrets\n')
    expect(shown).toMatch(/ {2}✗ runtime .*\n {16}connection refused\n {16}wb serve --port 9\n/)
    expect(shown).toContain('  – auth        no runtime to check\n')
    expect(shown).toMatch(/ {2}✗ 1 problem found\n$/)
  })
})

test.each([
  ['18.20.8', 'failed'],
  ['20.18.3', 'failed'],
  ['20.19.0', 'ok'],
  ['22.1.0', 'ok'],
])('Node.js %s is %s', (version, state) => expect(checkNode(version).state).toBe(state))

import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, createServer } from 'node:net'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { createSandbox, runProgram, type Sandbox } from './sandbox.ts'
import { setUpSignIn, signIn } from './sign-in.ts'

const shared = createSandbox(afterAll)
const keyFile = join(shared.home, 'ci.key')
const tools = join(shared.home, 'tools')
let url: string
beforeAll(async () => {
  mkdirSync(tools)
  const wb = `#!/bin/sh\nexec "${process.execPath}" "${resolve('bin/run.js')}" "$@"\n`
  writeFileSync(join(tools, 'wb'), wb, { mode: 0o755 })
  shared.env.WB_CONFIG = join(shared.home, 'access.yaml')
  writeFileSync(shared.env.WB_CONFIG, 'version: 1\nauth: { mode: apiKey, anonymousPolicy: reject }\n')
  url = (await shared.serve()).url
  await shared.wb(['keys', 'create', 'laptop', '--role', 'editor', '--as-operator', '--write', keyFile])
})

/** Creates a sandbox of a user who knows the address of a runtime that requires a key, and has a key file. */
function createUserSandbox(): Sandbox {
  const sandbox = createSandbox()
  delete sandbox.env.WB_DATA_DIR
  Object.assign(sandbox.env, { WB_KEYCHAIN: 'file', PATH: `${tools}:${sandbox.env.PATH}` })
  return sandbox
}

/** Returns the last line of output. */
function lastLine(output: string): string {
  return output.replaceAll('\r\n', '\n').trimEnd().split('\n').at(-1)!.trim()
}

/** Runs a suggested line in a shell, with `KEY_FILE` replaced by the path of the key file. */
async function runSuggestedLine(sandbox: Sandbox, line: string): Promise<number | null> {
  const { status } = await runProgram(sandbox, 'bash', ['-c', line.replace('KEY_FILE', keyFile)])
  return status
}

/** Returns true if the output has at most 12 lines. */
function isOneScreen(output: string): boolean {
  return output.trimEnd().split('\n').length <= 12
}

test('signed out, then a login in CI: the last line of each error leads to a login', async () => {
  const sandbox = createUserSandbox()
  const refused = await sandbox.wb(['kb', 'list', '--url', url])
  expect([refused.status, isOneScreen(refused.stderr)]).toEqual([3, true])
  const line = lastLine(refused.stderr)
  expect(line).toBe(`wb login ${url}`)
  const inCi = await sandbox.wb(line.split(' ').slice(1), { env: { CI: 'true' } })
  expect([inCi.status, isOneScreen(inCi.stderr)]).toEqual([2, true])
  expect(await runSuggestedLine(sandbox, lastLine(inCi.stderr))).toBe(0)
  expect((await sandbox.wb(['kb', 'list'])).status).toBe(0)
})

test('an incomplete address, then no keychain: the last line of each error leads to a login', async () => {
  const sandbox = createUserSandbox()
  const incomplete = await sandbox.wb(['login', new URL(url).host, '--with-token'])
  expect([incomplete.status, lastLine(incomplete.stderr)]).toEqual([2, `wb login ${url} --with-token`])
  const env = { WB_KEYCHAIN: 'keyring', DBUS_SESSION_BUS_ADDRESS: 'unix:path=/nowhere' }
  const none = await sandbox.wb(lastLine(incomplete.stderr).split(' ').slice(1), { env, input: 'x' })
  expect([none.status, isOneScreen(none.stderr)]).toEqual([3, true])
  expect(await runSuggestedLine(sandbox, `${lastLine(none.stderr)} --with-token < KEY_FILE`)).toBe(0)
  expect((await sandbox.wb(['kb', 'list'])).status).toBe(0)
})

test('login without a runtime lists the alternatives, and they work', async () => {
  const { wb } = createSandbox()
  const { status, stderr } = await wb(['login'])
  expect([status, isOneScreen(stderr)]).toEqual([0, true])
  expect(stderr).toMatch(/\n {2}wb login https:\/\/… .*\n {2}wb serve .*\n {2}wb quickstart /)
  expect((await wb(['quickstart'])).status).toBe(0)
})

test('if nothing responds, the last line starts a server or diagnoses the connection', async () => {
  const sandbox = createUserSandbox()
  const free = createServer().listen(0, '127.0.0.1')
  await once(free, 'listening')
  const nowhere = `http://127.0.0.1:${(free.address() as AddressInfo).port}`
  await once(free.close(), 'close')
  const unreachable = await sandbox.wb(['workspaces', 'list', '--url', nowhere])
  expect([unreachable.status, isOneScreen(unreachable.stderr)]).toEqual([6, true])
  const [, verb, ...flags] = lastLine(unreachable.stderr).split(' ')
  expect(verb).toBe('serve')
  await sandbox.serve(flags)
  expect((await sandbox.wb(['workspaces', 'list', '--url', nowhere])).status).toBe(0)
  const far = await sandbox.wb(['login', 'https://wb.invalid'])
  expect([far.status, lastLine(far.stderr)]).toEqual([6, 'wb doctor --url https://wb.invalid'])
})

test('if the server of a profile has stopped, the error suggests commands that work without it', async () => {
  const sandbox = createUserSandbox()
  await sandbox.wb(['workspaces', 'create', 'mine'])
  const server = await sandbox.serve()
  await sandbox.wb(['login', server.url])
  await server.stop()
  const unreachable = await sandbox.wb(['workspaces', 'list'])
  const onward = 'wb profiles add here && wb profiles use here'
  expect([unreachable.status, unreachable.stderr.split('\n').slice(2, 4)]).toEqual([
    6,
    [
      '    add --local to use the data directory of this machine for one command',
      `    ${onward}    switches back to this machine`,
    ],
  ])
  const once = await sandbox.wb(['workspaces', 'list', '--local'])
  expect([once.status, once.stdout]).toEqual([0, expect.stringContaining('\tmine\t')])
  const variable = await sandbox.wb(['workspaces', 'list', '--local'], { env: { WB_URL: server.url } })
  expect([variable.status, variable.stdout]).toEqual([0, once.stdout])
  const named = await sandbox.wb(['workspaces', 'list', '--profile', 'default'])
  expect([named.status, named.stderr]).toEqual([
    6,
    expect.stringContaining(
      '\n    use --local instead of --profile default to use the data directory of this machine',
    ),
  ])
  expect(await runSuggestedLine(sandbox, onward)).toBe(0)
  expect((await sandbox.wb(['workspaces', 'list'])).stdout).toBe(once.stdout)
})

test.each([
  ['--url', ['kb', 'list', '--local', '--url', 'http://127.0.0.1:1']],
  ['--profile', ['kb', 'list', '--local', '--profile', 'default']],
  ['URL', ['login', 'http://127.0.0.1:1', '--local']],
])('--local cannot be combined with %s, which the error names', async (other, words) => {
  expect(await createSandbox().wb(words)).toEqual({
    status: 2,
    stdout: '',
    stderr: `  ✗ --local cannot be combined with ${other}\n    --local uses the data directory of this machine; remove --local or ${other}\n`,
  })
})

test('https to an http server, the address of a page, credentials in a URL: the last line uses the correct address', async () => {
  const { wb, serve } = createSandbox()
  const { url } = await serve()
  const secure = url.replace('http:', 'https:')
  const base = ['login', 'kb list --url', 'kb list --url'].map(words => words.split(' '))
  const wrongAddresses = [
    `${secure}/`,
    secure,
    `${url}/api/v1/`,
    `${url}/docs`,
    `${url}/any/path`,
    url.replace('//', '//me:pw@'),
  ]
  for (const [at, address] of wrongAddresses.entries()) {
    const words = [...base[at % base.length]!, address]
    const ended = await wb(words)
    expect([ended.status === 0, isOneScreen(ended.stderr)], address).toEqual([false, true])
    expect(lastLine(ended.stderr)).toBe(`wb ${[...words.slice(0, -1), url].join(' ')}`)
    expect(ended.stderr).not.toContain('me:pw')
  }
  const named = await wb(['whoami'], { env: { WB_URL: secure } })
  expect(lastLine(named.stderr)).toBe(`WB_URL=${url} wb whoami`)
  await wb(['profiles', 'add', 'work', '--url', secure])
  const stored = await wb(['kb', 'list', '--profile', 'work'], { env: { WB_DATA_DIR: '' } })
  const line = lastLine(stored.stderr)
  expect(line).toBe(`wb login ${url} --profile work`)
  expect((await wb(line.split(' ').slice(1))).status).toBe(0)
  expect((await wb(['kb', 'list', '--profile', 'work'], { env: { WB_DATA_DIR: '' } })).status).not.toBe(6)
})

test('http to an https server: the error names the mismatch, and the last line uses https', async () => {
  const { wb } = createSandbox()
  const pem = (name: string) => readFileSync(`test/fixtures/tls/${name}.pem`)
  const server = createTlsServer({ key: pem('server-key'), cert: pem('server') }, (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"items":[],"nextCursor":null}')
  })
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  onTestFinished(() => void server.close())
  const address = `localhost:${(server.address() as AddressInfo).port}`
  const login = await wb(['login', `http://${address}`])
  expect([login.status, login.stderr]).toEqual([6, expect.stringContaining('it uses https, not http\n')])
  expect(lastLine(login.stderr)).toBe(`wb login https://${address}`)
  const list = await wb(['workspaces', 'list', '--url', `http://${address}`])
  const line = lastLine(list.stderr)
  expect(line).toBe(`wb workspaces list --url https://${address}`)
  const env = { SSL_CERT_FILE: resolve('test/fixtures/tls/authority.pem') }
  expect((await wb(line.split(' ').slice(1), { env })).status).toBe(0)
})

test('unencrypted to another machine: the last line uses https, and no output contains the secret [security rule 15]', async () => {
  const { wb } = createSandbox()
  const login = await wb(['login', 'http://wb.invalid/', '--profile', 'work'])
  expect(login.stderr).toBe(
    [
      '  ✗ A login would be sent unencrypted to http://wb.invalid',
      '    wb login http://wb.invalid --profile work --insecure-http    if you trust the network',
      '    wb login https://wb.invalid --profile work\n',
    ].join('\n'),
  )
  const env = { WB_URL: 'http://wb.invalid', WB_API_KEY: 'canary' }
  const named = await wb(['kb', 'list'], { env })
  expect([named.status, lastLine(named.stderr)]).toEqual([2, 'WB_URL=https://wb.invalid wb kb list'])
  const raw = ['api', 'GET', '/version', '-H', 'Authorization: canary', '--url', 'http://wb.invalid']
  const secret = await wb(raw)
  expect([secret.status, lastLine(secret.stderr)]).toEqual([2, '--url https://wb.invalid'])
  expect(named.stderr + secret.stderr).not.toContain('canary')
})

test('an expired device code: the last line restarts the login', async () => {
  const { sandbox, server } = await setUpSignIn({ deviceCodeSeconds: 4 })
  const ended = await signIn(sandbox, server.url, { onCode: () => undefined })
  const line = lastLine(ended.text)
  expect(line).toBe(`wb login ${server.url}`)
  const again = await signIn(sandbox, line.split(' ')[2]!)
  expect(again.status, again.text).toBe(0)
})

import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { waitUntil } from '../harness/runtime.ts'
import { type CommandResult, createSandbox, type Sandbox } from './sandbox.ts'
import { completeSignIn, secrets, setUpSignIn, signIn, startRuntimeWithKeys } from './sign-in.ts'
import { runInFakeTerminal, runInTerminal, stripSequences, type TerminalResult } from './terminal.ts'

/** Returns the last line of stderr, which is the suggested next command. */
function lastLine({ stderr }: Pick<CommandResult, 'stderr'>): string {
  return stderr.trimEnd().split('\n').at(-1)!.trim()
}

/** Types each answer once, when its prompt appears. */
function answerPrompts(answers: Record<string, string>): (written: string) => string | undefined {
  let screen = ''
  return written => {
    screen += written
    const question = Object.keys(answers).find(words => screen.includes(words))
    if (question === undefined) return undefined
    const { [question]: answer } = answers
    delete answers[question]
    return answer
  }
}

async function listenOnFreePort(server: Server): Promise<string> {
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function settingsFiles({ env }: Sandbox): string[] {
  const folder = join(env.XDG_CONFIG_HOME!, 'workbase')
  return existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort() : []
}

describe('wb login with a device code', () => {
  test('S5.8-01: the approved login is used for later commands without an API key', async () => {
    const setup = await setUpSignIn()
    const { sandbox, server, provider } = setup
    const { status, text } = await signIn(setup.sandbox, setup.server.url)
    expect(status, text).toBe(0)
    expect(text).toContain(`✓ signed in to ${server.url} as alice@example.test`)
    expect(text).toMatch(/may +do everything, in every workspace\n/)
    expect(text).toMatch(/\n {2}wb kb search "…"\n$/)
    expect(provider.count('/device/auth')).toBe(1)
    const created = await sandbox.wb(['workspaces', 'create', 'demo', '--json'])
    expect(created.status, created.stderr).toBe(0)
    expect((await sandbox.wb(['whoami'])).stdout).toMatch(/^alice@example\.test\tidentity provider\t/)
    const authStatus = await sandbox.wb(['auth', 'status'])
    expect(authStatus.stdout).toContain('credential\tan access token stored by wb login for alice')
    const out = await sandbox.wb(['logout'])
    expect(out.stderr).toBe(
      `  ✓ signed out of ${server.url} (alice@example.test)\n` +
        '  wb profiles add here && wb profiles use here    switches back to this machine\n',
    )
    const stranger = await sandbox.wb(['whoami'])
    expect([stranger.status, lastLine(stranger)]).toEqual([3, `wb login ${server.url}`])
    expect(settingsFiles(sandbox).filter(name => name.startsWith('credentials/'))).toEqual([])
  })

  test('S5.8-03: the login takes precedence over WB_API_KEY unless --credential selects the key', async () => {
    const setup = await setUpSignIn()
    const { sandbox, server } = setup
    await signIn(setup.sandbox, setup.server.url)
    await sandbox.wb(['workspaces', 'create', 'demo'])
    const { stdout: key } = await sandbox.wb(['keys', 'create', 'ci', '--role', 'viewer'])
    const env = { WB_API_KEY: key.trim() }
    expect((await sandbox.wb(['whoami'], { env })).stdout).toMatch(/^alice@/)
    expect((await sandbox.wb(['whoami', '--credential', 'key'], { env })).stdout).toMatch(
      /^ci\tAPI key\tviewer\t/,
    )
    const why = JSON.parse((await sandbox.wb(['auth', 'status', '--json'], { env })).stdout)
    expect(why).toMatchObject({
      runtime: server.url,
      runtimeFrom: 'profile',
      credential: { kind: 'login', from: 'wb login', keychain: 'file' },
      why: 'an access token takes precedence over a key',
      others: [{ kind: 'key', from: 'WB_API_KEY' }],
    })
    const none = await sandbox.wb(['whoami', '--credential', 'key'])
    expect([none.status, lastLine(none)]).toEqual([2, `wb login ${server.url} --with-token < KEY_FILE`])
    const token = await sandbox.wb(['auth', 'token'])
    expect(token.stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/)
    const shown = await runInFakeTerminal(sandbox, ['auth', 'token'])
    expect([shown.status, shown.text]).toEqual([2, expect.not.stringContaining(token.stdout.trim())])
  })

  test('stores nothing if access is denied or the code expires, and the last line suggests how to retry', async () => {
    const setup = await setUpSignIn({ deviceCodeSeconds: 3 })
    const again = `    wb login ${setup.server.url}`
    const refused = await signIn(setup.sandbox, setup.server.url, {
      onCode: shown => completeSignIn(shown, { deny: true }),
    })
    expect([refused.status, refused.text.trimEnd().split('\n').at(-1)], refused.text).toEqual([3, again])
    const ended = await signIn(setup.sandbox, setup.server.url, { onCode: () => undefined })
    expect([ended.status, ended.text.trimEnd().split('\n').at(-1)], ended.text).toEqual([3, again])
    expect(ended.text).toContain('(expired_token')
    expect(settingsFiles(setup.sandbox)).toEqual([])
  })

  test('continues while the provider does not respond and while the runtime restarts', async () => {
    const setup = await setUpSignIn()
    const { provider, server } = setup
    let isSlow = true
    provider.intercept = ({ path }) => (isSlow && path === '/token' ? { status: 503 } : undefined)
    let isGone = false
    const { status, text } = await signIn(setup.sandbox, server.url, {
      onText(screen) {
        if (isGone || !screen.includes('trying again')) return
        isGone = true
        void server
          .stop()
          .then(() => setup.restart())
          .then(() => {
            isSlow = false
          })
      },
    })
    expect(status, text).toBe(0)
    expect(text).toContain('trying again')
    expect(text).toContain('✓ signed in')
  })
})

describe('wb login with a key', () => {
  test('prompts for the key without echo, and reports its permissions and expiry', async () => {
    const { sandbox, url, key } = await startRuntimeWithKeys()
    const { status, text } = await runInTerminal(sandbox, ['login', url], {
      answer: answerPrompts({ '(not shown)': `${key}\r` }),
    })
    const words = stripSequences(text)
    expect(status, words).toBe(0)
    expect(words).not.toContain(key)
    expect(words).toMatch(
      /✓ signed in to \S+ as laptop\n +may +read everything; change everything[\s\S]*in\s+workspace\s+default\n +ends +when it is revoked\n/,
    )
    expect((await sandbox.wb(['whoami'])).stdout).toBe(`laptop\tAPI key\teditor\t${url}\n`)
    const person = stripSequences((await runInFakeTerminal(sandbox, ['whoami'])).text)
    expect(person).toBe(`API key laptop  role editor  never expires  ${url}\n`)
    const [entry] = settingsFiles(sandbox).filter(name => name.startsWith('credentials/'))
    const folder = join(sandbox.env.XDG_CONFIG_HOME!, 'workbase')
    expect(statSync(join(folder, entry!)).mode & 0o777).toBe(0o600)
    for (const name of ['profiles.json', 'logins.json'])
      expect(readFileSync(join(folder, name), 'utf8')).not.toContain(key.slice(22))
  })

  test('reports when the key expires, in a terminal, in a pipe and as JSON', async () => {
    const { sandbox, url, endingKey } = await startRuntimeWithKeys()
    const end = '2999-01-01T00:00:00.000Z'
    const login = await sandbox.wb(['login', url, '--with-token'], { input: endingKey })
    expect([login.status, login.stderr]).toEqual([0, expect.stringMatching(/\n +ends +2999-01-01\n/)])
    expect((await runInFakeTerminal(sandbox, ['whoami'])).text).toContain('expires 2999-01-01')
    expect((await sandbox.wb(['whoami'])).stdout).toBe(`ci\tAPI key\tviewer\t${end}\t${url}\n`)
    expect(JSON.parse((await sandbox.wb(['whoami', '--json'])).stdout)).toMatchObject({ keyExpiresAt: end })
    expect((await sandbox.wb(['auth', 'status'])).stdout).toContain(`\nends\t${end}\n`)
    const status = JSON.parse((await sandbox.wb(['auth', 'status', '--json'])).stdout)
    expect(status).toMatchObject({ expiresAt: end, me: { expiresAt: null, keyExpiresAt: end } })
  })

  test('reads the key from a pipe, checks it before it is stored, and does not prompt in CI', async () => {
    const { sandbox, url, key } = await startRuntimeWithKeys()
    const invalid = await sandbox.wb(['login', url, '--with-token'], { input: `${key}x\n` })
    expect([invalid.status, settingsFiles(sandbox)]).toEqual([3, []])
    const ci = await sandbox.wb(['login', url], { env: { CI: 'true' } })
    expect([ci.status, lastLine(ci)]).toEqual([2, `wb login ${url} --with-token < KEY_FILE`])
    const piped = await sandbox.wb(['login', url])
    expect([piped.status, lastLine(piped)]).toEqual([2, `wb login ${url} --with-token < KEY_FILE`])
    const good = await sandbox.wb(['login', url, '--with-token', '--json'], { input: key })
    expect(JSON.parse(good.stdout)).toMatchObject({
      label: 'laptop',
      profile: 'default',
      runtime: url,
      kind: 'key',
    })
    expect(good.stdout + good.stderr).not.toContain(key.slice(22))
    expect((await sandbox.wb(['kb', 'list'])).status).toBe(0)
  })

  test('asks before it stores a key in a file without a keychain, and suggests the flag in a pipe', async () => {
    const { sandbox, url, key } = await startRuntimeWithKeys()
    const env = { WB_KEYCHAIN: 'keyring', DBUS_SESSION_BUS_ADDRESS: 'unix:path=/nowhere' }
    const piped = await sandbox.wb(['login', url, '--with-token'], { input: key, env })
    expect([piped.status, lastLine(piped)]).toEqual([3, `wb login ${url} --insecure-storage`])
    Object.assign(sandbox.env, env)
    const { status, text } = await runInTerminal(sandbox, ['login', url], {
      answer: answerPrompts({ 'that only you can read?': 'y\r', '(not shown)': `${key}\r` }),
    })
    expect(status, text).toBe(0)
    delete sandbox.env.WB_KEYCHAIN
    expect((await sandbox.wb(['whoami'])).stdout).toMatch(/^laptop\t/)
    expect((await sandbox.wb(['login', url, '--with-token'], { input: key })).status).toBe(0)
  })

  test('sends no key unencrypted to another machine, and reports an invalid address [security rule 15]', async () => {
    const sandbox = createSandbox()
    const far = await sandbox.wb(['login', 'http://wb.example', '--with-token'], { input: 'wb_live_x' })
    expect([far.status, far.stderr]).toEqual([2, expect.stringContaining('would be sent unencrypted')])
    const nobody = await sandbox.wb(['login', 'http://127.0.0.1:1'])
    expect([nobody.status, nobody.stderr]).toEqual([6, expect.stringContaining('connection refused')])
    const name = await sandbox.wb(['login', 'wb.example'])
    expect([name.status, lastLine(name)]).toEqual([2, 'wb login https://wb.example'])
    expect(settingsFiles(sandbox)).toEqual([])
  })
})

describe('Ctrl-C stores nothing', () => {
  const unheard = { WB_KEYCHAIN: 'keyring', DBUS_SESSION_BUS_ADDRESS: 'unix:path=/nowhere' }
  test.each<[string, string[], Record<string, string>, string]>([
    ['at the prompt for a key', [], {}, 'API key:'],
    ['at the prompt for a key or token', ['--with-token'], {}, 'Key or token:'],
    ['at the question whether to store it in a file', [], unheard, 'that only you can read?'],
  ])('%s', async (_what, flags, env, question) => {
    const { sandbox, url, key } = await startRuntimeWithKeys()
    Object.assign(sandbox.env, env)
    const { status, text, isSane } = await runInTerminal(sandbox, ['login', url, ...flags], {
      answer: answerPrompts({ [question]: `${key.slice(0, 30)}\x03` }),
    })
    expectNothingStored(sandbox, { status, text, isSane })
    expect(text).not.toContain(key.slice(0, 30))
  })

  test('while the sign-in methods are requested', async () => {
    const sandbox = createSandbox()
    const url = await listenOnFreePort(createServer(() => {}))
    const { status, text, isSane } = await runInTerminal(sandbox, ['login', url], {
      answer: answerPrompts({ 'checking how to sign in': '\x03' }),
    })
    expectNothingStored(sandbox, { status, text, isSane })
  })

  test('during a device login: before Enter, after the browser opened, and while the provider is down', async () => {
    const { sandbox, server, provider } = await setUpSignIn()
    const tools = join(sandbox.home, 'tools')
    mkdirSync(tools)
    writeFileSync(join(tools, 'browser'), '#!/bin/sh\n', { mode: 0o755 })
    Object.assign(sandbox.env, { BROWSER: join(tools, 'browser'), WAYLAND_DISPLAY: 'wayland-0' })
    expectNothingStored(sandbox, await signIn(sandbox, server.url, { onCode: () => '\x03' }))
    const opened = { 'Enter to open': '\r', 'opened the browser': '\x03' }
    expectNothingStored(
      sandbox,
      await runInTerminal(sandbox, ['login', server.url], { answer: answerPrompts(opened) }),
    )
    provider.intercept = ({ path }) => (path === '/token' ? { status: 503 } : undefined)
    const away = { 'trying again': '\x03' }
    expectNothingStored(
      sandbox,
      await runInTerminal(sandbox, ['login', server.url], { answer: answerPrompts(away) }),
    )
  })

  function expectNothingStored(sandbox: Sandbox, { status, text, isSane }: TerminalResult) {
    const words = stripSequences(text)
    expect([status, isSane], words).toEqual([130, true])
    expect(words).toMatch(/ {2}✗ interrupted; nothing was stored\n$/)
    expect(settingsFiles(sandbox)).toEqual([])
  }
})

test('S5.8-02: the issuer and the client secret appear in no output, even with --debug', async () => {
  const setup = await setUpSignIn()
  const { sandbox, provider } = setup
  await signIn(setup.sandbox, setup.server.url)
  const results = await Promise.all(
    [
      ['auth', 'status', '--debug'],
      ['kb', 'list', '--debug'],
      ['api', 'GET', '/auth/config', '--debug'],
    ].map(args => sandbox.wb(args)),
  )
  const storedTexts = settingsFiles(sandbox)
    .filter(name => name.includes('.'))
    .map(name => readFileSync(join(sandbox.env.XDG_CONFIG_HOME!, 'workbase', name), 'utf8'))
  for (const text of [...results.flatMap(({ stdout, stderr }) => [stdout, stderr]), ...storedTexts]) {
    expect(text).not.toContain(secrets.CLIENT)
    expect(text).not.toContain(provider.issuer)
  }
})

test('passes no credential to other programs, --debug output or settings files', async () => {
  const setup = await setUpSignIn()
  const { sandbox, server } = setup
  const tools = join(sandbox.home, 'tools')
  const spied = join(sandbox.home, 'spied')
  mkdirSync(tools)
  const spy = `#!/bin/sh\n{ echo "$0 $*"; env; } >>${spied}\n[ "$(basename "$0")" = wl-copy ] && cat >${sandbox.home}/copied\nexit 0\n`
  for (const name of ['wl-copy', 'browser']) {
    writeFileSync(join(tools, name), spy)
    chmodSync(join(tools, name), 0o755)
  }
  const canary = `wb_live_canarycanary_${'c'.repeat(32)}`
  Object.assign(sandbox.env, {
    PATH: `${tools}:${sandbox.env.PATH}`,
    WAYLAND_DISPLAY: 'wayland-0',
    BROWSER: join(tools, 'browser'),
    WB_API_KEY: canary,
  })
  const read = (path: string) => (existsSync(path) ? readFileSync(path, 'utf8') : '')
  const copied = join(sandbox.home, 'copied')
  let code = ''
  const { status, text } = await signIn(sandbox, server.url, {
    onCode(shown) {
      code = shown.code
      void waitUntil(() => read(copied) !== '' && read(spied).includes('browser http')).then(() =>
        completeSignIn(shown),
      )
      return '\r'
    },
  })
  expect(status, text).toBe(0)
  expect(text).toContain('Enter to copy the code and open the browser')
  expect(read(copied)).toBe(code)
  const tokens = (await sandbox.wb(['auth', 'token'])).stdout.trim()
  const results = await Promise.all(
    [
      ['kb', 'list', '--debug'],
      ['whoami', '--debug'],
      ['kb', 'show', 'x', '--debug'],
    ].map(args => sandbox.wb(args)),
  )
  const folder = join(sandbox.env.XDG_CONFIG_HOME!, 'workbase')
  const plain = settingsFiles(sandbox).filter(
    name => name.endsWith('.json') && !name.startsWith('credentials/'),
  )
  const seen = [
    read(spied),
    ...results.flatMap(({ stdout, stderr }) => [stdout, stderr]),
    ...plain.map(name => readFileSync(join(folder, name), 'utf8')),
  ]
  expect(seen[0]).toMatch(/wl-copy[\s\S]*browser http/)
  for (const text of seen) for (const secret of [canary, tokens]) expect(text).not.toContain(secret)
})

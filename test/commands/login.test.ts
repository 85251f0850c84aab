import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { until } from '../harness/runtime.ts'
import { keyedRuntime, secrets, signIn, signInStage, visit } from './sign-in.ts'
import { inFakeTerminal, inTerminal, type Screen, withoutSequences } from './terminal.ts'
import { type Ended, type Place, place } from './wb.ts'

/** The last line that a command says; what a person would type next. */
function lastLine({ stderr }: Pick<Ended, 'stderr'>): string {
  return stderr.trimEnd().split('\n').at(-1)!.trim()
}

/** Types each answer once, when its question is there. */
function answering(answers: Record<string, string>): (written: string) => string | undefined {
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

async function listening(server: Server): Promise<string> {
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function settings({ env }: Place): string[] {
  const folder = join(env.XDG_CONFIG_HOME!, 'workbase')
  return existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort() : []
}

describe('wb login by a code', () => {
  test('S5.8-01: approved, the runtime is used from then on, and nobody asks for a key', async () => {
    const stage = await signInStage()
    const { here, server, provider } = stage
    const { status, text } = await signIn(stage.here, stage.server.url)
    expect(status, text).toBe(0)
    expect(text).toContain(`✓ signed in to ${server.url} as alice@example.test`)
    expect(text).toMatch(/may +do everything, in every workspace\n/)
    expect(text).toMatch(/\n {2}wb kb search "…"\n$/)
    expect(provider.count('/device/auth')).toBe(1)
    const made = await here.wb(['workspaces', 'create', 'demo', '--json'])
    expect(made.status, made.stderr).toBe(0)
    expect((await here.wb(['whoami'])).stdout).toMatch(/^alice@example\.test\tidentity provider\t/)
    const status2 = await here.wb(['auth', 'status'])
    expect(status2.stdout).toContain('credential\tan access token stored by wb login for alice')
    const out = await here.wb(['logout'])
    expect(out.stderr).toBe(
      `  ✓ signed out of ${server.url} (alice@example.test)\n` +
        '  wb profiles add here && wb profiles use here    switches back to this machine\n',
    )
    const stranger = await here.wb(['whoami'])
    expect([stranger.status, lastLine(stranger)]).toEqual([3, `wb login ${server.url}`])
    expect(settings(here).filter(name => name.startsWith('credentials/'))).toEqual([])
  })

  test('S5.8-03: the login goes before WB_API_KEY, unless --credential says otherwise', async () => {
    const stage = await signInStage()
    const { here, server } = stage
    await signIn(stage.here, stage.server.url)
    await here.wb(['workspaces', 'create', 'demo'])
    const { stdout: key } = await here.wb(['keys', 'create', 'ci', '--role', 'viewer'])
    const env = { WB_API_KEY: key.trim() }
    expect((await here.wb(['whoami'], { env })).stdout).toMatch(/^alice@/)
    expect((await here.wb(['whoami', '--credential', 'key'], { env })).stdout).toMatch(
      /^ci\tAPI key\tviewer\t/,
    )
    const why = JSON.parse((await here.wb(['auth', 'status', '--json'], { env })).stdout)
    expect(why).toMatchObject({
      runtime: server.url,
      runtimeFrom: 'profile',
      credential: { kind: 'login', from: 'wb login', keychain: 'file' },
      why: 'an access token takes precedence over a key',
      others: [{ kind: 'key', from: 'WB_API_KEY' }],
    })
    const none = await here.wb(['whoami', '--credential', 'key'])
    expect([none.status, lastLine(none)]).toEqual([2, `wb login ${server.url} --with-token < KEY_FILE`])
    const token = await here.wb(['auth', 'token'])
    expect(token.stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/)
    const shown = await inFakeTerminal(here, ['auth', 'token'])
    expect([shown.status, shown.text]).toEqual([2, expect.not.stringContaining(token.stdout.trim())])
  })

  test('refused at the provider, and a code that ends: nothing is left, and the last line starts again', async () => {
    const stage = await signInStage({ deviceCodeSeconds: 3 })
    const again = `    wb login ${stage.server.url}`
    const refused = await signIn(stage.here, stage.server.url, {
      onCode: shown => visit(shown, { deny: true }),
    })
    expect([refused.status, refused.text.trimEnd().split('\n').at(-1)], refused.text).toEqual([3, again])
    const ended = await signIn(stage.here, stage.server.url, { onCode: () => undefined })
    expect([ended.status, ended.text.trimEnd().split('\n').at(-1)], ended.text).toEqual([3, again])
    expect(ended.text).toContain('(expired_token')
    expect(settings(stage.here)).toEqual([])
  })

  test('goes on while the provider does not respond and while the runtime restarts', async () => {
    const stage = await signInStage()
    const { provider, server } = stage
    let isSlow = true
    provider.front = ({ path }) => (isSlow && path === '/token' ? { status: 503 } : undefined)
    let isGone = false
    const { status, text } = await signIn(stage.here, server.url, {
      onText(screen) {
        if (isGone || !screen.includes('trying again')) return
        isGone = true
        void server
          .stop()
          .then(() => stage.restart())
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
  test('is asked for and not shown; what it may do and for how long is said', async () => {
    const { here, url, key } = await keyedRuntime()
    const { status, text } = await inTerminal(here, ['login', url], {
      answer: answering({ '(not shown)': `${key}\r` }),
    })
    const words = withoutSequences(text)
    expect(status, words).toBe(0)
    expect(words).not.toContain(key)
    expect(words).toMatch(
      /✓ signed in to \S+ as laptop\n +may +read everything; change everything[\s\S]*in workspace default\n +ends +when it is revoked\n/,
    )
    expect((await here.wb(['whoami'])).stdout).toBe(`laptop\tAPI key\teditor\t${url}\n`)
    const person = withoutSequences((await inFakeTerminal(here, ['whoami'])).text)
    expect(person).toBe(`API key laptop  role editor  never ends  ${url}\n`)
    const [entry] = settings(here).filter(name => name.startsWith('credentials/'))
    const folder = join(here.env.XDG_CONFIG_HOME!, 'workbase')
    expect(statSync(join(folder, entry!)).mode & 0o777).toBe(0o600)
    for (const name of ['profiles.json', 'logins.json'])
      expect(readFileSync(join(folder, name), 'utf8')).not.toContain(key.slice(22))
  })

  test('that ends says when: to a person, in a pipe and as JSON', async () => {
    const { here, url, endingKey } = await keyedRuntime()
    const end = '2999-01-01T00:00:00.000Z'
    const login = await here.wb(['login', url, '--with-token'], { input: endingKey })
    expect([login.status, login.stderr]).toEqual([0, expect.stringMatching(/\n +ends +2999-01-01\n/)])
    expect((await inFakeTerminal(here, ['whoami'])).text).toContain('ends 2999-01-01')
    expect((await here.wb(['whoami'])).stdout).toBe(`ci\tAPI key\tviewer\t${end}\t${url}\n`)
    expect(JSON.parse((await here.wb(['whoami', '--json'])).stdout)).toMatchObject({ keyExpiresAt: end })
    expect((await here.wb(['auth', 'status'])).stdout).toContain(`\nends\t${end}\n`)
    const status = JSON.parse((await here.wb(['auth', 'status', '--json'])).stdout)
    expect(status).toMatchObject({ expiresAt: end, me: { expiresAt: null, keyExpiresAt: end } })
  })

  test('comes from a pipe, is checked before it is kept, and in CI nobody is asked', async () => {
    const { here, url, key } = await keyedRuntime()
    const wrong = await here.wb(['login', url, '--with-token'], { input: `${key}x\n` })
    expect([wrong.status, settings(here)]).toEqual([3, []])
    const ci = await here.wb(['login', url], { env: { CI: 'true' } })
    expect([ci.status, lastLine(ci)]).toEqual([2, `wb login ${url} --with-token < KEY_FILE`])
    const piped = await here.wb(['login', url])
    expect([piped.status, lastLine(piped)]).toEqual([2, `wb login ${url} --with-token < KEY_FILE`])
    const good = await here.wb(['login', url, '--with-token', '--json'], { input: key })
    expect(JSON.parse(good.stdout)).toMatchObject({
      label: 'laptop',
      profile: 'default',
      runtime: url,
      kind: 'key',
    })
    expect(good.stdout + good.stderr).not.toContain(key.slice(22))
    expect((await here.wb(['kb', 'list'])).status).toBe(0)
  })

  test('without a keychain the person is told, and asked; a pipe is told what to type', async () => {
    const { here, url, key } = await keyedRuntime()
    const env = { WB_KEYCHAIN: 'keyring', DBUS_SESSION_BUS_ADDRESS: 'unix:path=/nowhere' }
    const piped = await here.wb(['login', url, '--with-token'], { input: key, env })
    expect([piped.status, lastLine(piped)]).toEqual([3, `wb login ${url} --insecure-storage`])
    Object.assign(here.env, env)
    const { status, text } = await inTerminal(here, ['login', url], {
      answer: answering({ 'that only you can read?': 'y\r', '(not shown)': `${key}\r` }),
    })
    expect(status, text).toBe(0)
    delete here.env.WB_KEYCHAIN
    expect((await here.wb(['whoami'])).stdout).toMatch(/^laptop\t/)
    expect((await here.wb(['login', url, '--with-token'], { input: key })).status).toBe(0)
  })

  test('goes nowhere unencrypted but on this machine; a wrong address is told [security rule 15]', async () => {
    const here = place()
    const far = await here.wb(['login', 'http://wb.example', '--with-token'], { input: 'wb_live_x' })
    expect([far.status, far.stderr]).toEqual([2, expect.stringContaining('would be sent unencrypted')])
    const nobody = await here.wb(['login', 'http://127.0.0.1:1'])
    expect([nobody.status, nobody.stderr]).toEqual([6, expect.stringContaining('connection refused')])
    const name = await here.wb(['login', 'wb.example'])
    expect([name.status, lastLine(name)]).toEqual([2, 'wb login https://wb.example'])
    expect(settings(here)).toEqual([])
  })
})

describe('Ctrl-C leaves nothing behind', () => {
  const unheard = { WB_KEYCHAIN: 'keyring', DBUS_SESSION_BUS_ADDRESS: 'unix:path=/nowhere' }
  test.each<[string, string[], Record<string, string>, string]>([
    ['where a key is asked for', [], {}, 'API key:'],
    ['where what one has is asked for', ['--with-token'], {}, 'Key or token:'],
    ['where it is asked whether a file may keep it', [], unheard, 'that only you can read?'],
  ])('%s', async (_what, flags, env, question) => {
    const { here, url, key } = await keyedRuntime()
    Object.assign(here.env, env)
    const { status, text, isSane } = await inTerminal(here, ['login', url, ...flags], {
      answer: answering({ [question]: `${key.slice(0, 30)}\x03` }),
    })
    expectNothingKept(here, { status, text, isSane })
    expect(text).not.toContain(key.slice(0, 30))
  })

  test('while the runtime is asked how to sign in', async () => {
    const here = place()
    const url = await listening(createServer(() => {}))
    const { status, text, isSane } = await inTerminal(here, ['login', url], {
      answer: answering({ 'checking how to sign in': '\x03' }),
    })
    expectNothingKept(here, { status, text, isSane })
  })

  test('while a code waits: before Enter, after it opened a browser, and while the provider is away', async () => {
    const { here, server, provider } = await signInStage()
    const tools = join(here.home, 'tools')
    mkdirSync(tools)
    writeFileSync(join(tools, 'browser'), '#!/bin/sh\n', { mode: 0o755 })
    Object.assign(here.env, { BROWSER: join(tools, 'browser'), WAYLAND_DISPLAY: 'wayland-0' })
    expectNothingKept(here, await signIn(here, server.url, { onCode: () => '\x03' }))
    const opened = { 'Enter to open': '\r', 'opened the browser': '\x03' }
    expectNothingKept(here, await inTerminal(here, ['login', server.url], { answer: answering(opened) }))
    provider.front = ({ path }) => (path === '/token' ? { status: 503 } : undefined)
    const away = { 'trying again': '\x03' }
    expectNothingKept(here, await inTerminal(here, ['login', server.url], { answer: answering(away) }))
  })

  function expectNothingKept(here: Place, { status, text, isSane }: Screen) {
    const words = withoutSequences(text)
    expect([status, isSane], words).toEqual([130, true])
    expect(words).toMatch(/ {2}✗ interrupted; nothing was stored\n$/)
    expect(settings(here)).toEqual([])
  }
})

test('S5.8-02: issuer and client secret reach no command line, not with --debug either', async () => {
  const stage = await signInStage()
  const { here, provider } = stage
  await signIn(stage.here, stage.server.url)
  const said = await Promise.all(
    [
      ['auth', 'status', '--debug'],
      ['kb', 'list', '--debug'],
      ['api', 'GET', '/auth/config', '--debug'],
    ].map(args => here.wb(args)),
  )
  const kept = settings(here)
    .filter(name => name.includes('.'))
    .map(name => readFileSync(join(here.env.XDG_CONFIG_HOME!, 'workbase', name), 'utf8'))
  for (const text of [...said.flatMap(({ stdout, stderr }) => [stdout, stderr]), ...kept]) {
    expect(text).not.toContain(secrets.CLIENT)
    expect(text).not.toContain(provider.issuer)
  }
})

test('no credential is in the arguments or the environment of a program that is started, in --debug, or in a settings file', async () => {
  const stage = await signInStage()
  const { here, server } = stage
  const tools = join(here.home, 'tools')
  const spied = join(here.home, 'spied')
  mkdirSync(tools)
  const spy = `#!/bin/sh\n{ echo "$0 $*"; env; } >>${spied}\n[ "$(basename "$0")" = wl-copy ] && cat >${here.home}/copied\nexit 0\n`
  for (const name of ['wl-copy', 'browser']) {
    writeFileSync(join(tools, name), spy)
    chmodSync(join(tools, name), 0o755)
  }
  const canary = `wb_live_canarycanary_${'c'.repeat(32)}`
  Object.assign(here.env, {
    PATH: `${tools}:${here.env.PATH}`,
    WAYLAND_DISPLAY: 'wayland-0',
    BROWSER: join(tools, 'browser'),
    WB_API_KEY: canary,
  })
  const read = (path: string) => (existsSync(path) ? readFileSync(path, 'utf8') : '')
  const copied = join(here.home, 'copied')
  let code = ''
  const { status, text } = await signIn(here, server.url, {
    onCode(shown) {
      code = shown.code
      void until(() => read(copied) !== '' && read(spied).includes('browser http')).then(() => visit(shown))
      return '\r'
    },
  })
  expect(status, text).toBe(0)
  expect(text).toContain('Enter to copy the code and open the browser')
  expect(read(copied)).toBe(code)
  const tokens = (await here.wb(['auth', 'token'])).stdout.trim()
  const said = await Promise.all(
    [
      ['kb', 'list', '--debug'],
      ['whoami', '--debug'],
      ['kb', 'show', 'x', '--debug'],
    ].map(args => here.wb(args)),
  )
  const folder = join(here.env.XDG_CONFIG_HOME!, 'workbase')
  const plain = settings(here).filter(name => name.endsWith('.json') && !name.startsWith('credentials/'))
  const seen = [
    read(spied),
    ...said.flatMap(({ stdout, stderr }) => [stdout, stderr]),
    ...plain.map(name => readFileSync(join(folder, name), 'utf8')),
  ]
  expect(seen[0]).toMatch(/wl-copy[\s\S]*browser http/)
  for (const text of seen) for (const secret of [canary, tokens]) expect(text).not.toContain(secret)
})

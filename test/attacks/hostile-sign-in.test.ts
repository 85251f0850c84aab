import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Clock } from '../../src/base/clock.ts'
import { withResponseTimeout } from '../../src/cli/connection/response-timeout.ts'
import { openNetwork } from '../../src/client/node/transport.ts'
import { createSandbox, type Sandbox } from '../commands/sandbox.ts'
import { startRuntimeWithKeys } from '../commands/sign-in.ts'
import { runInTerminal, stripSequences } from '../commands/terminal.ts'

interface RecordedRequest {
  readonly path: string
  readonly authorization: string | undefined
}

/** Starts a server with fixed responses by path, and records its requests. */
async function startFixedServer(
  rules: Record<string, unknown>,
): Promise<{ url: string; asked: RecordedRequest[] }> {
  const requests: RecordedRequest[] = []
  const url = await startServer((request, response) => {
    const path = request.url ?? ''
    requests.push({ path, authorization: request.headers.authorization })
    response.writeHead(path in rules ? 200 : 404, { 'content-type': 'application/json' })
    response.end(JSON.stringify(rules[path] ?? { error: { code: 'not_found', message: 'no' } }))
  })
  return { url, asked: requests }
}

async function startServer(answer: RequestListener): Promise<string> {
  const server = createServer(answer)
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const device = {
  '/auth/config': {
    modes: { apiKey: true, oidc: true, login: true, device: true },
    loginPath: '/auth/login',
  },
}
const started = {
  device_code: 'd',
  user_code: 'ABCD-EFGH',
  verification_uri: 'https://id.example/device',
  expires_in: 600,
  interval: 1,
}

function createUser(): Sandbox {
  const here = createSandbox()
  delete here.env.WB_DATA_DIR
  here.env.WB_KEYCHAIN = 'file'
  return here
}

describe('a server that is not a runtime', () => {
  const page = (status: number) => ({ status, type: 'text/html', body: '<html>Welcome</html>' })
  const json = (body: unknown, status = 200) => ({
    status,
    type: 'application/json',
    body: JSON.stringify(body),
  })
  const modes = device['/auth/config'].modes

  test.each([
    ['an empty object', json({})],
    ['no modes', json({ modes: null })],
    ['a list of modes', json({ modes: ['apiKey'] })],
    ['modes that are strings', json({ modes: { apiKey: 'no', oidc: 'no', device: 'no' } })],
    ['a path that is a number', json({ modes, loginPath: 7 })],
    ['truncated JSON', { status: 200, type: 'application/json', body: '{"modes":' }],
    ['a web page', page(200)],
    ['a missing web page', page(404)],
    ['an API without this path', json({ error: { code: 'not_found', message: 'no' } }, 404)],
  ])('%s is reported with a command to fix it, and nothing is stored', async (_, { status, type, body }) => {
    const url = await startServer((_request, response) => {
      response.writeHead(status, { 'content-type': type }).end(body)
    })
    const here = createUser()
    const refused = await here.wb(['login', url, '--with-token'], { input: 'wb_live_x' })
    expect(refused.status, refused.stderr).toBe(6)
    expect(refused.stderr).toContain(`${url} does not look like a Workbase runtime: it `)
    expect(refused.stderr).toMatch(/\n {4}wb login URL {4}where URL is the address of the runtime\n$/)
    expect(refused.stderr).not.toMatch(/defect|wb serve/)
    expect(existsSync(join(here.env.XDG_CONFIG_HOME!, 'workbase'))).toBe(false)
  })

  test.each([
    ['a number as scopes', { scopes: 7 }],
    ['a list as role', { role: [] }],
    ['a string as workspaceScopes', { workspaceScopes: 'all' }],
    ['an invalid key expiry', { keyExpiresAt: 'soon' }],
  ])('an identity with %s is reported as invalid', async (_, odd) => {
    const me = { id: 'x', label: null, type: 'apiKey', role: null, scopes: null, workspaceScopes: null }
    const { url } = await startFixedServer({ ...device, '/auth/me': { ...me, expiresAt: null, ...odd } })
    const here = createUser()
    const refused = await here.wb(['login', url, '--with-token'], { input: 'wb_live_x' })
    expect([refused.status, refused.stderr]).toEqual([
      6,
      expect.stringContaining('returned an invalid identity'),
    ])
    const shown = await here.wb(['whoami', '--url', url], { env: { WB_API_KEY: 'wb_live_x' } })
    expect([shown.status, shown.stderr]).toEqual([6, expect.stringContaining('returned an invalid identity')])
  })

  test('a response that trickles in is stopped by the timeout', async () => {
    const url = await startServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      const dripping = setInterval(() => response.write(' '), 10)
      response.on('close', () => clearInterval(dripping))
    })
    const { fetch, close } = openNetwork()
    onTestFinished(close)
    let pass = () => {}
    const clock: Clock = {
      now: () => 0,
      after(_ms, run) {
        pass = run
        return () => {}
      },
    }
    const answer = await withResponseTimeout(fetch, clock)(`${url}/auth/config`, {
      method: 'GET',
      headers: {},
    })
    const text = answer.text()
    pass()
    await expect(text).rejects.toThrow(`${url} did not respond to /auth/config within 30 s`)
  })
})

describe('an untrusted runtime', () => {
  test.each([
    ['an interval of zero', { ...started, interval: 0 }],
    ['a negative interval', { ...started, interval: -5 }],
    ['an interval that is a string', { ...started, interval: 'x' }],
    ['an interval that is too long for a timer', { ...started, interval: 1e9 }],
  ])('%s does not cause a flood of requests', async (_, answer) => {
    const { url, asked } = await startFixedServer({ ...device, '/auth/device/authorize': answer })
    await runInTerminal(createUser(), ['login', url], {
      answer: (() => {
        let isSent = false
        return text => {
          if (isSent || !text.includes('waiting for you')) return undefined
          isSent = true
          return '\x03'
        }
      })(),
    })
    expect(asked.filter(({ path }) => path === '/auth/device/token').length).toBeLessThan(3)
  })

  test.each([
    ['a response without a token', {}],
    ['a token that cannot be sent in a header', { access_token: 'a\nb', token_type: 'Bearer' }],
    ['a token that is a number', { access_token: 1, token_type: 'Bearer' }],
    ['a lifetime that is a string', { access_token: 'a', token_type: 'Bearer', expires_in: 'soon' }],
  ])('%s is not stored', async (_, tokens) => {
    const { url } = await startFixedServer({
      ...device,
      '/auth/device/authorize': started,
      '/auth/device/token': tokens,
    })
    const here = createUser()
    const { status, text } = await runInTerminal(here, ['login', url])
    expect([status, stripSequences(text)]).toEqual([6, expect.stringContaining('invalid tokens')])
    expect((await here.wb(['logout', '--all', '--json'])).stdout).toBe('[]\n')
  })

  test('Enter opens only the displayed page, and copies only the displayed code [security rule 16]', async () => {
    const { url } = await startFixedServer({
      ...device,
      '/auth/device/authorize': {
        ...started,
        user_code: '\x1b]0;x\x07ABCD',
        verification_uri_complete: 'https://evil.example/phish',
      },
    })
    const here = createUser()
    const [opened, copied] = [join(here.home, 'opened'), join(here.home, 'copied')]
    for (const [name, script] of [
      ['browser', `#!/bin/sh\necho "$1" >${opened}\n`],
      ['wl-copy', `#!/bin/sh\ncat >${copied}\n`],
    ] as const) {
      writeFileSync(join(here.home, name), script)
      chmodSync(join(here.home, name), 0o755)
    }
    Object.assign(here.env, {
      PATH: `${here.home}:${here.env.PATH}`,
      BROWSER: join(here.home, 'browser'),
      WAYLAND_DISPLAY: 'wayland-0',
    })
    // Types each key once: after the command ends, another key would be echoed to the screen.
    let pressed = 0
    await runInTerminal(here, ['login', url], {
      answer(text) {
        if (pressed === 0 && text.includes('waiting')) {
          pressed = 1
          return '\r'
        }
        if (pressed !== 1 || !existsSync(opened) || !existsSync(copied)) return undefined
        pressed = 2
        return '\x03'
      },
    })
    expect(readFileSync(opened, 'utf8')).toBe('https://id.example/device\n')
    expect(readFileSync(copied, 'utf8')).toBe('ABCD')
  })
})

describe('stored logins', () => {
  test('are not sent to another runtime if the address in a file is changed', async () => {
    const { sandbox: here, url, key } = await startRuntimeWithKeys()
    await here.wb(['login', url, '--with-token'], { input: key })
    const { url: elsewhere, asked } = await startFixedServer({})
    const folder = join(here.env.XDG_CONFIG_HOME!, 'workbase')
    for (const name of ['profiles.json', 'logins.json']) {
      const path = join(folder, name)
      writeFileSync(path, readFileSync(path, 'utf8').replaceAll(`"${url}"`, `"${elsewhere}"`))
    }
    await here.wb(['whoami'])
    expect(asked.length).toBeGreaterThan(0)
    expect(asked.filter(({ authorization }) => authorization !== undefined)).toEqual([])
  })

  test('are rejected if other users can write the files', async () => {
    const { sandbox: here, url, key } = await startRuntimeWithKeys()
    await here.wb(['login', url, '--with-token'], { input: key })
    const folder = join(here.env.XDG_CONFIG_HOME!, 'workbase')
    for (const path of [folder, join(folder, 'profiles.json'), join(folder, 'logins.json')]) {
      chmodSync(path, path === folder ? 0o777 : 0o666)
      const refused = await here.wb(['whoami', '--url', url])
      expect([refused.status, refused.stderr]).toEqual([2, expect.stringContaining(`chmod go-w ${path}`)])
      chmodSync(path, path === folder ? 0o700 : 0o600)
    }
    expect((await here.wb(['whoami'])).status).toBe(0)
  })
})

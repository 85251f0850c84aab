import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { keyedRuntime } from '../commands/sign-in.ts'
import { inTerminal, withoutSequences } from '../commands/terminal.ts'
import { type Place, place } from '../commands/wb.ts'

interface Asked {
  readonly path: string
  readonly authorization: string | undefined
}

/** Something that answers as its rules say, and remembers what it was asked. */
async function answering(rules: Record<string, unknown>): Promise<{ url: string; asked: Asked[] }> {
  const asked: Asked[] = []
  const server = createServer((request, response) => {
    const path = request.url ?? ''
    asked.push({ path, authorization: request.headers.authorization })
    response.writeHead(path in rules ? 200 : 404, { 'content-type': 'application/json' })
    response.end(JSON.stringify(rules[path] ?? { error: { code: 'not_found', message: 'no' } }))
  })
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
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

function person(): Place {
  const here = place()
  delete here.env.WB_DATA_DIR
  here.env.WB_KEYCHAIN = 'file'
  return here
}

describe('a runtime that is nobody to trust', () => {
  test.each([
    ['an interval of nothing', { ...started, interval: 0 }],
    ['an interval before now', { ...started, interval: -5 }],
    ['an interval that is a word', { ...started, interval: 'x' }],
    ['an interval beyond all timers', { ...started, interval: 1e9 }],
  ])('%s makes no flood', async (_, answer) => {
    const { url, asked } = await answering({ ...device, '/auth/device/authorize': answer })
    await inTerminal(person(), ['login', url], {
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
    ['tokens without a token', {}],
    ['a token that no header carries', { access_token: 'a\nb', token_type: 'Bearer' }],
    ['a token that is a number', { access_token: 1, token_type: 'Bearer' }],
    ['a life that is a word', { access_token: 'a', token_type: 'Bearer', expires_in: 'soon' }],
  ])('%s is kept nowhere', async (_, tokens) => {
    const { url } = await answering({
      ...device,
      '/auth/device/authorize': started,
      '/auth/device/token': tokens,
    })
    const here = person()
    const { status, text } = await inTerminal(here, ['login', url])
    expect([status, withoutSequences(text)]).toEqual([6, expect.stringContaining('tokens that are none')])
    expect((await here.wb(['logout', '--all', '--json'])).stdout).toBe('[]\n')
  })

  test('security 16: Enter opens only the page that is shown, and copies only what is shown', async () => {
    const { url } = await answering({
      ...device,
      '/auth/device/authorize': {
        ...started,
        user_code: '\x1b]0;x\x07ABCD',
        verification_uri_complete: 'https://evil.example/phish',
      },
    })
    const here = person()
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
    // Each key once: one that comes when the command has ended would be echoed behind its end.
    let pressed = 0
    await inTerminal(here, ['login', url], {
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

describe('the files of who is signed in', () => {
  test('lead a login to no other runtime, whoever changed the address', async () => {
    const { here, url, key } = await keyedRuntime()
    await here.wb(['login', url, '--with-token'], { input: key })
    const { url: elsewhere, asked } = await answering({})
    const folder = join(here.env.XDG_CONFIG_HOME!, 'workbase')
    for (const name of ['profiles.json', 'logins.json']) {
      const path = join(folder, name)
      writeFileSync(path, readFileSync(path, 'utf8').replaceAll(`"${url}"`, `"${elsewhere}"`))
    }
    await here.wb(['whoami'])
    expect(asked.length).toBeGreaterThan(0)
    expect(asked.filter(({ authorization }) => authorization !== undefined)).toEqual([])
  })

  test('are not believed where others can write them', async () => {
    const { here, url, key } = await keyedRuntime()
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

import { once } from 'node:events'
import { type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http'
import { describe, expect, onTestFinished, test } from 'vitest'
import { api } from '../../src/contract/index.ts'
import type { Route } from '../../src/contract/route.ts'
import { listen } from '../../src/http/listen.ts'
import { open, type TestRuntime } from '../harness/runtime.ts'

/*
 * A web page is not a client (security rule 3). The user opens a page of evil.example while a runtime listens on
 * loopback with its default configuration, in which every caller that can connect has full access.
 */

const routes = Object.values(api).flatMap(topic => Object.values(topic) as Route[])
const unknown = '9b1c1a52-6f0e-4c0e-9d53-2f3a4b5c6d7e'
const fillPath = (path: string) => path.replace(/:\w+/g, unknown)
const anyHost = ['/healthz', '/readyz', '/version']

interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

interface Served {
  readonly wb: TestRuntime
  readonly port: number
  /** Sends a request with exactly the given headers, as a browser does. */
  send(line: string, headers: OutgoingHttpHeaders, body?: string): Promise<Answer>
}

async function serve(config: object = {}): Promise<Served> {
  const wb = await open({ config })
  const { port, close } = await listen(wb.runtime.app, { host: '127.0.0.1', port: 0 })
  onTestFinished(async () => void (await close(0)))
  return { wb, port, send: (line, headers, body) => sendRequest(port, line, headers, body) }
}

async function sendRequest(
  port: number,
  line: string,
  headers: OutgoingHttpHeaders,
  body?: string,
): Promise<Answer> {
  const [method, path] = line.split(' ') as [string, string]
  const sized = { ...headers, ...(body && { 'content-length': Buffer.byteLength(body) }) }
  const sent = request({ host: '127.0.0.1', port, method, path, headers: sized, agent: false }).end(body)
  const [response] = await once(sent, 'response')
  const parts: Buffer[] = []
  for await (const part of response) parts.push(part as Buffer)
  return { status: response.statusCode, headers: response.headers, text: Buffer.concat(parts).toString() }
}

const json = { 'content-type': 'application/json' }
const names = async (wb: TestRuntime) =>
  ((await wb.send('GET /api/v1/workspaces')).body.items as { name: string }[]).map(({ name }) => name)

describe('a page whose name was rebound to 127.0.0.1', () => {
  /**
   * Returns the headers of a same-origin page, which can send and read everything but has its name in each
   * request.
   */
  const page = (port: number) => ({
    host: `evil.example:${port}`,
    origin: `http://evil.example:${port}`,
    'sec-fetch-site': 'same-origin',
    authorization: 'Bearer anything',
    'x-forwarded-host': 'localhost',
    'x-forwarded-for': '127.0.0.1',
  })

  test.each([
    ['by default', {}],
    ['with all proxies trusted', { runtime: { trustProxyHeaders: true } }],
    ['without the origin check', { runtime: { csrfOriginCheck: false } }],
    ['with required keys', { auth: { mode: 'apiKey' } }],
  ])('gets nothing from any route, %s', async (_when, config) => {
    const { wb, port, send } = await serve(config)
    await wb.sendAsOperator('POST /api/v1/workspaces', { name: 'secretplans' })
    for (const { method, path } of routes.filter(route => !anyHost.includes(route.path))) {
      const answer = await send(
        `${method} ${fillPath(path)}`,
        { ...page(port), ...json },
        method === 'GET' ? '' : '{}',
      )
      expect([answer.status, JSON.parse(answer.text).error.code], `${method} ${path}`).toEqual([
        403,
        'forbidden_origin',
      ])
      expect(answer.text).not.toContain('secretplans')
    }
    const stillThere = await wb.sendAsOperator('GET /api/v1/workspaces')
    expect(stillThere.text).toContain('secretplans')
  })

  test('learns only that a server is running', async () => {
    const { port, send } = await serve()
    for (const path of anyHost) expect((await send(`GET ${path}`, page(port))).status).toBe(200)
  })

  test.each([
    'evil.example',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    'evil.example.',
    'EVIL.example:80',
  ])('is rejected under the name %j', async host => {
    const { send } = await serve()
    expect((await send('GET /api/v1/workspaces', { host })).status).toBe(403)
  })
})

describe('a page of another origin', () => {
  const from = (kind: 'cross-site' | 'same-site', more: OutgoingHttpHeaders = {}) => ({
    host: '127.0.0.1:8787',
    origin: kind === 'same-site' ? 'http://127.0.0.1:3000' : 'https://evil.example',
    'sec-fetch-site': kind,
    'sec-fetch-mode': 'no-cors',
    ...more,
  })

  /** Requests that a form or a fetch can send to another origin without a preflight request. */
  const simple: [what: string, type: OutgoingHttpHeaders, body: string][] = [
    [
      'a multipart form',
      { 'content-type': 'multipart/form-data; boundary=x' },
      '--x\r\nContent-Disposition: form-data; name="name"\r\n\r\nplanted\r\n--x--\r\n',
    ],
    ['a form', { 'content-type': 'application/x-www-form-urlencoded' }, 'name=planted'],
    ['JSON as plain text', { 'content-type': 'text/plain' }, '{"name":"planted"}'],
    ['JSON without a type', {}, '{"name":"planted"}'],
    ['JSON without the required preflight request', json, '{"name":"planted"}'],
  ]

  test.each(simple)('cannot create anything: %s', async (_what, type, body) => {
    const served = await serve()
    for (const headers of [
      from('cross-site', type),
      from('same-site', type),
      from('cross-site', { ...type, origin: 'null' }),
      from('cross-site', { ...type, cookie: 'wb_session=x' }),
      from('cross-site', { ...type, 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https' }),
      // Older browsers send fewer headers.
      { host: '127.0.0.1:8787', referer: 'https://evil.example/', ...type },
      { host: '127.0.0.1:8787', origin: 'https://evil.example', ...type },
    ]) {
      const answer = await served.send('POST /api/v1/workspaces', headers, body)
      expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([403, 'forbidden_origin'])
    }
    expect(await names(served.wb)).not.toContain('planted')
  })

  test('cannot create anything with requests without such headers, because only JSON bodies are accepted', async () => {
    const served = await serve()
    for (const [what, type, body] of simple.filter(([, type]) => type !== json)) {
      const answer = await served.send('POST /api/v1/workspaces', { host: 'localhost', ...type }, body)
      expect(answer.status, what).toBe(400)
    }
    expect(await names(served.wb)).not.toContain('planted')
  })

  test('cannot change or delete anything on any route', async () => {
    const served = await serve()
    for (const { method, path } of routes.filter(route => route.method !== 'GET')) {
      const answer = await served.send(`${method} ${fillPath(path)}`, from('cross-site', json), '{}')
      expect([answer.status, JSON.parse(answer.text).error.code], `${method} ${path}`).toEqual([
        403,
        'forbidden_origin',
      ])
    }
  })

  test('gets no permission to read, on any route with any method', async () => {
    const served = await serve()
    for (const { path } of routes)
      for (const method of ['GET', 'HEAD', 'OPTIONS', 'POST']) {
        const headers = from('cross-site', {
          'access-control-request-method': 'POST',
          'access-control-request-headers': 'authorization, content-type',
        })
        const answer = await served.send(`${method} ${fillPath(path)}`, headers)
        const granted = Object.keys(answer.headers).filter(name => name.startsWith('access-control'))
        expect(granted, `${method} ${path}`).toEqual([])
      }
  })
})

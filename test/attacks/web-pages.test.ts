import { once } from 'node:events'
import { type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http'
import { describe, expect, onTestFinished, test } from 'vitest'
import { api } from '../../src/contract/index.ts'
import type { Route } from '../../src/contract/route.ts'
import { listen } from '../../src/http/listen.ts'
import { type Opened, open } from '../harness/runtime.ts'

/*
 * A web page is not a client (security rule 3). The person at this machine opens a page of evil.example while a
 * runtime listens on loopback in its default posture, where whoever reaches it may do everything.
 */

const routes = Object.values(api).flatMap(topic => Object.values(topic) as Route[])
const unknown = '9b1c1a52-6f0e-4c0e-9d53-2f3a4b5c6d7e'
const placed = (path: string) => path.replace(/:\w+/g, unknown)
const anyHost = ['/healthz', '/readyz', '/version']

interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

interface Served {
  readonly wb: Opened
  readonly port: number
  /** What a browser sends: the headers as they are given, to the address that the name leads to. */
  send(line: string, headers: OutgoingHttpHeaders, body?: string): Promise<Answer>
}

async function serve(config: object = {}): Promise<Served> {
  const wb = await open({ config })
  const { port, close } = await listen(wb.runtime.app, { host: '127.0.0.1', port: 0 })
  onTestFinished(async () => void (await close(0)))
  return { wb, port, send: (line, headers, body) => sent(port, line, headers, body) }
}

async function sent(
  port: number,
  line: string,
  headers: OutgoingHttpHeaders,
  body?: string,
): Promise<Answer> {
  const [method, path] = line.split(' ') as [string, string]
  const sized = { ...headers, ...(body && { 'content-length': Buffer.byteLength(body) }) }
  const asked = request({ host: '127.0.0.1', port, method, path, headers: sized, agent: false }).end(body)
  const [response] = await once(asked, 'response')
  const parts: Buffer[] = []
  for await (const part of response) parts.push(part as Buffer)
  return { status: response.statusCode, headers: response.headers, text: Buffer.concat(parts).toString() }
}

const json = { 'content-type': 'application/json' }
const names = async (wb: Opened) =>
  ((await wb.send('GET /api/v1/workspaces')).body.items as { name: string }[]).map(({ name }) => name)

describe('a page whose name was rebound to 127.0.0.1', () => {
  /** Of one origin with what it talks to: it may send and read everything, but its name is in each request. */
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
    ['where all proxies are trusted', { runtime: { trustProxyHeaders: true } }],
    ['where origins are not checked', { runtime: { csrfOriginCheck: false } }],
    ['where keys are asked for', { auth: { mode: 'apiKey' } }],
  ])('gets nothing from any route, %s', async (_when, config) => {
    const { wb, port, send } = await serve(config)
    await wb.sendAsOperator('POST /api/v1/workspaces', { name: 'secretplans' })
    for (const { method, path } of routes.filter(route => !anyHost.includes(route.path))) {
      const answer = await send(
        `${method} ${placed(path)}`,
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

  test('learns no more than that something lives', async () => {
    const { port, send } = await serve()
    for (const path of anyHost) expect((await send(`GET ${path}`, page(port))).status).toBe(200)
  })

  test.each([
    'evil.example',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    'evil.example.',
    'EVIL.example:80',
  ])('cannot spell its name %j so that it passes', async host => {
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

  /** What a form or a fetch may send to another origin without asking first. */
  const simple: [what: string, type: OutgoingHttpHeaders, body: string][] = [
    [
      'a multipart form',
      { 'content-type': 'multipart/form-data; boundary=x' },
      '--x\r\nContent-Disposition: form-data; name="name"\r\n\r\nplanted\r\n--x--\r\n',
    ],
    ['a form', { 'content-type': 'application/x-www-form-urlencoded' }, 'name=planted'],
    ['JSON as plain text', { 'content-type': 'text/plain' }, '{"name":"planted"}'],
    ['JSON without a type', {}, '{"name":"planted"}'],
    ['JSON, where a browser forgot to ask first', json, '{"name":"planted"}'],
  ]

  test.each(simple)('cannot plant anything: %s', async (_what, type, body) => {
    const served = await serve()
    for (const headers of [
      from('cross-site', type),
      from('same-site', type),
      from('cross-site', { ...type, origin: 'null' }),
      from('cross-site', { ...type, cookie: 'wb_session=x' }),
      from('cross-site', { ...type, 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https' }),
      // Older browsers say less.
      { host: '127.0.0.1:8787', referer: 'https://evil.example/', ...type },
      { host: '127.0.0.1:8787', origin: 'https://evil.example', ...type },
    ]) {
      const answer = await served.send('POST /api/v1/workspaces', headers, body)
      expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([403, 'forbidden_origin'])
    }
    expect(await names(served.wb)).not.toContain('planted')
  })

  test('cannot plant by what no header tells of, as a body is read as JSON alone', async () => {
    const served = await serve()
    for (const [what, type, body] of simple.filter(([, type]) => type !== json)) {
      const answer = await served.send('POST /api/v1/workspaces', { host: 'localhost', ...type }, body)
      expect(answer.status, what).toBe(400)
    }
    expect(await names(served.wb)).not.toContain('planted')
  })

  test('cannot change or delete by any route that changes something', async () => {
    const served = await serve()
    for (const { method, path } of routes.filter(route => route.method !== 'GET')) {
      const answer = await served.send(`${method} ${placed(path)}`, from('cross-site', json), '{}')
      expect([answer.status, JSON.parse(answer.text).error.code], `${method} ${path}`).toEqual([
        403,
        'forbidden_origin',
      ])
    }
  })

  test('is never told that it may read, by no route and no method', async () => {
    const served = await serve()
    for (const { path } of routes)
      for (const method of ['GET', 'HEAD', 'OPTIONS', 'POST']) {
        const headers = from('cross-site', {
          'access-control-request-method': 'POST',
          'access-control-request-headers': 'authorization, content-type',
        })
        const answer = await served.send(`${method} ${placed(path)}`, headers)
        const granted = Object.keys(answer.headers).filter(name => name.startsWith('access-control'))
        expect(granted, `${method} ${path}`).toEqual([])
      }
  })
})

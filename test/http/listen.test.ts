import { once } from 'node:events'
import { request } from 'node:https'
import { connect, createServer } from 'node:net'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { limits } from '../../src/contract/limits.ts'
import { listen, type RunningServer } from '../../src/http/listen.ts'
import { createTestApp, type TestApp } from './test-app.ts'

const open: RunningServer[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map(each => each.close(0)))
})

async function serve(testApp: TestApp, port = 0): Promise<RunningServer> {
  const listening = await listen(testApp.app, { host: '127.0.0.1', port })
  open.push(listening)
  return listening
}

interface Raw {
  head: string
  body: string
  status: number
}

/** Writes bytes, and reads until the server closes. */
async function exchangeRaw(port: number, bytes: string | Buffer): Promise<Raw> {
  const socket = connect(port, '127.0.0.1')
  const parts: Buffer[] = []
  socket.on('data', part => parts.push(part))
  socket.on('error', () => {})
  socket.write(bytes)
  await once(socket, 'close')
  const text = Buffer.concat(parts).toString()
  const at = text.indexOf('\r\n\r\n')
  return { head: text.slice(0, at), body: text.slice(at + 4), status: Number(text.split(' ')[1]) }
}

/** Sends pieces of a body, a hundred per chunk, until the response contains a code. */
async function sendEndlessBody(
  port: number,
  line: string,
  mediaType: string,
  piece: string,
): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  const head = ['Host: localhost', `Content-Type: ${mediaType}`, 'Transfer-Encoding: chunked']
  socket.write(`${line} HTTP/1.1\r\n${head.join('\r\n')}\r\n\r\n`)
  const chunk = `${(piece.length * 100).toString(16)}\r\n${piece.repeat(100)}\r\n`
  const parts: string[] = []
  const send = () => {
    while (!socket.destroyed && socket.write(chunk));
  }
  await new Promise<void>((resolve, reject) => {
    socket.on('drain', send).on('error', reject)
    socket.on('data', part => {
      parts.push(String(part))
      if (parts.join('').includes('"code"')) resolve()
    })
    send()
  })
  socket.destroy()
  return parts.join('')
}

const get = (headers: string[], target = '/healthz') =>
  `GET ${target} HTTP/1.1\r\n${headers.map(each => `${each}\r\n`).join('')}Connection: close\r\n\r\n`

function expectEnvelope({ head, body }: Raw, code: string): void {
  const { error } = JSON.parse(body)
  expect(error).toMatchObject({
    code,
    hint: expect.any(String),
    docs: expect.stringMatching(/^docs\/errors\.md#/),
  })
  expect(head).toContain(`x-request-id: ${error.requestId}`)
  for (const name of [
    'content-security-policy',
    'x-frame-options',
    'traceparent',
    'content-type: application/json',
  ])
    expect(head).toContain(name)
}

describe('S7.1-04: errors below the application', () => {
  test.each([
    ['invalid HTTP', 'hello\r\n\r\n'],
    ['a malformed header', get(['Host: localhost', 'Bad Header: x'])],
    ['two lengths', get(['Host: localhost', 'Content-Length: 1', 'Content-Length: 1'])],
    ['a length and chunks', get(['Host: localhost', 'Content-Length: 1', 'Transfer-Encoding: chunked'])],
    ['two hosts', get(['Host: localhost', 'Host: localhost'])],
    ['two authorizations', get(['Host: localhost', 'Authorization: Bearer a', 'authorization: Bearer b'])],
    ['no host', get([])],
    ['an invalid target', get(['Host: localhost'], 'http://[::1/x')],
  ])('%s is 400 with an error envelope', async (_what, bytes) => {
    const { port } = await serve(createTestApp())
    const reply = await exchangeRaw(port, bytes)
    expect(reply.status).toBe(400)
    expectEnvelope(reply, 'validation_error')
  })

  test('malformed chunks in a body are 400, and the handler does not complete', async () => {
    const create = vi.fn()
    const { port } = await serve(createTestApp({ notes: { create } }))
    const head = [
      'POST /api/v1/notes HTTP/1.1',
      'Host: localhost',
      'Content-Type: application/json',
      'Transfer-Encoding: chunked',
    ]
    const reply = await exchangeRaw(port, `${head.join('\r\n')}\r\n\r\n5\r\n{"nam\r\nzz\r\n`)
    expect(reply.status).toBe(400)
    expectEnvelope(reply, 'validation_error')
    expect(create).not.toHaveBeenCalled()
  })

  test('accepts 32 KB of headers, and answers more with 431', async () => {
    const { port } = await serve(createTestApp())
    const sized = (bytes: number) => {
      const fixed = get(['Host: localhost', 'X-Padding: ']).length
      return get(['Host: localhost', `X-Padding: ${'x'.repeat(bytes - fixed)}`])
    }
    expect((await exchangeRaw(port, sized(limits.headerBytes - 1_000))).status).toBe(200)
    for (const bytes of [limits.headerBytes + 1_000, 100_000]) {
      const reply = await exchangeRaw(port, sized(bytes))
      expect(reply.status).toBe(431)
      expectEnvelope(reply, 'headers_too_large')
    }
  })

  test('the application answers a CONNECT request and an unknown expectation', async () => {
    const { port } = await serve(createTestApp())
    expectEnvelope(
      await exchangeRaw(port, 'CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n'),
      'not_found',
    )
    expect((await exchangeRaw(port, get(['Host: localhost', 'Expect: magic']))).status).toBe(200)
  })

  test('these errors also have Strict-Transport-Security in production', async () => {
    const { port } = await serve(createTestApp({ settings: { production: true } }))
    expect((await exchangeRaw(port, 'hello\r\n\r\n')).head).toContain('strict-transport-security')
  })
})

describe('over a connection', () => {
  test('rejects a rebound name, and a form of another page', async () => {
    const { port } = await serve(createTestApp())
    expectEnvelope(await exchangeRaw(port, get(['Host: evil.example'], '/api/v1/notes')), 'forbidden_origin')
    const body = '--x\r\nContent-Disposition: form-data; name="name"\r\n\r\nx\r\n--x--\r\n'
    const head = [
      'POST /api/v1/notes HTTP/1.1',
      `Host: localhost:${port}`,
      'Origin: http://evil.example',
      'Sec-Fetch-Site: cross-site',
      'Content-Type: multipart/form-data; boundary=x',
      `Content-Length: ${body.length}`,
      'Connection: close',
    ]
    expectEnvelope(await exchangeRaw(port, `${head.join('\r\n')}\r\n\r\n${body}`), 'forbidden_origin')
  })

  test('reads a JSON body with a length and in chunks, and rejects an oversized one while it arrives', async () => {
    const { url } = await serve(createTestApp())
    const headers = { 'content-type': 'application/json' }
    const small = await fetch(`${url}/api/v1/notes`, { method: 'POST', headers, body: '{"name":"x"}' })
    expect([small.status, await small.json()]).toEqual([201, { name: 'x' }])
    const pieces = Array.from({ length: 12 }, () => Buffer.alloc(1_000_000, ' '))
    const large = {
      method: 'POST',
      headers,
      body: ReadableStream.from(pieces),
      duplex: 'half',
    } as RequestInit
    expect((await fetch(`${url}/api/v1/notes`, large)).status).toBe(413)
    expect((await fetch(`${url}/healthz`)).status).toBe(200)
  })

  test('reads an optional body if there is one, with a length and in chunks', async () => {
    const { url } = await serve(createTestApp())
    const headers = { 'content-type': 'application/json' }
    const renew = async (init: RequestInit) =>
      (await fetch(`${url}/api/v1/notes/renew`, { method: 'POST', ...init })).json()
    expect(await renew({})).toEqual({ name: 'unnamed' })
    expect(await renew({ headers, body: '{"name":"x"}' })).toEqual({ name: 'x' })
    const pieces = ReadableStream.from([Buffer.from('{"name":'), Buffer.from('"x"}')])
    expect(await renew({ headers, body: pieces, duplex: 'half' } as RequestInit)).toEqual({ name: 'x' })
  })

  test('S8-03: stops reading an endless body without a length at the limit, for JSON and for lines', async () => {
    const create = vi.fn()
    const lines: number[] = []
    async function* outcomes(body: AsyncIterable<{ line: number }>) {
      for await (const { line } of body) {
        lines.push(line)
        if (line % 10_000 === 0) yield { line }
      }
    }
    const batch = ({ body }: { body: AsyncIterable<{ line: number }> }) =>
      ({ status: 200, body: outcomes(body) }) as const
    const { port } = await serve(createTestApp({ notes: { create, batch } }))
    const one = `{"name":"x"}${' '.repeat(987)}\n`

    const refused = await sendEndlessBody(port, 'POST /api/v1/notes', 'application/json', ' '.repeat(1_000))
    expect(refused).toMatch(/^HTTP\/1\.1 413 /)
    expect(refused).toContain('"code":"payload_too_large"')
    expect(create).not.toHaveBeenCalled()

    const cut = await sendEndlessBody(port, 'POST /api/v1/notes/batch', 'application/x-ndjson', one)
    expect(cut).toMatch(/^HTTP\/1\.1 200 /)
    expect(cut).toContain('"code":"payload_too_large"')
    expect(lines.length).toBeLessThanOrEqual(limits.ingestBodyBytes / one.length)
    expect(lines.length).toBeGreaterThan(limits.ingestBodyBytes / one.length - 100)
  })

  test('ends the stream and aborts the signal when the client disconnects', async () => {
    const seen = { ended: false, aborted: false }
    const testApp = createTestApp({
      notes: {
        batch: (_input, caller) => {
          caller.signal.addEventListener('abort', () => {
            seen.aborted = true
          })
          async function* endless() {
            try {
              for (let line = 0; ; line++) yield { line, text: 'x'.repeat(10_000) }
            } finally {
              seen.ended = true
            }
          }
          return { status: 200, body: endless() }
        },
      },
    })
    const { url } = await serve(testApp)
    const leaving = new AbortController()
    const response = await fetch(`${url}/api/v1/notes/batch`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-ndjson' },
      body: '',
      signal: leaving.signal,
    })
    await response.body!.getReader().read()
    leaving.abort()
    await expect.poll(() => seen.ended && seen.aborted).toBe(true)
    await expect.poll(() => testApp.app.inFlight === 0).toBe(true)
  })
})

describe('binding', () => {
  test('port 0 selects a free port, several times', async () => {
    const ports = (
      await Promise.all([serve(createTestApp()), serve(createTestApp()), serve(createTestApp())])
    ).map(({ port }) => port)
    expect(new Set(ports).size).toBe(3)
    for (const port of ports) expect(port).toBeGreaterThan(0)
  })

  test('reports a port in use by its code, and does not replace a port that browsers block', async () => {
    const { port } = await serve(createTestApp())
    const inUse = await serve(createTestApp(), port).catch(error => error)
    expect(inUse).toMatchObject({ code: 'EADDRINUSE', message: `port ${port} on 127.0.0.1 is in use` })
    expect(String(await serve(createTestApp(), 6667).catch(error => error))).toContain('6667')
  })

  test('reports an address of another machine by its code', async () => {
    const failed = await listen(createTestApp().app, { host: '192.0.2.1', port: 0 }).catch(error => error)
    expect(failed).toMatchObject({ code: 'EADDRNOTAVAIL' })
  })

  test('serves HTTPS with the given certificate', async () => {
    const listening = await listen(createTestApp().app, { host: '127.0.0.1', port: 0, https: true })
    open.push(listening)
    expect(listening.url).toBe(`https://127.0.0.1:${listening.port}`)
    const sent = request(`${listening.url}/healthz`, { rejectUnauthorized: false, agent: false }).end()
    const [response] = await once(sent, 'response')
    expect(response.statusCode).toBe(200)
    response.resume()
  })
})

/** Creates an application whose page waits until it is released. */
function createHeldApp() {
  let release = () => {}
  const gate = new Promise<void>(resolve => {
    release = resolve
  })
  const testApp = createTestApp({
    notes: {
      page: async () => {
        await gate
        return { status: 200, body: 'late' }
      },
    },
  })
  return { testApp, release }
}

describe('S7.3-10: closing', () => {
  test('completes requests in progress, answers others with 503 on old and new connections, and then frees the port', async () => {
    const { testApp, release } = createHeldApp()
    const { url, port, close } = await listen(testApp.app, { host: '127.0.0.1', port: 0 })
    const keptAlive = connect(port, '127.0.0.1')
    const answers: string[] = []
    keptAlive.on('data', part => answers.push(String(part)))
    keptAlive.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await expect.poll(() => answers.join('').includes('{"status":"ok"}')).toBe(true)
    const slow = fetch(`${url}/page`)
    await expect.poll(() => testApp.app.inFlight === 1).toBe(true)
    const closed = close(10_000)
    keptAlive.write('GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await expect.poll(() => answers.join('').includes('"code":"draining"')).toBe(true)
    expect((await fetch(`${url}/version`)).status).toBe(503)
    release()
    expect(await (await slow).text()).toBe('late')
    expect(await closed).toBe(true)
    const next = createServer().listen(port, '127.0.0.1')
    await once(next, 'listening')
    next.close()
  })

  test('does not wait for an idle connection', async () => {
    const { port, close } = await listen(createTestApp().app, { host: '127.0.0.1', port: 0 })
    const idle = connect(port, '127.0.0.1')
    await once(idle, 'connect')
    const startedAt = Date.now()
    expect(await close(10_000)).toBe(true)
    expect(Date.now() - startedAt).toBeLessThan(5_000)
    await once(idle, 'close')
  })

  test('closes remaining connections after the grace period', async () => {
    const { testApp, release } = createHeldApp()
    const { url, close } = await listen(testApp.app, { host: '127.0.0.1', port: 0 })
    const slow = fetch(`${url}/page`).then(
      () => 'answered',
      () => 'cut off',
    )
    await expect.poll(() => testApp.app.inFlight === 1).toBe(true)
    expect(await close(50)).toBe(false)
    expect(await slow).toBe('cut off')
    release()
  })
})

describe('replacing the application on a port', () => {
  test('the old application finishes its requests, and the new one serves existing connections with its own settings', async () => {
    const { testApp, release } = createHeldApp()
    const listening = await listen(testApp.app, { host: '127.0.0.1', port: 0 })
    open.push(listening)
    const { url, port } = listening
    const slow = fetch(`${url}/page`)
    await expect.poll(() => testApp.app.inFlight === 1).toBe(true)
    const drained = listening.drain(10_000)
    expect((await fetch(`${url}/version`)).status).toBe(503)
    release()
    expect(await (await slow).text()).toBe('late')
    expect(await drained).toBe(true)
    listening.replaceApp(createTestApp({ settings: { production: true, requestIdHeader: 'x-new' } }).app)
    expect((await fetch(`${url}/healthz`)).headers.has('x-new')).toBe(true)
    expect((await exchangeRaw(port, 'no HTTP\r\n\r\n')).head).toContain('x-new')
  })

  test('closes requests that exceed the grace period, and keeps the port open', async () => {
    const { testApp, release } = createHeldApp()
    const listening = await listen(testApp.app, { host: '127.0.0.1', port: 0 })
    open.push(listening)
    const slow = fetch(`${listening.url}/page`).then(
      () => 'answered',
      () => 'cut off',
    )
    await expect.poll(() => testApp.app.inFlight === 1).toBe(true)
    expect(await listening.drain(50)).toBe(false)
    expect(await slow).toBe('cut off')
    listening.replaceApp(createTestApp().app)
    expect((await fetch(`${listening.url}/healthz`)).status).toBe(200)
    release()
  })
})

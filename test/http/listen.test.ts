import { once } from 'node:events'
import { request } from 'node:https'
import { connect, createServer } from 'node:net'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { limits } from '../../src/contract/limits.ts'
import { listen, type RunningServer } from '../../src/http/listen.ts'
import { type Stage, stage } from './stage.ts'

const open: RunningServer[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map(each => each.close(0)))
})

async function serve(made: Stage, port = 0): Promise<RunningServer> {
  const listening = await listen(made.app, { host: '127.0.0.1', port })
  open.push(listening)
  return listening
}

interface Raw {
  head: string
  body: string
  status: number
}

/** Write bytes, read until the server closes. */
async function raw(port: number, bytes: string | Buffer): Promise<Raw> {
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

/** Send one piece of a body after another, a hundred in a chunk, until the answer names a code. */
async function endless(port: number, line: string, mediaType: string, piece: string): Promise<string> {
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

describe('S7.1-04: below the application', () => {
  test.each([
    ['no HTTP', 'hello\r\n\r\n'],
    ['a broken header', get(['Host: localhost', 'Bad Header: x'])],
    ['two lengths', get(['Host: localhost', 'Content-Length: 1', 'Content-Length: 1'])],
    ['a length and chunks', get(['Host: localhost', 'Content-Length: 1', 'Transfer-Encoding: chunked'])],
    ['two hosts', get(['Host: localhost', 'Host: localhost'])],
    ['two authorizations', get(['Host: localhost', 'Authorization: Bearer a', 'authorization: Bearer b'])],
    ['no host', get([])],
    ['a target that is none', get(['Host: localhost'], 'http://[::1/x')],
  ])('%s is 400 in the envelope', async (_what, bytes) => {
    const { port } = await serve(stage())
    const reply = await raw(port, bytes)
    expect(reply.status).toBe(400)
    expectEnvelope(reply, 'validation_error')
  })

  test('broken chunks in the middle of a body are 400, and the handler does not run', async () => {
    const create = vi.fn()
    const { port } = await serve(stage({ notes: { create } }))
    const head = [
      'POST /api/v1/notes HTTP/1.1',
      'Host: localhost',
      'Content-Type: application/json',
      'Transfer-Encoding: chunked',
    ]
    const reply = await raw(port, `${head.join('\r\n')}\r\n\r\n5\r\n{"nam\r\nzz\r\n`)
    expect(reply.status).toBe(400)
    expectEnvelope(reply, 'validation_error')
    expect(create).not.toHaveBeenCalled()
  })

  test('32 KB of headers pass, more are 431', async () => {
    const { port } = await serve(stage())
    const sized = (bytes: number) => {
      const fixed = get(['Host: localhost', 'X-Padding: ']).length
      return get(['Host: localhost', `X-Padding: ${'x'.repeat(bytes - fixed)}`])
    }
    expect((await raw(port, sized(limits.headerBytes - 1_000))).status).toBe(200)
    for (const bytes of [limits.headerBytes + 1_000, 100_000]) {
      const reply = await raw(port, sized(bytes))
      expect(reply.status).toBe(431)
      expectEnvelope(reply, 'headers_too_large')
    }
  })

  test('a tunnel and an unknown expectation are answered by the application', async () => {
    const { port } = await serve(stage())
    expectEnvelope(
      await raw(port, 'CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n'),
      'not_found',
    )
    expect((await raw(port, get(['Host: localhost', 'Expect: magic']))).status).toBe(200)
  })

  test('HTTPS is demanded in production here too', async () => {
    const { port } = await serve(stage({ settings: { production: true } }))
    expect((await raw(port, 'hello\r\n\r\n')).head).toContain('strict-transport-security')
  })
})

describe('over a connection', () => {
  test('a rebound name is refused, and so is a form of another page', async () => {
    const { port } = await serve(stage())
    expectEnvelope(await raw(port, get(['Host: evil.example'], '/api/v1/notes')), 'forbidden_origin')
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
    expectEnvelope(await raw(port, `${head.join('\r\n')}\r\n\r\n${body}`), 'forbidden_origin')
  })

  test('a JSON body is read, whole and in chunks, and an over-long one is refused while it comes', async () => {
    const { url } = await serve(stage())
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

  test('where a body may be left out, one that came is read, declared or in chunks', async () => {
    const { url } = await serve(stage())
    const headers = { 'content-type': 'application/json' }
    const renew = async (init: RequestInit) =>
      (await fetch(`${url}/api/v1/notes/renew`, { method: 'POST', ...init })).json()
    expect(await renew({})).toEqual({ name: 'unnamed' })
    expect(await renew({ headers, body: '{"name":"x"}' })).toEqual({ name: 'x' })
    const pieces = ReadableStream.from([Buffer.from('{"name":'), Buffer.from('"x"}')])
    expect(await renew({ headers, body: pieces, duplex: 'half' } as RequestInit)).toEqual({ name: 'x' })
  })

  test('S8-03: a body without a length and without an end is cut off at the ceiling, JSON and lines alike', async () => {
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
    const { port } = await serve(stage({ notes: { create, batch } }))
    const one = `{"name":"x"}${' '.repeat(987)}\n`

    const refused = await endless(port, 'POST /api/v1/notes', 'application/json', ' '.repeat(1_000))
    expect(refused).toMatch(/^HTTP\/1\.1 413 /)
    expect(refused).toContain('"code":"payload_too_large"')
    expect(create).not.toHaveBeenCalled()

    const cut = await endless(port, 'POST /api/v1/notes/batch', 'application/x-ndjson', one)
    expect(cut).toMatch(/^HTTP\/1\.1 200 /)
    expect(cut).toContain('"code":"payload_too_large"')
    expect(lines.length).toBeLessThanOrEqual(limits.ingestBodyBytes / one.length)
    expect(lines.length).toBeGreaterThan(limits.ingestBodyBytes / one.length - 100)
  })

  test('a reader who leaves ends the stream and aborts the signal', async () => {
    const seen = { ended: false, aborted: false }
    const made = stage({
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
    const { url } = await serve(made)
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
    await expect.poll(() => made.app.inFlight === 0).toBe(true)
  })
})

describe('binding', () => {
  test('port 0 is a free one, and several can be had at once', async () => {
    const ports = (await Promise.all([serve(stage()), serve(stage()), serve(stage())])).map(
      ({ port }) => port,
    )
    expect(new Set(ports).size).toBe(3)
    for (const port of ports) expect(port).toBeGreaterThan(0)
  })

  test('a port that is taken is told by its code, and one that browsers refuse is not swapped for another', async () => {
    const { port } = await serve(stage())
    const taken = await serve(stage(), port).catch(error => error)
    expect(taken).toMatchObject({ code: 'EADDRINUSE', message: `port ${port} on 127.0.0.1 is in use` })
    expect(String(await serve(stage(), 6667).catch(error => error))).toContain('6667')
  })

  test('an address of another machine is told by its code', async () => {
    const failed = await listen(stage().app, { host: '192.0.2.1', port: 0 }).catch(error => error)
    expect(failed).toMatchObject({ code: 'EADDRNOTAVAIL' })
  })

  test('HTTPS with a certificate of its own making', async () => {
    const listening = await listen(stage().app, { host: '127.0.0.1', port: 0, https: true })
    open.push(listening)
    expect(listening.url).toBe(`https://127.0.0.1:${listening.port}`)
    const asked = request(`${listening.url}/healthz`, { rejectUnauthorized: false, agent: false }).end()
    const [response] = await once(asked, 'response')
    expect(response.statusCode).toBe(200)
    response.resume()
  })
})

/** An application whose page waits until it is released. */
function held() {
  let release = () => {}
  const gate = new Promise<void>(resolve => {
    release = resolve
  })
  const made = stage({
    notes: {
      page: async () => {
        await gate
        return { status: 200, body: 'late' }
      },
    },
  })
  return { made, release }
}

describe('S7.3-10: closing', () => {
  test('the request in flight is answered, others get 503 on old and new connections, then the port is free', async () => {
    const { made, release } = held()
    const { url, port, close } = await listen(made.app, { host: '127.0.0.1', port: 0 })
    const kept = connect(port, '127.0.0.1')
    const answers: string[] = []
    kept.on('data', part => answers.push(String(part)))
    kept.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await expect.poll(() => answers.join('').includes('{"status":"ok"}')).toBe(true)
    const slow = fetch(`${url}/page`)
    await expect.poll(() => made.app.inFlight === 1).toBe(true)
    const closed = close(10_000)
    kept.write('GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await expect.poll(() => answers.join('').includes('"code":"draining"')).toBe(true)
    expect((await fetch(`${url}/version`)).status).toBe(503)
    release()
    expect(await (await slow).text()).toBe('late')
    expect(await closed).toBe(true)
    const next = createServer().listen(port, '127.0.0.1')
    await once(next, 'listening')
    next.close()
  })

  test('an idle connection does not hold it up', async () => {
    const { port, close } = await listen(stage().app, { host: '127.0.0.1', port: 0 })
    const idle = connect(port, '127.0.0.1')
    await once(idle, 'connect')
    const startedAt = Date.now()
    expect(await close(10_000)).toBe(true)
    expect(Date.now() - startedAt).toBeLessThan(5_000)
    await once(idle, 'close')
  })

  test('after the grace time, what is left is cut off', async () => {
    const { made, release } = held()
    const { url, close } = await listen(made.app, { host: '127.0.0.1', port: 0 })
    const slow = fetch(`${url}/page`).then(
      () => 'answered',
      () => 'cut off',
    )
    await expect.poll(() => made.app.inFlight === 1).toBe(true)
    expect(await close(50)).toBe(false)
    expect(await slow).toBe('cut off')
    release()
  })
})

describe('another application on the same port', () => {
  test('the old one finishes what is in flight, the new one answers on connections that were kept, with its own settings', async () => {
    const { made, release } = held()
    const listening = await listen(made.app, { host: '127.0.0.1', port: 0 })
    open.push(listening)
    const { url, port } = listening
    const slow = fetch(`${url}/page`)
    await expect.poll(() => made.app.inFlight === 1).toBe(true)
    const drained = listening.drain(10_000)
    expect((await fetch(`${url}/version`)).status).toBe(503)
    release()
    expect(await (await slow).text()).toBe('late')
    expect(await drained).toBe(true)
    listening.replaceApp(stage({ settings: { production: true, requestIdHeader: 'x-new' } }).app)
    expect((await fetch(`${url}/healthz`)).headers.has('x-new')).toBe(true)
    expect((await raw(port, 'no HTTP\r\n\r\n')).head).toContain('x-new')
  })

  test('what does not finish in time is cut off, and the port stays', async () => {
    const { made, release } = held()
    const listening = await listen(made.app, { host: '127.0.0.1', port: 0 })
    open.push(listening)
    const slow = fetch(`${listening.url}/page`).then(
      () => 'answered',
      () => 'cut off',
    )
    await expect.poll(() => made.app.inFlight === 1).toBe(true)
    expect(await listening.drain(50)).toBe(false)
    expect(await slow).toBe('cut off')
    listening.replaceApp(stage().app)
    expect((await fetch(`${listening.url}/healthz`)).status).toBe(200)
    release()
  })
})

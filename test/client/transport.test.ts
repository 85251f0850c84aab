import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { type AddressInfo, connect as dial } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { OutgoingRequest } from '../../src/client/fetch.ts'
import type { NetworkOptions } from '../../src/client/node/network-options.ts'
import { requestTimeouts } from '../../src/client/node/timeouts.ts'
import { openNetwork } from '../../src/client/node/transport.ts'
import { Unreachable } from '../../src/client/unreachable.ts'

const pem = (name: string) => readFileSync(`test/fixtures/tls/${name}.pem`, 'utf8')
const authorities = [pem('authority')]

async function listenOnFreePort(server: Server): Promise<number> {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/** Starts a server that gives the answers in order, and repeats the last one. */
async function startServer(...answers: RequestListener[]) {
  const requests: IncomingMessage[] = []
  const server = createServer((request, response) => {
    requests.push(request)
    answers[Math.min(requests.length, answers.length) - 1]!(request, response)
  })
  let connections = 0
  server.on('connection', () => connections++)
  const url = `http://127.0.0.1:${await listenOnFreePort(server)}/x?y=z`
  return { url, requests, connections: () => connections }
}

const status =
  (code: number, headers: Record<string, string> = {}): RequestListener =>
  (request, response) =>
    void request.resume().on('end', () => response.writeHead(code, headers).end(String(code)))
const breaking: RequestListener = request => void request.socket.destroy()
const ok = status(200)

function createFetch(options: NetworkOptions = {}) {
  const { fetch, close } = openNetwork(options)
  onTestFinished(close)
  return fetch
}

const get: OutgoingRequest = { method: 'GET', headers: {} }
const post: OutgoingRequest = { method: 'POST', headers: {}, body: '{}' }

async function* streamedBody() {
  yield Buffer.from('one')
  yield Buffer.from('three')
}

describe('connections', () => {
  test('are reused for several requests, and send the user agent', async () => {
    const { url, requests, connections } = await startServer(ok)
    const fetch = createFetch({ userAgent: 'workbase-cli/1' })
    for (const request of [get, post, get]) expect(await (await fetch(url, request)).text()).toBe('200')
    expect(connections()).toBe(1)
    expect(requests.map(({ url, headers }) => `${url} ${headers['user-agent']}`)).toEqual(
      Array.from({ length: 3 }, () => '/x?y=z workbase-cli/1'),
    )
  })

  test('connect names below localhost to this machine, without a DNS lookup', async () => {
    const { url } = await startServer(ok)
    const answer = await createFetch()(url.replace('127.0.0.1', 'nowhere.localhost'), get)
    expect(answer.status).toBe(200)
  })

  test('report the bytes sent of a streamed body', async () => {
    const { url } = await startServer(ok)
    const sent: number[] = []
    const body = streamedBody()
    await (await createFetch()(url, { ...post, body, onSent: bytes => sent.push(bytes) })).text()
    expect(sent).toEqual([3, 8])
  })

  test('report the bytes sent of a text, from the start in each attempt', async () => {
    const { url, requests } = await startServer(status(429, { 'retry-after': '0' }), ok)
    const sent: number[] = []
    const body = 'é'.repeat(50_000)
    const answer = await createFetch()(url, { ...post, body, onSent: bytes => sent.push(bytes) })
    expect(answer.status).toBe(200)
    expect(sent).toEqual([65_536, 100_000, 65_536, 100_000])
    expect(requests.map(({ headers }) => headers['content-length'])).toEqual(['100000', '100000'])
  })

  test('return a redirect as the response', async () => {
    const { url, requests } = await startServer(status(302, { location: 'http://127.0.0.1:1/' }))
    expect((await createFetch()(url, get)).status).toBe(302)
    expect(requests).toHaveLength(1)
  })
})

describe('retries', () => {
  test.each([
    ['retries a rate-limited GET', get, status(429, { 'retry-after': '1' }), '429', 1_000],
    ['retries a POST after 503 with Retry-After', post, status(503, { 'retry-after': '0' }), '503', 250],
    ['retries a GET after a Retry-After date', get, retryAfterDate(1_000), '429', 1_000],
    ['retries a GET after a gateway error', get, status(502), '502', 250],
    ['retries a GET after a broken connection', get, breaking, 'UND_ERR_SOCKET', 250],
    [
      'retries a DELETE after a broken connection',
      { ...get, method: 'DELETE' },
      breaking,
      'UND_ERR_SOCKET',
      250,
    ],
  ])('%s', async (_what, request, first, reason, waitMs) => {
    const { url, requests } = await startServer(first, ok)
    const retries: object[] = []
    const answer = await createFetch({ onRetry: retry => retries.push(retry) })(url, request)
    expect([answer.status, await answer.text()]).toEqual([200, '200'])
    expect(requests).toHaveLength(2)
    expect(retries).toEqual([{ reason, waitMs }])
  })

  test.each([
    ['a rate-limited POST without Retry-After', post, status(429), 429],
    ['a runtime in rescue mode', get, status(503), 503],
    ['a wait that exceeds the limit', get, status(429, { 'retry-after': '21' }), 429],
    ['a defect', get, status(500), 500],
    ['a streamed body', { ...post, body: streamedBody() }, status(429, { 'retry-after': '0' }), 429],
    ['a stream of events', sse(), status(503, { 'retry-after': '0' }), 503],
  ])('does not retry %s', async (_what, request, answer, code) => {
    const { url, requests } = await startServer(answer)
    expect((await createFetch()(url, request)).status).toBe(code)
    expect(requests).toHaveLength(1)
  })

  test.each([
    ['a POST whose connection broke', post, breaking],
    ['a stream of events that broke', sse(), breaking],
    ['a response that broke off', get, breakOff],
  ])('does not retry %s, because it may have been executed', async (_what, request, answer) => {
    const { url, requests } = await startServer(answer, ok)
    const read = async () => (await createFetch()(url, request)).text()
    await expect(read()).rejects.toThrow(/^no runtime responds at .*: the connection was lost$/)
    expect(requests).toHaveLength(1)
  })

  test('stops after three retries, and returns the last response', async () => {
    const { url, requests } = await startServer(status(504))
    const answer = await createFetch()(url, get)
    expect([answer.status, await answer.text(), requests.length]).toEqual([504, '504', 4])
  })

  test.each([
    ['retry response', status(429, { 'retry-after': '15' })],
    ['broken connection', breaking],
  ])('an abort ends the wait after a %s immediately', async (_what, answer) => {
    const { url, requests } = await startServer(answer)
    const controller = new AbortController()
    const reason = new Error('enough')
    const onRetry = () => void setTimeout(() => controller.abort(reason), 20)
    const startedMs = performance.now()
    const { signal } = controller
    await expect(createFetch({ onRetry })(url, { ...get, signal })).rejects.toBe(reason)
    expect(performance.now() - startedMs).toBeLessThan(5_000)
    expect(requests).toHaveLength(1)
  })

  test('does not retry if nothing listens', async () => {
    const retries: object[] = []
    const fetch = createFetch({ onRetry: retry => retries.push(retry) })
    await expect(fetch('http://127.0.0.1:1', get)).rejects.toThrow(/connection refused/)
    expect(retries).toEqual([])
  })
})

describe('a runtime that stops responding', () => {
  const silent: RequestListener = request => void request.resume()
  const stalling: RequestListener = (request, response) => {
    request.resume()
    response.writeHead(200, { 'content-type': 'application/json' }).write('{"items":[')
  }
  const lines = (): OutgoingRequest => ({ ...post, body: streamedBody() })

  test.each([
    ['did not respond within 0.05 s', silent, get],
    ['did not respond within 0.05 s', silent, post],
    ['stopped sending its response for 0.05 s', stalling, get],
    ['stopped sending its response for 0.05 s', stalling, lines()],
  ])('fails with "%s", after a single request', async (fact, answer, request) => {
    const { url, requests } = await startServer(answer)
    const read = async () => (await createFetch({ idleTimeoutMs: 50 })(url, request)).text()
    const error: unknown = await read().catch(error => error)
    expect(error).toBeInstanceOf(Unreachable)
    expect((error as Unreachable).message).toBe(`${new URL(url).origin} ${fact}`)
    expect((error as Unreachable).hint).toContain('WB_IDLE_TIMEOUT')
    expect(requests).toHaveLength(1)
  })

  test('each chunk resets the timer, so pings keep a stream open beyond the idle timeout', async () => {
    const { url } = await startServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      let pings = 0
      const timer = setInterval(() => {
        response.write(': ping\n\n')
        if (++pings < 20) return
        clearInterval(timer)
        response.end('data: {}\n\n')
      }, 200)
    })
    const answer = await createFetch({ idleTimeoutMs: 1_500 })(url, sse())
    expect(await answer.text()).toMatch(/^(?:: ping\n\n){20}data: \{\}\n\n$/)
  })

  test.each([
    ['60 s', 'before a list', get, 'headersTimeout'],
    ['60 s', 'within its answer', get, 'bodyTimeout'],
    ['300 s', 'before the answer to work', post, 'headersTimeout'],
    ['60 s', 'within it', post, 'bodyTimeout'],
    ['300 s', 'between the lines of a batch', lines(), 'bodyTimeout'],
  ] as const)('allows %s %s', (time, _where, request, which) => {
    expect(`${requestTimeouts(request)[which] / 1_000} s`).toBe(time)
  })
})

describe('proxies', () => {
  /** Starts a proxy that forwards everything to one port of this machine. */
  async function proxy(port: number, refuses?: number) {
    const requests: (string | undefined)[][] = []
    const server = createServer((request, response) => {
      requests.push([request.method, request.url, request.headers['proxy-authorization']])
      response.writeHead(refuses ?? 200).end('by proxy')
    })
    server.on('connect', (request: IncomingMessage, socket) => {
      requests.push([request.method, request.url, request.headers['proxy-authorization']])
      if (refuses) return void socket.end(`HTTP/1.1 ${refuses} No\r\n\r\n`)
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      const onward = dial(port, '127.0.0.1')
      socket.on('error', () => onward.destroy()).pipe(onward)
      onward.on('error', () => socket.destroy()).pipe(socket)
    })
    return { requests, port: await listenOnFreePort(server) }
  }

  async function startHttpsServer() {
    return listenOnFreePort(createSecureServer({ key: pem('server-key'), cert: pem('server') }, ok))
  }

  test('http uses the proxy, with the credentials in its address', async () => {
    const { requests, port } = await proxy(0)
    const fetch = createFetch({ proxies: { http: `http://me:s3cret@127.0.0.1:${port}` } })
    expect(await (await fetch('http://wb.test/x?y', get)).text()).toBe('by proxy')
    expect(requests).toEqual([
      ['GET', 'http://wb.test/x?y', `Basic ${Buffer.from('me:s3cret').toString('base64')}`],
    ])
  })

  test('trusts a configured certificate under any name, and no other certificate of its issuer', async () => {
    const url = `https://127.0.0.1:${await startHttpsServer()}/`
    const certificate = pem('server') + pem('authority')
    expect(await (await createFetch({ certificate })(url, get)).text()).toBe('200')
    for (const other of [{ certificate: pem('other') }, { certificate: pem('other'), authorities }])
      await expect(createFetch(other)(url, get)).rejects.toThrow(/UNABLE_TO_GET_ISSUER_CERT|is not trusted/)
  })

  test('https uses a tunnel, and the runtime is verified by its certificate', async () => {
    const { requests, port } = await proxy(await startHttpsServer())
    const proxies = { https: `http://127.0.0.1:${port}` }
    expect(await (await createFetch({ proxies, authorities })('https://wb.test/x', get)).text()).toBe('200')
    expect(requests).toEqual([['CONNECT', 'wb.test:443', undefined]])
    await expect(createFetch({ proxies })('https://wb.test/x', get)).rejects.toThrow(
      /certificate is not trusted/,
    )
    await expect(createFetch({ proxies, authorities })('https://other.test/x', get)).rejects.toThrow(
      /certificate is for another host/,
    )
  })

  test.each(['http', 'https'])('reports a proxy that rejects requests over %s', async protocol => {
    const { port } = await proxy(0, 407)
    const address = `http://me:s3cret@127.0.0.1:${port}`
    const caught = await createFetch({ proxies: { http: address } })(`${protocol}://wb.test/`, get).catch(
      (error: unknown) => error,
    )
    expect(caught).toBeInstanceOf(Unreachable)
    const { message, hint } = caught as Unreachable
    expect(message).toMatch(/the proxy refused the connection: /)
    expect(hint).toContain(`the proxy http://127.0.0.1:${port} (`)
    expect(message + hint).not.toContain('s3cret')
  })

  test('connects directly to excepted hosts', async () => {
    const { requests, port } = await proxy(0)
    const { url } = await startServer(ok)
    const proxies = { http: `http://127.0.0.1:${port}`, except: 'example.com, 127.0.0.1' }
    expect(await (await createFetch({ proxies })(url, get)).text()).toBe('200')
    expect(requests).toEqual([])
  })
})

function sse(): OutgoingRequest {
  return { ...get, headers: { accept: 'text/event-stream' } }
}

function breakOff(_request: IncomingMessage, response: Parameters<RequestListener>[1]): void {
  response.writeHead(200, { 'content-length': '10', etag: '"1"' })
  response.write('half', () => setImmediate(() => response.destroy()))
}

function retryAfterDate(ms: number): RequestListener {
  const date = Date.parse('2026-01-01T00:00:00Z')
  const headers = {
    date: new Date(date).toUTCString(),
    'retry-after': new Date(date + ms).toUTCString(),
  }
  return status(429, headers)
}

import { once } from 'node:events'
import { connect } from 'node:net'
import { beforeAll, describe, expect, test } from 'vitest'
import { exactly } from '../wire/exactly.ts'
import { useServer } from '../wire/harness.ts'
import { failure } from '../wire/shapes.ts'

const wire = useServer()
const answersWithinMs = 10_000
let codes: Map<string, number>

beforeAll(async () => {
  const listed = (await wire.get('/error-codes')).codes as { code: string; defaultStatus: number }[]
  codes = new Map(listed.map(({ code, defaultStatus }) => [code, defaultStatus]))
})

interface RawReply {
  readonly status: number
  readonly head: string
  readonly body: string
}

/** Writes bytes to the socket, and reads one response until the server closes or stops sending. */
async function exchange(bytes: string | Buffer): Promise<RawReply> {
  const { hostname, port } = new URL(wire.serving.url)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  const parts: Buffer[] = []
  const ended = new Promise<void>(resolve => {
    socket.on('data', part => {
      parts.push(part)
      if (isComplete(Buffer.concat(parts))) resolve()
    })
    socket.on('close', () => resolve())
    socket.on('error', () => resolve())
    socket.setTimeout(answersWithinMs, () => resolve())
  })
  socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
  await ended
  socket.destroy()
  return parseResponse(Buffer.concat(parts).toString('utf8'))
}

function isComplete(received: Buffer): boolean {
  const at = received.indexOf('\r\n\r\n')
  if (at < 0) return false
  const length = /content-length: (\d+)/i.exec(received.subarray(0, at).toString())
  return length !== null && received.length >= at + 4 + Number(length[1])
}

function parseResponse(received: string): RawReply {
  const at = received.indexOf('\r\n\r\n')
  const head = received.slice(0, Math.max(at, 0))
  return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1] ?? 0), head, body: received.slice(at + 4) }
}

/** Checks for an error envelope with a registered code, its status and a request ID. */
function expectEnvelope(reply: RawReply, about: string): string {
  const found = `${about} → ${reply.head.slice(0, 400)} ${reply.body.slice(0, 300)}`
  expect(reply.head, found).toMatch(/content-type: application\/json/i)
  const json = reply.body.slice(reply.body.indexOf('{'), reply.body.lastIndexOf('}') + 1)
  const body = JSON.parse(json) as { error: { code: string; requestId: string } }
  exactly(body, failure(body.error.code), found)
  expect(codes.get(body.error.code), found).toBe(reply.status)
  expect(reply.head, found).toContain(body.error.requestId)
  expect(reply.head, found).toMatch(/x-content-type-options: nosniff/i)
  return body.error.code
}

const host = 'Host: localhost'
const get = (headers: string[], target = '/api/v1/workspaces'): string => {
  return `GET ${target} HTTP/1.1\r\n${headers.map(line => `${line}\r\n`).join('')}Connection: close\r\n\r\n`
}
const post = (headers: string[], body: string): string => {
  return `POST /api/v1/workspaces HTTP/1.1\r\n${[host, 'Content-Type: application/json', ...headers]
    .map(line => `${line}\r\n`)
    .join('')}Connection: close\r\n\r\n${body}`
}
const body = '{"name":"smuggled"}'

describe('S7.1-04: requests that Node.js rejects', () => {
  test.each([
    ['two Hosts', get([host, 'Host: other.example'])],
    ['a duplicate Host', get([host, host])],
    ['two Authorizations', get([host, 'Authorization: Bearer a', 'Authorization: Bearer b'])],
    ['two lengths', post([`Content-Length: ${body.length}`, 'Content-Length: 5'], body)],
    ['a duplicate length', post([`Content-Length: ${body.length}`, `Content-Length: ${body.length}`], body)],
    [
      'a length and chunks',
      post([`Content-Length: ${body.length}`, 'Transfer-Encoding: chunked'], `0\r\n\r\n`),
    ],
    ['a negative length', post(['Content-Length: -5'], body)],
    ['an invalid length', post(['Content-Length: five'], body)],
    ['an invalid chunk size', post(['Transfer-Encoding: chunked'], 'zz\r\nhello\r\n0\r\n\r\n')],
    ['no Host', get([])],
    ['a header without a name', get([host, ': nothing'])],
    ['a space in a header name', get([host, 'Bad Header: x'])],
    ['a NUL in a header', get([host, 'X-Padding: a\u0000b'])],
    ['an invalid method', 'BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n'],
    ['text that is not HTTP', 'hello there\r\n\r\n'],
    ['bytes', Buffer.from([0x16, 0x03, 0x01, 0x00, 0xa5, 0x01, 0x00, 0x0d, 0x0a, 0x0d, 0x0a])],
    ['another version', 'GET / HTTP/9.9\r\nHost: localhost\r\n\r\n'],
    ['a NUL in the path', get([host], '/api/v1/work\u0000spaces')],
  ])('%s is 400 with an error envelope', async (about, bytes) => {
    const reply = await exchange(bytes)
    expect(reply.status, about).toBe(400)
    expectEnvelope(reply, about)
  })

  test('accepts 200 headers, and answers more with 431 headers_too_large', async () => {
    // Includes the Host and Connection headers.
    const send = (count: number) =>
      exchange(get([host, ...Array.from({ length: count - 2 }, (_, at) => `X-${at}: a`)], '/healthz'))
    expect((await send(200)).status).toBe(200)
    for (const count of [201, 202, 1_000])
      expect(expectEnvelope(await send(count), `${count} headers`)).toBe('headers_too_large')
  })

  test('answers 100 KB of headers with 431 headers_too_large', async () => {
    for (const headers of [
      [host, `X-Padding: ${'x'.repeat(100_000)}`],
      [host, ...Array.from({ length: 1_000 }, (_, index) => `X-Padding-${index}: ${'x'.repeat(90)}`)],
    ]) {
      const reply = await exchange(get(headers))
      expect(reply.status).toBe(431)
      expect(expectEnvelope(reply, '100 KB of headers')).toBe('headers_too_large')
    }
  })

  test('rejects a path of 100 KB', async () => {
    const reply = await exchange(get([host], `/${'x'.repeat(100_000)}`))
    expect([400, 414, 431]).toContain(reply.status)
    expectEnvelope(reply, '100 KB of path')
  })

  test.each([
    ['two slashes', '//api/v1/workspaces'],
    ['a trailing slash and dots', '/api/v1/workspaces/../../../etc/passwd'],
    ['encoded dots', '/api/v1/%2e%2e/%2e%2e/etc/passwd'],
    ['an encoded slash', '/api%2fv1%2fworkspaces'],
    ['a bad escape', '/api/v1/workspaces/%ZZ'],
    ['half an escape', '/api/v1/workspaces/%4'],
    ['bytes beyond ASCII', '/api/v1/workspaces/\u00ff\u00fe'],
    ['a URL of another host', 'http://evil.example/api/v1/nowhere'],
    ['an invalid URL', 'http://[::1/api/v1/nowhere'],
    ['a bad escape in a query', '/api/v1/workspaces?cursor=%ZZ'],
    ['only a question mark', '/api/v1/nowhere?'],
  ])('rejects the path with %s below 500', async (about, target) => {
    const reply = await exchange(get([host], target))
    expect(reply.status, `${about} ${reply.body.slice(0, 300)}`).toBeGreaterThanOrEqual(400)
    expect(reply.status, `${about} ${reply.body.slice(0, 300)}`).toBeLessThan(500)
    expectEnvelope(reply, about)
  })

  test('no request was smuggled in', async () => {
    expect(await wire.items('/api/v1/workspaces')).toEqual([])
    await wire.exchange('GET /healthz', undefined, 200, { status: 'ok' })
  })
})

test('a body that ends early changes nothing', async () => {
  const { hostname, port } = new URL(wire.serving.url)
  const whole = post(['Content-Length: 1000'], body)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  socket.write(whole)
  await new Promise(resolve => setTimeout(resolve, 100))
  socket.destroy()
  await once(socket, 'close')
  expect(await wire.items('/api/v1/workspaces')).toEqual([])
  await wire.exchange('GET /healthz', undefined, 200, { status: 'ok' })
})

import { connect } from 'node:net'

const methods = [
  'GET',
  'HEAD',
  'POST',
  'PATCH',
  'DELETE',
  'PUT',
  'OPTIONS',
  'TRACE',
  'QUERY',
  'CONNECT',
  'M-SEARCH',
]
const oddMethods = ['get', 'G\0T', 'PRI', '', ' ', 'GET GET', 'ÄÖ', 'A'.repeat(5_000)]
const paths = [
  '/',
  '/healthz',
  '/readyz',
  '/docs',
  '/auth/me',
  '/auth/login',
  '/auth/callback',
  '/auth/device/token',
  '/setup-status',
  '/setup/env',
  '/api/v1/openapi.json',
  '/api/v1/workspaces',
  '/api/v1/workspaces/x/knowledge-bases',
  '/api/v1/workspaces/00000000-0000-4000-8000-000000000000/agents/x',
]
const segments = [
  '.',
  '..',
  '%2e',
  '%2E%2e',
  '\\',
  '{',
  '}',
  '`',
  '"',
  '<',
  '>',
  '^',
  '|',
  '%',
  '%0',
  '%zz',
  '%00',
  '%ff',
  ';',
  ':',
  '@',
  '',
  'é',
  '\x01',
  '\t',
  '#x',
  '?',
  '[',
  ']',
  '__proto__',
  '%F0%9F',
  '%ED%A0%80',
]
const wholeTargets = [
  '*',
  '',
  'x',
  '//',
  '///',
  'http://a:65536/',
  'http://',
  'HTTP://localhost/healthz',
  'https://[::1/x',
  'file:///etc/passwd',
  'javascript:1',
  'localhost:80',
  'http://u:p@localhost/',
  `/${'a'.repeat(20_000)}`,
  `/${'%2e/'.repeat(2_000)}`,
]
const queries = [
  '',
  '?',
  '?a',
  '?a=%',
  '?a=1&a=2',
  '?limit=-1',
  '?__proto__=1',
  `?q=${'x'.repeat(3_000)}`,
  '?%ff',
  '?"<>',
  '?limit=1#f',
  "?'",
  '?\\',
]
const hosts = [
  'localhost',
  'LOCALHOST',
  'localhost:',
  'localhost.',
  'a:65536',
  'a:99999',
  '1.2.3.256',
  '4294967296',
  '08',
  '0x7f.1',
  '127.1',
  'xn--zzzzzz',
  'xn--',
  '[::1]',
  '[::1]:80',
  '[::1',
  '[::g]',
  '[fe80::1%25lo]',
  '',
  ' ',
  '.',
  '..',
  '-',
  '_',
  'a..b',
  'a b',
  'a/b',
  'a@b',
  'a:b',
  'é',
  'ß.example',
  '%31',
  'localhost:0',
  'localhost:-1',
  'a'.repeat(300),
  `${'a.'.repeat(2_000)}b`,
  'evil.example',
  'a:',
  ':80',
  '::1',
  '\x7f',
  '​',
]
const otherHeaders = [
  'Connection: close',
  'Connection: keep-alive',
  'Connection: upgrade',
  'Upgrade: websocket',
  'Upgrade: h2c',
  'HTTP2-Settings: AAMAAABkAAQAAP__',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  'Expect: 100-continue',
  'Expect: 200-ok',
  'Content-Length: 0',
  'Content-Length: 5',
  'Content-Length: 05',
  'Content-Length: +5',
  'Content-Length: 1e1',
  'Content-Length: -1',
  'Content-Length: 99999999999999999999',
  'Content-Length: 9000000',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: gzip, chunked',
  'Transfer-Encoding: identity',
  'Transfer-Encoding:\tchunked',
  'Content-Type: application/json',
  'Content-Type: multipart/form-data',
  'Content-Type: multipart/form-data; boundary=x',
  'Content-Type: application/x-ndjson',
  'Content-Encoding: gzip',
  'Authorization: Bearer x',
  'Authorization: Bearer wb_live_aaaaaaaaaaaa_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',
  'Authorization: Basic eDp4',
  'Authorization: ',
  'Cookie: wb_session=v2.a.b.c',
  'Cookie: =; ;;=',
  'Origin: null',
  'Origin: http://a:65536',
  'Referer: http://[',
  'Sec-Fetch-Site: cross-site',
  'X-Forwarded-For: 1.2.3.256, é',
  'X-Forwarded-Host: a:65536',
  'X-Forwarded-Proto: https',
  'Forwarded: for=x',
  'X-Request-Id: \u00e9',
  'traceparent: 00-0-0-0',
  'Accept: text/event-stream',
  'Last-Event-ID: \x01',
  'Range: bytes=0-1',
  '__proto__: x',
  'constructor: x',
  ': x',
  'No colon',
  ' Folded: x',
  'Space : x',
  'A: \0',
  'A: a\rb',
  `Long: ${'x'.repeat(40_000)}`,
]
const bodies = [
  '',
  '',
  '',
  '{}',
  'hello',
  '5\r\nhello\r\n0\r\n\r\n',
  '0\r\n\r\n',
  'zz\r\n',
  '5\r\nhi',
  '\xff\xfe',
  '--x\r\n\r\n--x--',
]

/** Bytes that resemble an HTTP request, usually a valid one, with the method of the first request in them. */
export interface RequestBytes {
  readonly method: string
  readonly bytes: Buffer
}

/**
 * Returns a request head, sometimes with a body or a second request after it, built from valid and invalid parts.
 */
export function requestHead(random: () => number): RequestBytes {
  const one = <T>(choices: readonly T[]): T => choices[Math.floor(random() * choices.length)]!
  const chance = (share: number) => random() < share
  const method = chance(0.95) ? one(methods) : one(oddMethods)
  const path = one(paths)
  const withSegments = () =>
    Array.from({ length: 1 + Math.floor(random() * 3) }, () => one(segments)).reduce(
      (joined, segment) => (chance(0.5) ? `${joined}/${segment}` : `/${segment}${joined}`),
      path,
    )
  const target = chance(0.1) ? one(wholeTargets) : (chance(0.5) ? withSegments() : path) + one(queries)
  const version = chance(0.93)
    ? 'HTTP/1.1'
    : one(['HTTP/1.0', 'HTTP/0.9', 'HTTP/2.0', 'HTTP/1.2', 'http/1.1', 'HTTP', ''])
  const lines = chance(0.93) ? [`Host: ${chance(0.4) ? 'localhost' : one(hosts)}`] : []
  while (chance(0.6)) lines.push(one(otherHeaders))
  if (chance(0.05)) lines.push(`host: ${one(hosts)}`)
  if (chance(0.2)) lines.reverse()
  const end = chance(0.95) ? '\r\n' : one(['\n', '\r', '\n\r', ''])
  let text = [`${method} ${target} ${version}`, ...lines, '', ''].join(end) + one(bodies)
  if (chance(0.1)) text += 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n'
  // Latin-1 keeps a byte per character, so raw bytes over 0x7f reach the server too.
  const bytes = Buffer.from(text, chance(0.5) ? 'latin1' : 'utf8')
  for (let flips = chance(0.1) ? 3 : 0; flips > 0; flips--)
    bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256)
  if (chance(0.03)) return { method, bytes: bytes.subarray(0, Math.floor(random() * bytes.length)) }
  return { method, bytes }
}

/**
 * Time without a response after which the client ends its side, because the bytes can be an incomplete request.
 */
const silenceMs = 500

/**
 * Writes bytes to a loopback port and returns the response. The client ends its side after the first bytes of the
 * response, or after a time without one; Node drops a pending response if the client ends earlier.
 *
 * @param options.reset  resets the connection instead of reading
 * @throws Error  the server keeps the connection open for longer than `patienceMs`
 */
export function exchangeBytes(
  port: number,
  bytes: Buffer,
  options: { reset?: boolean; patienceMs?: number } = {},
): Promise<Buffer> {
  const { reset = false, patienceMs = 20_000 } = options
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = []
    const socket = connect(port, '127.0.0.1')
    const impatience = setTimeout(() => {
      socket.destroy()
      reject(
        new Error(
          `no end after ${patienceMs} ms: ${JSON.stringify(bytes.toString('latin1').slice(0, 2_000))}`,
        ),
      )
    }, patienceMs)
    const silence = setTimeout(() => socket.end(), silenceMs)
    socket.on('data', part => {
      parts.push(part)
      socket.end()
    })
    // A server that has rejected a request can close while the rest is sent.
    socket.on('error', () => {})
    socket.on('close', () => {
      clearTimeout(impatience)
      clearTimeout(silence)
      resolve(Buffer.concat(parts))
    })
    socket.write(bytes, () => reset && socket.resetAndDestroy())
  })
}

/** One raw response. */
export interface RawResponse {
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  readonly body: string
}

/**
 * Splits the bytes of a connection into responses, strictly by RFC 9112.
 *
 * @param method  of the first request; later ones are assumed to have bodies
 * @throws Error  the bytes are not valid responses
 */
export function responsesIn(bytes: Buffer, method: string): RawResponse[] {
  const responses: RawResponse[] = []
  let rest = bytes.toString('latin1')
  while (rest !== '') {
    const head =
      /^HTTP\/1\.1 ([1-5]\d\d) [\x20-\x7e]*\r\n((?:[!#$%&'*+.^_`|~\w-]+: [^\r\n\0]*\r\n)*)\r\n/.exec(rest)
    if (!head) throw new Error(`not a response: ${JSON.stringify(rest.slice(0, 300))}`)
    rest = rest.slice(head[0].length)
    const status = Number(head[1])
    if (status < 200) continue
    const pairs = head[2]!.split('\r\n').filter(line => line !== '')
    const headers = new Map(
      pairs.map(line => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 2)]),
    )
    // The method of a HEAD that the parser rejected is unknown, so its response can have a body.
    const isHead = responses.length === 0 && method === 'HEAD' && !rest.startsWith('{"error"')
    const [body, after] = isHead || status === 204 || status === 304 ? ['', rest] : bodyOf(headers, rest)
    responses.push({ status, headers, body })
    rest = after
  }
  return responses
}

function bodyOf(headers: ReadonlyMap<string, string>, rest: string): [body: string, rest: string] {
  const length = headers.get('content-length')
  if (length !== undefined) {
    if (rest.length < Number(length)) throw new Error('the body is shorter than its Content-Length')
    return [rest.slice(0, Number(length)), rest.slice(Number(length))]
  }
  if (headers.get('transfer-encoding') !== 'chunked') return [rest, '']
  let body = ''
  for (;;) {
    const size = /^([0-9a-f]+)\r\n/i.exec(rest)
    if (!size) throw new Error(`not a chunk: ${JSON.stringify(rest.slice(0, 100))}`)
    const [from, bytes] = [size[0].length, Number.parseInt(size[1]!, 16)]
    if (rest.slice(from + bytes, from + bytes + 2) !== '\r\n') throw new Error('a chunk does not end')
    body += rest.slice(from, from + bytes)
    rest = rest.slice(from + bytes + 2)
    if (bytes === 0) return [body, rest]
  }
}

/**
 * Sends a generated head and checks that the result is HTTP responses, with each error in the envelope, or nothing
 * for an incomplete request.
 *
 * @throws Error  contains the bytes and the reason
 */
export async function checkHead(port: number, random: () => number): Promise<number | undefined> {
  const { method, bytes } = requestHead(random)
  const reset = random() < 0.05
  const received = await exchangeBytes(port, bytes, { reset })
  if (reset) return undefined
  try {
    const responses = responsesIn(received, method)
    for (const [at, { status, body }] of responses.entries()) {
      if (status < 400 || (at === 0 && method === 'HEAD')) continue
      const { error } = JSON.parse(body) as { error?: { code?: unknown; requestId?: unknown } }
      if (typeof error?.code !== 'string' || typeof error.requestId !== 'string')
        throw new Error(`status ${status} without an envelope`)
      if (status >= 500 && error.code === 'internal_error') throw new Error('internal_error')
    }
    return responses[0]?.status
  } catch (error) {
    const sent = JSON.stringify(bytes.toString('latin1').slice(0, 1_500))
    const answered = JSON.stringify(received.toString('latin1').slice(0, 500))
    throw new Error(
      `${error instanceof Error ? error.message : error}\n  sent ${sent}\n  received ${answered}`,
    )
  }
}

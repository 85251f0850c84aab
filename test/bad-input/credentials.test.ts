import { once } from 'node:events'
import { connect } from 'node:net'
import { beforeAll, describe, expect, test } from 'vitest'
import { browse, CookieJar } from '../harness/identity-provider.ts'
import { exactly } from '../wire/exactly.ts'
import { useServer } from '../wire/harness.ts'
import { failure } from '../wire/shapes.ts'
import { signInPlace } from '../wire/sign-in-place.ts'

const { bootstrap, env, configured, signingIn } = await signInPlace()
const wire = useServer({ env, args: configured('credentials', signingIn()) })

const target = '/api/v1/workspaces'
const good = `Authorization: Bearer ${bootstrap}`
let token: string
let session: string

beforeAll(async () => {
  const headers = { authorization: `Bearer ${bootstrap}` }
  const created = await wire.send(`POST ${target}`, { json: { name: 'kept' }, headers })
  const { workspaceId } = created.body as { workspaceId: string }
  const minted = await wire.send(`POST ${target}/${workspaceId}/api-keys`, {
    json: { label: 'kept' },
    headers,
  })
  token = (minted.body as { plaintext: string }).plaintext
  const jar = new CookieJar()
  await browse(`${wire.serving.url}/auth/login`, { jar, login: 'alice' })
  session = jar.header(new URL(wire.serving.url))
  expect(session).toMatch(/^wb_session=v2\./)
})

interface RawReply {
  readonly status: number
  readonly head: string
  readonly body: string
}

/** Sends one request with unchanged header lines. */
async function sendRaw(
  lines: readonly (string | Buffer)[],
  method = 'GET',
  path = target,
): Promise<RawReply> {
  const { host, hostname, port } = new URL(wire.serving.url)
  const socket = connect(Number(port), hostname)
  const parts: Buffer[] = []
  socket.on('data', part => parts.push(part)).on('error', () => {})
  const head = [`${method} ${path} HTTP/1.1`, `Host: ${host}`, ...lines, 'Connection: close', '', '']
  socket.write(Buffer.concat(head.flatMap((line, at) => [at > 0 ? '\r\n' : '', line].map(bytesOf))))
  await once(socket, 'close')
  const text = Buffer.concat(parts).toString()
  const end = text.indexOf('\r\n\r\n')
  return {
    status: Number(text.split(' ')[1]),
    head: text.slice(0, end).toLowerCase(),
    body: text.slice(end + 4),
  }
}

function bytesOf(text: string | Buffer): Buffer {
  return typeof text === 'string' ? Buffer.from(text, 'latin1') : text
}

/** Checks for an error envelope with one of the codes, without cookies and secrets. */
function expectRefused(reply: RawReply, about: string, ...codes: string[]): void {
  const found = `${about.slice(0, 200)} → ${reply.head.slice(0, 300)} ${reply.body.slice(0, 300)}`
  const body = JSON.parse(reply.body.slice(reply.body.indexOf('{'), reply.body.lastIndexOf('}') + 1)) as {
    error: { code: string }
  }
  expect(codes, found).toContain(body.error.code)
  exactly(body, failure(body.error.code), found)
  expect(reply.head, found).not.toContain('set-cookie')
  expect(reply.head.includes('www-authenticate: bearer'), found).toBe(body.error.code === 'unauthorized')
  for (const secret of [bootstrap, token, session.slice(20)]) expect(reply.body, found).not.toContain(secret)
}

describe('S7.2-02: invalid Authorization headers', () => {
  test.each([
    ['nothing', 'Authorization:'],
    ['a scheme alone', 'Authorization: Bearer'],
    ['a scheme and spaces', 'Authorization: Bearer    '],
    ['no scheme', `Authorization: ${bootstrap}`],
    ['no space after the scheme', `Authorization: Bearer${bootstrap}`],
    ['a colon', `Authorization: Bearer: ${bootstrap}`],
    ['two tokens', `Authorization: Bearer ${bootstrap} ${bootstrap}`],
    ['two credentials in one line', `Authorization: Bearer ${bootstrap}, Bearer ${bootstrap}`],
    ['quotes', `Authorization: Bearer "${bootstrap}"`],
    ['a parameter', `Authorization: Bearer token=${bootstrap}`],
    ['Basic', `Authorization: Basic ${Buffer.from(`x:${bootstrap}`).toString('base64')}`],
    ['Basic with a bearer inside', `Authorization: Basic Bearer ${bootstrap}`],
    ['Digest', 'Authorization: Digest username="x"'],
    ['Negotiate', 'Authorization: Negotiate YII='],
    ['Token', `Authorization: Token ${bootstrap}`],
    ['ApiKey', `Authorization: ApiKey ${bootstrap}`],
    ['an escaped NUL', `Authorization: Bearer ${bootstrap}%00`],
    ['bytes beyond ASCII', `Authorization: Bearer ${bootstrap}\u00e9\u00ff`],
    ['31 KB', `Authorization: Bearer ${'x'.repeat(31_000)}`],
    ['31 KB that start like a key', `Authorization: Bearer wb_live_${'a'.repeat(31_000)}`],
    ['dots', `Authorization: Bearer ${'.'.repeat(10_000)}`],
    ['a slightly longer token', `Authorization: Bearer ${bootstrap}x`],
    ['a slightly shorter token', `Authorization: Bearer ${bootstrap.slice(0, -1)}`],
    ['another letter case', `Authorization: Bearer ${bootstrap.toUpperCase()}`],
  ])('%s is 401', async (about, line) => {
    expectRefused(await sendRaw([line]), about, 'unauthorized')
  })

  test.each([
    ['two different headers', [good, 'Authorization: Bearer x']],
    ['two different headers, the valid one last', ['Authorization: Bearer x', good]],
    ['a duplicate header', [good, good]],
    ['a duplicate header in another letter case', [good, `AUTHORIZATION: Bearer ${bootstrap}`]],
    ['two schemes', [good, 'Authorization: Basic eDp5']],
    ['an empty header and a valid one', ['Authorization:', good]],
    ['a folded line', [`Authorization: Bearer\r\n ${bootstrap}`]],
    ['a NUL', [`Authorization: Bearer ${bootstrap}\u0000`]],
    ['a NUL in the middle', [`Authorization: Bearer ${bootstrap.slice(0, 9)}\u0000${bootstrap.slice(9)}`]],
    ['a lone line feed', [`Authorization: Bearer ${bootstrap}\nX-Injected: y\r`]],
    ['a space before the colon', [`Authorization : Bearer ${bootstrap}`]],
  ])('rejects %s before authentication', async (about, lines) => {
    expectRefused(await sendRaw(lines), about, 'validation_error')
  })

  test('rejects tokens of 100 KB with 431, in every header', async () => {
    const long = 'x'.repeat(100_000)
    for (const line of [
      `Authorization: Bearer ${long}`,
      `Cookie: wb_session=v2.${long}`,
      `Authorization: ${long}`,
    ])
      expectRefused(await sendRaw([line]), line, 'headers_too_large')
  })

  test('ignores a token in other places', async () => {
    for (const lines of [
      [`X-Api-Key: ${token}`],
      [`Proxy-Authorization: Bearer ${bootstrap}`],
      [`X-Authorization: Bearer ${bootstrap}`],
      [`X-Forwarded-Authorization: Bearer ${bootstrap}`],
      [`Cookie: wb_session=${bootstrap}`],
      [`Cookie: wb_session=${token}; Authorization=Bearer ${bootstrap}`],
    ])
      expectRefused(await sendRaw(lines), lines.join(), 'unauthorized')
    for (const query of [`access_token=${bootstrap}`, `token=${token}`, `api_key=${token}`])
      expectRefused(await sendRaw([], 'GET', `${target}?${query}`), query, 'unauthorized')
  })

  test('accepts the same token in a valid header, with the scheme in any letter case', async () => {
    for (const line of [good, `authorization: bearer ${bootstrap}`, `Authorization: BEARER ${token}`])
      expect((await sendRaw([line])).status, line).toBe(200)
  })
})

describe('invalid session cookies', () => {
  test('accepts a session, also among other cookies', async () => {
    for (const cookie of [session, `theme=dark; ${session}; x=y`])
      expect((await sendRaw([`Cookie: ${cookie}`])).status).toBe(200)
  })

  test('rejects two cookies of one name, in any order and in one or two headers', async () => {
    for (const lines of [
      [`Cookie: ${session}; ${session}`],
      [`Cookie: wb_session=x; ${session}`],
      [`Cookie: ${session}; wb_session=x`],
      [`Cookie: ${session}; wb_session=`],
      [`Cookie: ${session}`, `Cookie: ${session}`],
      ['Cookie: wb_session=x', `Cookie: ${session}`],
    ])
      expectRefused(await sendRaw(lines), lines.join(' | '), 'unauthorized')
  })

  test.each([
    ['nothing', 'wb_session='],
    ['no value', 'wb_session'],
    ['text', 'wb_session=x'],
    ['dots', 'wb_session=v2....'],
    ['another version', 'wb_session=v1.a.b.c'],
    ['invalid base64', 'wb_session=v2.!!!.???.***'],
    ['a bad escape', 'wb_session=%ZZ'],
    ['an escaped NUL', 'wb_session=v2.%00.%00.%00'],
    ['30 KB', `wb_session=v2.${'A'.repeat(30_000)}.A.A`],
    ['inherited property names', '__proto__=x; constructor=y; toString=z; hasOwnProperty=w'],
    ['a thousand names', Array.from({ length: 1_000 }, (_, at) => `wb_session_${at}=x`).join('; ')],
    ['separators', ';;;,,,===;;;'],
    ['bytes beyond ASCII', 'wb_session=\u00ff\u00fe'],
  ])('%s is 401', async (about, cookie) => {
    expectRefused(await sendRaw([`Cookie: ${cookie}`]), about, 'unauthorized')
  })

  test('rejects a NUL in a cookie before authentication', async () => {
    expectRefused(await sendRaw([`Cookie: ${session}\u0000`]), 'NUL', 'validation_error')
  })

  test('a session does not replace an invalid Authorization header', async () => {
    for (const line of ['Authorization: Bearer x', 'Authorization: Basic eDp5', 'Authorization:'])
      expectRefused(await sendRaw([line, `Cookie: ${session}`]), line, 'unauthorized')
  })

  test('rejects them with 401 on a route that reads cookies', async () => {
    for (const cookie of [
      'wb_session=x',
      'wb_session=%ZZ',
      `${session}; ${session}`,
      'wb_session=v2.A.A.A',
    ]) {
      const lines = [`Cookie: ${cookie}`, `Origin: ${wire.serving.url}`, 'Content-Length: 0']
      const reply = await sendRaw(lines, 'POST', '/auth/refresh')
      expect(reply.status, cookie).toBe(401)
      expect(reply.body, cookie).toContain('"code":"no_refresh_token"')
    }
  })
})

test('forged X-Forwarded-* headers are no credentials', async () => {
  for (const lines of [
    ['X-Forwarded-For: 127.0.0.1'],
    ['X-Forwarded-For: ::1', 'X-Real-IP: 127.0.0.1', 'Forwarded: for=127.0.0.1;host=localhost;proto=https'],
    ['X-Forwarded-Host: localhost', 'X-Forwarded-Proto: https'],
    ['X-Forwarded-User: operator', 'X-Remote-User: operator', 'X-Forwarded-Email: alice@example.com'],
    ['X-Original-URL: /healthz', 'X-Rewrite-URL: /healthz', 'X-HTTP-Method-Override: GET'],
    [`X-Forwarded-For: ${'1.2.3.4, '.repeat(3_000)}1.2.3.4`],
    ['X-Forwarded-For: \u00ff', 'X-Forwarded-Host: evil.example/\u00ff', 'X-Forwarded-Proto: javascript'],
  ])
    expectRefused(await sendRaw(lines), lines.join(' | '), 'unauthorized')
})

test('the runtime still works, and its data is unchanged', async () => {
  const reply = await wire.send(`GET ${target}`, { headers: { authorization: `Bearer ${bootstrap}` } })
  expect((reply.body as { items: { name: string }[] }).items.map(({ name }) => name)).toEqual(['kept'])
})

import { describe, expect, test } from 'vitest'
import { freshName, makePlace, makeWorkspace } from './fixtures.ts'
import { expectRefusal, useServer } from './harness.ts'
import { unknownId } from './shapes.ts'

const wire = useServer()
const ulid = /^[0-9A-HJKMNP-TV-Z]{26}$/
const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const traceparent = `00-${traceId}-00f067aa0ba902b7-01`

describe('request ID and tracing', () => {
  test('S5.9-04: returns the request ID of the client in header and envelope', async () => {
    const headers = { 'x-request-id': 'client-made_1.2' }
    const fine = await wire.send('GET /healthz', { headers })
    expect(fine.headers['x-request-id']).toBe('client-made_1.2')
    const failed = await wire.refused('GET /nowhere', { headers }, 404, 'not_found')
    expect(failed.headers['x-request-id']).toBe('client-made_1.2')
    expect(failed.text).toContain('"requestId":"client-made_1.2"')
  })

  test('S5.9-04: creates a ULID for each request without an ID', async () => {
    const first = await wire.refused('GET /nowhere', {}, 404, 'not_found')
    const second = await wire.send('GET /healthz')
    expect(first.headers['x-request-id']).toMatch(ulid)
    expect(second.headers['x-request-id']).toMatch(ulid)
    expect(second.headers['x-request-id']).not.toBe(first.headers['x-request-id'])
  })

  test.each([
    ['empty', ''],
    ['over-long', 'x'.repeat(4_000)],
    ['with markup', '<script>alert(1)</script>'],
    ['with spaces and quotes', 'a "b" c'],
  ])('replaces a request ID that is %s', async (_, id) => {
    const reply = await wire.send('GET /healthz', { headers: { 'x-request-id': id } })
    expect(reply.status).toBe(200)
    expect(reply.headers['x-request-id']).toMatch(ulid)
  })

  test('uses the trace ID of a valid traceparent as request ID, and returns the header', async () => {
    const reply = await wire.send('GET /healthz', { headers: { traceparent } })
    expect(reply.headers['x-request-id']).toBe(traceId)
    expect(reply.headers.traceparent).toBe(traceparent)
  })

  test('prefers X-Request-Id to traceparent, and returns both', async () => {
    const reply = await wire.send('GET /healthz', { headers: { traceparent, 'x-request-id': 'mine' } })
    expect(reply.headers['x-request-id']).toBe('mine')
    expect(reply.headers.traceparent).toBe(traceparent)
  })

  test.each([
    ['a zero trace id', `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`],
    ['a zero parent id', `00-${traceId}-${'0'.repeat(16)}-01`],
    ['another version', `ff-${traceId}-00f067aa0ba902b7-01`],
    ['other characters', `00-${'G'.repeat(32)}-00f067aa0ba902b7-01`],
    ['a piece missing', `00-${traceId}-01`],
  ])('ignores a traceparent with %s', async (_, value) => {
    const reply = await wire.send('GET /healthz', { headers: { traceparent: value } })
    expect(reply.status).toBe(200)
    expect(reply.headers['x-request-id']).toMatch(ulid)
    expect(reply.headers.traceparent).not.toBe(value)
  })

  test('creates a traceparent with the flags 01', async () => {
    const reply = await wire.send('GET /healthz')
    expect(reply.headers.traceparent).toMatch(/^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-01$/)
  })
})

describe('response headers', () => {
  test.each([
    ['GET /', 200],
    ['GET /healthz', 200],
    ['GET /docs', 200],
    ['GET /api/v1/openapi.json', 200],
    ['GET /api/v1/workspaces', 200],
    ['GET /nowhere', 404],
    [`GET /api/v1/workspaces/${unknownId}`, 404],
  ])('%s has the security headers', async (line, status) => {
    const { headers, status: answered } = await wire.send(line)
    expect(answered).toBe(status)
    expect(headers['content-security-policy']).toMatch(/\S/)
    expect(headers['cross-origin-opener-policy']).toBe('same-origin')
    expect(headers['referrer-policy']).toBe('strict-origin-when-cross-origin')
    expect(headers['x-content-type-options']).toBe('nosniff')
    expect(headers['x-frame-options']).toBe('DENY')
    for (const power of ['camera', 'geolocation', 'microphone', 'payment', 'usb'])
      expect(headers['permissions-policy']).toContain(`${power}=()`)
  })

  test('omits headers for cross-origin reads, HSTS and cache validators', async () => {
    for (const line of ['GET /', 'GET /api/v1/workspaces', 'GET /nowhere']) {
      const { headers } = await wire.send(line, { headers: { origin: wire.serving.url } })
      expect(headers['access-control-allow-origin']).toBeUndefined()
      expect(headers['strict-transport-security']).toBeUndefined()
      expect(headers.etag).toBeUndefined()
    }
  })
})

describe('unknown routes', () => {
  test.each([
    'GET /nowhere',
    'GET /api/v1/nowhere',
    'GET /api/v2/workspaces',
    'POST /healthz',
    'PUT /api/v1/workspaces',
    'DELETE /api/v1/workspaces',
    `POST /api/v1/workspaces/${unknownId}`,
    'OPTIONS /api/v1/workspaces',
  ])('S7.3-not_found S7.1-01 S7.1-04: %s is 404 in the error envelope', async line => {
    await wire.refused(line, {}, 404, 'not_found')
  })
})

describe('request bodies', () => {
  const create = 'POST /api/v1/workspaces'

  test.each([
    ['cut short', '{"name": "x"'],
    ['no JSON', 'name=x'],
    ['two values', '{"name":"a"}{"name":"b"}'],
    ['empty', ''],
    ['NaN', '{"name": NaN}'],
  ])('S7.1-04 S7.3-validation_error: a body that is %s is 400', async (_, raw) => {
    await wire.refused(
      create,
      { raw, headers: { 'content-type': 'application/json' } },
      400,
      'validation_error',
    )
  })

  test.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'])(
    'a JSON body sent as %s is 400',
    async type => {
      const raw = JSON.stringify({ name: freshName('typed') })
      await wire.refused(create, { raw, headers: { 'content-type': type } }, 400, 'validation_error')
    },
  )

  test('a JSON body without a content type is 400', async () => {
    await wire.refused(
      create,
      { raw: JSON.stringify({ name: freshName('untyped') }) },
      400,
      'validation_error',
    )
  })

  test('accepts application/json with a charset', async () => {
    const raw = JSON.stringify({ name: freshName('charset') })
    const reply = await wire.send(create, {
      raw,
      headers: { 'content-type': 'application/json; charset=utf-8' },
    })
    expect(reply.status).toBe(201)
  })

  test('ignores unknown fields of a lenient body and names them in X-Workbase-Ignored', async () => {
    const reply = await wire.send(create, {
      json: { name: freshName('lenient'), colour: 'red', 'größe, m': 1 },
    })
    expect(reply.status).toBe(201)
    expect(ignored(reply.headers)).toEqual(['colour', 'größe, m'])
    expect(reply.body).not.toHaveProperty('colour')
  })

  test('omits X-Workbase-Ignored if no field was ignored', async () => {
    const reply = await wire.send(create, { json: { name: freshName('whole') } })
    expect(reply.headers['x-workbase-ignored']).toBeUndefined()
  })

  test('names at most ten ignored fields, each truncated to 64 bytes', async () => {
    const many = Object.fromEntries(Array.from({ length: 12 }, (_, index) => [`extra${index}`, index]))
    const named = await wire.send(create, { json: { name: freshName('many'), ...many } })
    expect(ignored(named.headers)).toHaveLength(10)
    const long = await wire.send(create, { json: { name: freshName('long'), ['x'.repeat(200)]: 1 } })
    expect(long.headers['x-workbase-ignored']).toBe('x'.repeat(64))
  })

  test('S7.3-13: a validation message begins with the path of the first invalid field', async () => {
    const { kb } = await makePlace(wire)
    await wire.refused(create, { json: { name: 5 } }, 400, 'validation_error', /^name: /)
    await wire.refused(
      `POST ${kb}/records`,
      { json: { records: [{ id: 'a', text: '' }] } },
      400,
      'validation_error',
      /^records\.0\.text: /,
    )
    await wire.refused('GET /api/v1/workspaces?limit=0', {}, 400, 'validation_error', /^limit: /)
  })

  test('validates the path, then the query, then the body', async () => {
    const bad = { json: { name: 5 } }
    await wire.refused(`PATCH /api/v1/workspaces/nope`, bad, 400, 'validation_error', /^workspaceId: /)
  })
})

describe('requests from web pages [security rule 3]', () => {
  test('rejects an unknown Host, except on probes', async () => {
    const headers = { host: 'rebound.example' }
    for (const line of ['GET /', 'GET /docs', 'GET /api/v1/workspaces', 'GET /nowhere'])
      await wire.refused(line, { headers }, 403, 'forbidden_origin')
    for (const path of ['/healthz', '/readyz', '/version'])
      expect((await wire.send(`GET ${path}`, { headers })).status).toBe(200)
  })

  test.each(['localhost', 'app.localhost', '127.0.0.1', '[::1]', '203.0.113.9:8787'])(
    'accepts the Host %s',
    async host => {
      expect((await wire.send('GET /api/v1/workspaces', { headers: { host } })).status).toBe(200)
    },
  )

  test.each([
    ['origin', 'https://evil.example'],
    ['origin', 'null'],
    ['sec-fetch-site', 'cross-site'],
    ['sec-fetch-site', 'same-site'],
  ])('S7.1-04: rejects a write with %s %s and stores nothing', async (header, value) => {
    const name = freshName('foreign')
    await wire.refused(
      'POST /api/v1/workspaces',
      { json: { name }, headers: { [header]: value } },
      403,
      'forbidden_origin',
    )
    const listed = await wire.items('/api/v1/workspaces?limit=200')
    expect(listed.map(item => item.name)).not.toContain(name)
  })

  test('accepts its own origin, same-origin, none, and a bearer token, which a page cannot send', async () => {
    const ours: Record<string, string>[] = [
      { origin: wire.serving.url },
      { 'sec-fetch-site': 'same-origin' },
      { 'sec-fetch-site': 'none' },
      { origin: 'https://evil.example', authorization: 'Bearer anything' },
    ]
    for (const headers of ours) {
      const reply = await wire.send('POST /api/v1/workspaces', { json: { name: freshName('own') }, headers })
      expect(reply.status, JSON.stringify(headers)).toBe(201)
    }
  })

  test('accepts a read with a foreign Origin, because no page can read the response', async () => {
    const reply = await wire.send('GET /api/v1/workspaces', { headers: { origin: 'https://evil.example' } })
    expect(reply.status).toBe(200)
    expect(reply.headers['access-control-allow-origin']).toBeUndefined()
  })
})

test('S1-06: ignores credentials if authentication is disabled', async () => {
  const workspace = await makeWorkspace(wire)
  for (const authorization of [
    'Bearer wb_live_aaaaaaaaaaaa_bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb',
    'Basic eDp5',
    'nonsense',
  ])
    expect((await wire.send(`GET ${workspace}`, { headers: { authorization } })).status).toBe(200)
})

test('S7.1-01: an error body has error as its only top-level field', async () => {
  const reply = await wire.send('GET /api/v1/workspaces?cursor=nonsense')
  expectRefusal(reply, 400, 'invalid_cursor', 'a cursor that is none')
  expect(Object.keys(reply.body as object)).toEqual(['error'])
})

/** Returns the names in the header without the spaces around the commas. */
function ignored(headers: Readonly<Record<string, string | undefined>>): string[] {
  return (headers['x-workbase-ignored'] ?? '')
    .split(',')
    .map(name => decodeURIComponent(name.trim()))
    .filter(Boolean)
}

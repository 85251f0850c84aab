import { describe, expect, test, vi } from 'vitest'
import { type Subject, verifiedContext } from '../../src/access/subject.ts'
import { errorCodes, errorDocs, errorRegistry, WbError } from '../../src/contract/errors.ts'
import { limits } from '../../src/contract/limits.ts'
import { createTestApp, errorOf, throwError } from './test-app.ts'

const workspace = '/api/v1/workspaces/8f2d3d8e-6f0e-4c0e-9d53-2f3a4b5c6d7e'

describe('error responses', () => {
  test('S7.1-01 S7.1-02: an error has only a status, code, message, request ID, hint and docs link', async () => {
    const { post } = createTestApp({ notes: { create: () => throwError('conflict', 'the name is taken') } })
    const response = await post({ name: 'x' })
    expect(response.status).toBe(409)
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(await response.json()).toEqual({
      error: {
        code: 'conflict',
        message: 'the name is taken',
        requestId: response.headers.get('x-request-id'),
        hint: errorRegistry.conflict.hint,
        docs: errorDocs('conflict'),
      },
    })
  })

  test.each(errorCodes)('S7.1-02 S7.1-03: %s is sent with its status, hint and docs anchor', async code => {
    const { post } = createTestApp({
      notes: { create: () => throwError(code) },
      settings: { strictErrors: false },
    })
    const response = await post({ name: 'x' })
    const { status, hint } = errorRegistry[code]
    expect(response.status).toBe(status)
    expect(await errorOf(response)).toMatchObject({
      code,
      hint,
      docs: `docs/errors.md#${code.replaceAll('_', '-')}`,
    })
  })

  test('hints and headers of an error override the defaults, and other facts are only logged', async () => {
    const failing = () => {
      throw new WbError('rate_limited', 'slow down', {
        hint: 'Wait.',
        headers: { 'Retry-After': '7' },
        key: 'ip',
      })
    }
    const { post, logged } = createTestApp({ notes: { create: failing } })
    const response = await post({ name: 'x' })
    expect(response.headers.get('retry-after')).toBe('7')
    const error = await errorOf(response)
    expect(error.hint).toBe('Wait.')
    expect(JSON.stringify(error)).not.toContain('ip')
    expect(logged.at(-1)).toMatchObject({
      level: 'info',
      facts: { key: 'ip', code: 'rate_limited', status: 429 },
    })
  })

  test('a 401 response explains how to authenticate', async () => {
    const { post } = createTestApp({ notes: { create: () => throwError('unauthorized') } })
    expect((await post({ name: 'x' })).headers.get('www-authenticate')).toBe('Bearer')
  })

  test('S7.1-04 S7.3-internal_error: an internal error reveals only its request ID, and the log has the details', async () => {
    const failing = () => {
      throw new TypeError('secret /home/someone/x.ts broke')
    }
    const { post, logged } = createTestApp({ notes: { create: failing } })
    const response = await post({ name: 'x' })
    expect(response.status).toBe(500)
    const text = await response.text()
    expect(text).not.toContain('someone')
    expect(JSON.parse(text).error).toMatchObject({
      code: 'internal_error',
      message: 'the runtime could not process this request',
    })
    const entry = logged.find(({ level }) => level === 'error')!
    expect(entry.facts.requestId).toBe(JSON.parse(text).error.requestId)
    expect((entry.facts.error as Error).message).toContain('broke')
  })

  test('any thrown value becomes an internal error', async () => {
    for (const thrown of [undefined, null, 'text', 5, {}]) {
      const { post } = createTestApp({
        notes: {
          create: () => {
            throw thrown
          },
        },
      })
      expect((await errorOf(await post({ name: 'x' }))).code).toBe('internal_error')
    }
  })

  test('redacts secrets in a message and truncates long messages', async () => {
    const { post } = createTestApp({
      notes: { create: () => throwError('conflict', `token=hunter2 ${'x'.repeat(600)}`) },
    })
    const { message } = await errorOf(await post({ name: 'x' }))
    expect(message).not.toContain('hunter2')
    expect(message).toHaveLength(500)
  })

  test.each([
    'GET /nowhere',
    'POST /healthz',
    'PUT /api/v1/notes',
    'OPTIONS /api/v1/notes',
    'GET /api/v1/notes/x/y',
  ])('S7.3-not_found: %s is 404 without CORS headers', async line => {
    const response = await createTestApp().send(line, { headers: { origin: 'http://evil.example' } })
    expect(response.status).toBe(404)
    expect((await errorOf(response)).code).toBe('not_found')
    expect([...response.headers.keys()].filter(name => name.startsWith('access-control'))).toEqual([])
  })

  test('HEAD returns the response of GET without a body', async () => {
    const { send } = createTestApp()
    const response = await send('HEAD /healthz')
    expect([response.status, await response.text()]).toEqual([200, ''])
    expect(response.headers.get('x-request-id')).toBeTruthy()
    expect((await send('HEAD /nowhere')).status).toBe(404)
  })
})

describe('declared replies', () => {
  test('removes a field that the reply does not declare', async () => {
    const { post } = createTestApp({
      notes: { create: () => ({ status: 201, body: { name: 'x', digest: 'secret' } as never }) },
    })
    expect(await (await post({ name: 'x' })).json()).toEqual({ name: 'x' })
  })

  test('reports a reply that does not match its declaration as an internal error, and logs the field', async () => {
    const { post, logged } = createTestApp({
      notes: { create: () => ({ status: 201, body: { name: 5 } as never }) },
    })
    expect((await errorOf(await post({ name: 'x' }))).code).toBe('internal_error')
    expect(String(logged.at(-1)!.facts.error)).toContain('name: ')
  })

  test('reports an undeclared status as an internal error', async () => {
    const { post } = createTestApp({ notes: { create: () => ({ status: 418, body: {} }) as never } })
    expect((await errorOf(await post({ name: 'x' }))).code).toBe('internal_error')
  })

  test('rejects an undeclared error code in tests, and sends it in production', async () => {
    const notes = { create: () => throwError('workspace_not_found') }
    expect((await createTestApp({ notes }).post({ name: 'x' })).status).toBe(500)
    expect(
      (await createTestApp({ notes, settings: { strictErrors: false } }).post({ name: 'x' })).status,
    ).toBe(404)
    expect(
      (await createTestApp({ notes: { create: () => throwError('not_found') } }).post({ name: 'x' })).status,
    ).toBe(404)
  })

  test('sends an empty reply without a body and content type', async () => {
    const response = await createTestApp().send(`DELETE ${workspace}`)
    expect([response.status, response.headers.get('content-type'), await response.text()]).toEqual([
      204,
      null,
      '',
    ])
  })

  test('adds headers of a reply, which override default headers', async () => {
    const headers = { Location: '/x', 'Content-Security-Policy': 'none' }
    const { send } = createTestApp({ notes: { page: () => ({ status: 200, body: '', headers }) } })
    const response = await send('GET /page')
    expect(response.headers.get('location')).toBe('/x')
    expect(response.headers.get('content-security-policy')).toBe('none')
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
  })
})

describe('access', () => {
  const subject: Subject = {
    id: 'key',
    label: null,
    type: 'apiKey',
    workspaceScopes: ['8f2d3d8e-6f0e-4c0e-9d53-2f3a4b5c6d7e'],
    scopes: ['read'],
    role: 'viewer',
    principalId: 'key',
    keyLifetimeMaxMs: null,
  }
  const auth = verifiedContext('apiKey', subject)

  test('checks the scope before the handler runs, and logs the missing scope', async () => {
    const run = vi.fn()
    const { send, logged } = createTestApp({ auth, notes: { delete: run } })
    const response = await send(`DELETE ${workspace}`)
    expect((await errorOf(response)).code).toBe('forbidden')
    expect(run).not.toHaveBeenCalled()
    expect(logged.at(-1)!.facts.requiredScope).toBe('manage:workspace')
  })

  test('rejects another workspace before its ID is validated', async () => {
    const response = await createTestApp({ auth }).send('GET /api/v1/workspaces/other/records/a')
    expect((await errorOf(response)).code).toBe('forbidden')
  })

  test('skips authentication for open routes', async () => {
    const { app } = createTestApp({ auth: undefined })
    expect((await app.fetch(new Request('http://localhost/healthz'))).status).toBe(200)
  })
})

describe('validation', () => {
  test('S7.3-13: validates params, then query, then body, and names the field of the first issue', async () => {
    const { send, post } = createTestApp()
    expect((await errorOf(await send('GET /api/v1/workspaces/nope/records/a'))).message).toMatch(
      /^workspaceId: /,
    )
    expect((await errorOf(await send('GET /api/v1/notes?limit=0'))).message).toMatch(/^limit: /)
    expect((await errorOf(await post({ name: '', tags: 5 }))).message).toMatch(/^name: /)
    expect((await errorOf(await post({ name: 'x', tags: [{ label: 'a' }, {}] }))).message).toMatch(
      /^tags\.1\.label: /,
    )
    expect((await errorOf(await post([]))).message).not.toMatch(/^:/)
  })

  test('an issue with a registered code returns that code', async () => {
    const error = await errorOf(await createTestApp().post({ name: 'x', metadata: { a: {} } }))
    expect(error).toMatchObject({
      code: 'invalid_metadata',
      message: expect.stringMatching(/^metadata\.a: /),
    })
  })

  test('rejects an unknown field of a strict body by name', async () => {
    const { send } = createTestApp()
    const response = await send('PATCH /api/v1/notes', {
      body: '{"colour":1}',
      headers: { 'content-type': 'application/json' },
    })
    expect((await errorOf(response)).message).toContain('colour')
  })

  test.each([
    ['limit=5&limit=6', 'limit'],
    ['cursor=%ZZ', 'cursor'],
    ['cursor=%00', 'cursor'],
    ['%E0%A4%A=1', 'the query'],
    ['limit=', 'limit'],
    ['limit=abc', 'limit'],
    ['limit=201', 'limit'],
    ['cursor=', 'cursor'],
  ])('rejects the query %s, and names %s', async (query, name) => {
    const response = await createTestApp().send(`GET /api/v1/notes?${query}`)
    expect(response.status).toBe(400)
    expect((await errorOf(response)).message).toContain(name)
  })

  test('decodes a query', async () => {
    const response = await createTestApp().send('GET /api/v1/notes?limit=200&cursor=a%2Bb+c%C3%A9&other=1')
    expect(await response.json()).toEqual({ limit: 200, cursor: 'a+b cé' })
  })

  test('decodes a path parameter once', async () => {
    const { send } = createTestApp()
    expect(await (await send(`GET ${workspace}/records/a%2Fb%2525`)).json()).toEqual({ recordId: 'a/b%25' })
  })

  test.each(['%ZZ', '%4', '%C3', '%00'])('rejects a path parameter %s', async id => {
    const response = await createTestApp().send(`GET ${workspace}/records/${id}`)
    expect((await errorOf(response)).code).toBe('validation_error')
  })

  test('a malformed escape in an unknown path is 400', async () => {
    expect((await createTestApp().send('GET /nowhere/%ZZ')).status).toBe(400)
  })
})

describe('ignored fields', () => {
  const ignored = async (body: unknown) => {
    const response = await createTestApp().post(body)
    expect(response.status).toBe(201)
    return response.headers.get('x-workbase-ignored')
  }

  test('lists unknown fields by path, and omits known and free-form ones', async () => {
    expect(
      await ignored({ name: 'x', tags: [{ label: 'a' }], payload: { free: { a: 1 } }, metadata: { b: 1 } }),
    ).toBe(null)
    expect(await ignored({ name: 'x', colour: 1, 'größe, m': 2 })).toBe('colour, gr%C3%B6%C3%9Fe%2C%20m')
    expect(
      await ignored({
        name: 'x',
        tags: [
          { label: 'a', x: 1 },
          { label: 'b', x: 1 },
        ],
      }),
    ).toBe('tags.*.x')
  })

  test('lists at most 10 fields, each truncated to 64 bytes between its escapes', async () => {
    const fields = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`f${at}`, 1]))
    expect((await ignored({ name: 'x', ...fields(10) }))!.split(', ')).toHaveLength(
      limits.ignoredFieldsReported,
    )
    expect((await ignored({ name: 'x', ...fields(11) }))!.split(', ')).toHaveLength(
      limits.ignoredFieldsReported,
    )
    expect(await ignored({ name: 'x', ['y'.repeat(64)]: 1 })).toBe('y'.repeat(limits.ignoredFieldBytes))
    expect(await ignored({ name: 'x', ['y'.repeat(65)]: 1 })).toBe('y'.repeat(64))
    expect(await ignored({ name: 'x', ['é'.repeat(11)]: 1 })).toBe('%C3%A9'.repeat(10))
  })

  test('includes fields that a handler reports', async () => {
    const create = () => ({ status: 201, body: { name: 'x' }, ignored: ['rerank'] }) as const
    const response = await createTestApp({ notes: { create } as never }).post({ name: 'x', colour: 1 })
    expect(response.headers.get('x-workbase-ignored')).toBe('colour, rerank')
  })
})

describe('request IDs and response headers', () => {
  const idOf = async (headers: Record<string, string>) =>
    (await createTestApp().send('GET /healthz', { headers })).headers.get('x-request-id')

  test('keeps a valid ID of 1 to 128 characters, and replaces any other', async () => {
    expect(await idOf({ 'x-request-id': 'a' })).toBe('a')
    expect(await idOf({ 'x-request-id': 'aA0._:-'.padEnd(128, 'x') })).toHaveLength(128)
    expect(await idOf({ 'x-request-id': 'x'.repeat(129) })).toMatch(/^[0-9A-Z]{26}$/)
    expect(await idOf({ 'x-request-id': 'a b' })).toMatch(/^[0-9A-Z]{26}$/)
  })

  test('the name of the header is configurable', async () => {
    const { send } = createTestApp({ settings: { requestIdHeader: 'X-Correlation-Id' } })
    const response = await send('GET /healthz', { headers: { 'x-correlation-id': 'mine' } })
    expect(response.headers.get('x-correlation-id')).toBe('mine')
    expect(response.headers.get('x-request-id')).toBe(null)
  })

  test('IDs and trace IDs are unique', async () => {
    const { send } = createTestApp()
    const seen = new Set<string>()
    for (let at = 0; at < 2_000; at++) {
      const { headers } = await send('GET /healthz')
      seen.add(headers.get('x-request-id')!).add(headers.get('traceparent')!)
    }
    expect(seen.size).toBe(4_000)
  })

  test('sends Strict-Transport-Security in production only', async () => {
    const hstsHeader = async (production: boolean) =>
      (await createTestApp({ settings: { production } }).send('GET /healthz')).headers.get(
        'strict-transport-security',
      )
    expect(await hstsHeader(false)).toBe(null)
    expect(await hstsHeader(true)).toBe('max-age=15552000; includeSubDomains')
  })
})

describe('requests from browsers', () => {
  const outside = { peer: { encrypted: false } }

  test('rejects a rebound name except at the liveness endpoint, and does not check requests in process', async () => {
    const { send } = createTestApp()
    const headers = { host: 'evil.example' }
    expect((await errorOf(await send('GET /api/v1/notes', { headers, ...outside }))).code).toBe(
      'forbidden_origin',
    )
    expect((await send('GET /nowhere', { headers, ...outside })).status).toBe(403)
    expect((await send('GET /healthz', { headers, ...outside })).status).toBe(200)
    expect((await send('GET /api/v1/notes', { headers })).status).toBe(200)
  })

  test('rejects a cross-site multipart request without reading its body', async () => {
    const create = vi.fn()
    const { send } = createTestApp({ notes: { create } })
    const body = new FormData()
    body.set('name', 'x')
    const headers = { host: 'localhost:8787', origin: 'http://evil.example', 'sec-fetch-site': 'cross-site' }
    const response = await send('POST /api/v1/notes', { body, headers, ...outside })
    expect((await errorOf(response)).code).toBe('forbidden_origin')
    expect(create).not.toHaveBeenCalled()
  })

  test('rejects a form of the same origin because of its content type', async () => {
    const headers = { host: 'localhost:8787', origin: 'http://localhost:8787', 'content-type': 'text/plain' }
    const response = await createTestApp().send('POST /api/v1/notes', {
      body: '{"name":"x"}',
      headers,
      ...outside,
    })
    expect((await errorOf(response)).code).toBe('validation_error')
  })
})

describe('draining', () => {
  test('S7.3-draining S7.3-10: rejects new requests, completes those in progress, and still reports liveness', async () => {
    let release = () => {}
    const held = new Promise<void>(resolve => {
      release = resolve
    })
    const create = async () => {
      await held
      return { status: 201, body: { name: 'late' } } as const
    }
    const { app, send, post } = createTestApp({ notes: { create } })
    const first = post({ name: 'x' })
    await expect.poll(() => app.inFlight === 1).toBe(true)
    app.drain()
    const idle = app.idle()
    const refused = await send('GET /api/v1/notes')
    expect([refused.status, (await errorOf(refused)).code]).toEqual([503, 'draining'])
    expect(refused.headers.get('connection')).toBe('close')
    expect((await send('GET /readyz')).status).toBe(503)
    expect((await send('GET /nowhere')).status).toBe(503)
    expect((await send('GET /healthz')).status).toBe(200)
    release()
    expect((await first).status).toBe(201)
    await idle
    expect(app.inFlight).toBe(0)
  })
})

describe('the log', () => {
  test('logs responses at debug, rejections at info, and failed dependencies at warn', async () => {
    const { post, send, logged } = createTestApp({
      notes: { create: () => throwError('control_plane_unavailable') },
    })
    await send('GET /healthz', { headers: { 'x-request-id': 'mine' } })
    await post({ name: '' })
    await post({ name: 'x' })
    expect(logged.map(({ level }) => level)).toEqual(['debug', 'info', 'warn'])
    expect(logged[0]!.facts).toMatchObject({
      requestId: 'mine',
      method: 'GET',
      route: '/healthz',
      status: 200,
    })
    expect(logged[0]!.facts.durationMs).toBeTypeOf('number')
  })
})

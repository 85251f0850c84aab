import { describe, expect, test, vi } from 'vitest'
import { type Subject, verifiedContext } from '../../src/access/subject.ts'
import { errorCodes, errorDocs, errorRegistry, WbError } from '../../src/contract/errors.ts'
import { limits } from '../../src/contract/limits.ts'
import { errorOf, refusal, stage } from './stage.ts'

const workspace = '/api/v1/workspaces/8f2d3d8e-6f0e-4c0e-9d53-2f3a4b5c6d7e'

describe('the envelope', () => {
  test('S7.1-01 S7.1-02: a refusal is status, code, message, request id, hint and docs, and nothing else', async () => {
    const { post } = stage({ notes: { create: () => refusal('conflict', 'the name is taken') } })
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

  test.each(errorCodes)('S7.1-02 S7.1-03: %s leaves with its status, its hint and its anchor', async code => {
    const { post } = stage({ notes: { create: () => refusal(code) }, settings: { strictErrors: false } })
    const response = await post({ name: 'x' })
    const { status, hint } = errorRegistry[code]
    expect(response.status).toBe(status)
    expect(await errorOf(response)).toMatchObject({
      code,
      hint,
      docs: `docs/errors.md#${code.replaceAll('_', '-')}`,
    })
  })

  test('a hint and headers among the facts replace and join; other facts stay in the log', async () => {
    const failing = () => {
      throw new WbError('rate_limited', 'slow down', {
        hint: 'Wait.',
        headers: { 'Retry-After': '7' },
        key: 'ip',
      })
    }
    const { post, logged } = stage({ notes: { create: failing } })
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

  test('401 says how to authenticate', async () => {
    const { post } = stage({ notes: { create: () => refusal('unauthorized') } })
    expect((await post({ name: 'x' })).headers.get('www-authenticate')).toBe('Bearer')
  })

  test('S7.1-04 S7.3-internal_error: a defect says nothing but its request id, and the log says all', async () => {
    const failing = () => {
      throw new TypeError('secret /home/someone/x.ts broke')
    }
    const { post, logged } = stage({ notes: { create: failing } })
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

  test('what is thrown may be anything', async () => {
    for (const thrown of [undefined, null, 'text', 5, {}]) {
      const { post } = stage({
        notes: {
          create: () => {
            throw thrown
          },
        },
      })
      expect((await errorOf(await post({ name: 'x' }))).code).toBe('internal_error')
    }
  })

  test('secrets in a message are taken out and long messages cut', async () => {
    const { post } = stage({
      notes: { create: () => refusal('conflict', `token=hunter2 ${'x'.repeat(600)}`) },
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
  ])('S7.3-not_found: %s is 404, and no CORS answer is given', async line => {
    const response = await stage().send(line, { headers: { origin: 'http://evil.example' } })
    expect(response.status).toBe(404)
    expect((await errorOf(response)).code).toBe('not_found')
    expect([...response.headers.keys()].filter(name => name.startsWith('access-control'))).toEqual([])
  })

  test('HEAD is GET without a body', async () => {
    const { send } = stage()
    const response = await send('HEAD /healthz')
    expect([response.status, await response.text()]).toEqual([200, ''])
    expect(response.headers.get('x-request-id')).toBeTruthy()
    expect((await send('HEAD /nowhere')).status).toBe(404)
  })
})

describe('what a route may answer', () => {
  test('a field that the reply does not declare cannot leak', async () => {
    const { post } = stage({
      notes: { create: () => ({ status: 201, body: { name: 'x', digest: 'secret' } as never }) },
    })
    expect(await (await post({ name: 'x' })).json()).toEqual({ name: 'x' })
  })

  test('a reply that is not as declared is an internal error, logged with its place', async () => {
    const { post, logged } = stage({ notes: { create: () => ({ status: 201, body: { name: 5 } as never }) } })
    expect((await errorOf(await post({ name: 'x' }))).code).toBe('internal_error')
    expect(String(logged.at(-1)!.facts.error)).toContain('name: ')
  })

  test('a status that is not declared is an internal error', async () => {
    const { post } = stage({ notes: { create: () => ({ status: 418, body: {} }) as never } })
    expect((await errorOf(await post({ name: 'x' }))).code).toBe('internal_error')
  })

  test('in tests, a code that the route did not declare is a failure; in service it passes', async () => {
    const notes = { create: () => refusal('workspace_not_found') }
    expect((await stage({ notes }).post({ name: 'x' })).status).toBe(500)
    expect((await stage({ notes, settings: { strictErrors: false } }).post({ name: 'x' })).status).toBe(404)
    expect((await stage({ notes: { create: () => refusal('not_found') } }).post({ name: 'x' })).status).toBe(
      404,
    )
  })

  test('an empty reply has no body and no content type', async () => {
    const response = await stage().send(`DELETE ${workspace}`)
    expect([response.status, response.headers.get('content-type'), await response.text()]).toEqual([
      204,
      null,
      '',
    ])
  })

  test('headers of an answer join, and replace those of every response', async () => {
    const headers = { Location: '/x', 'Content-Security-Policy': 'none' }
    const { send } = stage({ notes: { page: () => ({ status: 200, body: '', headers }) } })
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

  test('the gate stands before the handler, and names the missing scope in the log', async () => {
    const run = vi.fn()
    const { send, logged } = stage({ auth, notes: { delete: run } })
    const response = await send(`DELETE ${workspace}`)
    expect((await errorOf(response)).code).toBe('forbidden')
    expect(run).not.toHaveBeenCalled()
    expect(logged.at(-1)!.facts.requiredScope).toBe('manage:workspace')
  })

  test('another workspace is refused before its id is validated', async () => {
    const response = await stage({ auth }).send('GET /api/v1/workspaces/other/records/a')
    expect((await errorOf(response)).code).toBe('forbidden')
  })

  test('open routes take no auth step', async () => {
    const { app } = stage({ auth: undefined })
    expect((await app.fetch(new Request('http://localhost/healthz'))).status).toBe(200)
  })
})

describe('validation', () => {
  test('S7.3-13: params, then query, then body; the first issue names its field', async () => {
    const { send, post } = stage()
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

  test('an issue that names a registered code answers that code', async () => {
    const error = await errorOf(await stage().post({ name: 'x', metadata: { a: {} } }))
    expect(error).toMatchObject({
      code: 'invalid_metadata',
      message: expect.stringMatching(/^metadata\.a: /),
    })
  })

  test('an unknown field of a strict body is refused by name', async () => {
    const { send } = stage()
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
  ])('the query %s is refused and names %s', async (query, name) => {
    const response = await stage().send(`GET /api/v1/notes?${query}`)
    expect(response.status).toBe(400)
    expect((await errorOf(response)).message).toContain(name)
  })

  test('a query is decoded', async () => {
    const response = await stage().send('GET /api/v1/notes?limit=200&cursor=a%2Bb+c%C3%A9&other=1')
    expect(await response.json()).toEqual({ limit: 200, cursor: 'a+b cé' })
  })

  test('a path parameter is decoded, once', async () => {
    const { send } = stage()
    expect(await (await send(`GET ${workspace}/records/a%2Fb%2525`)).json()).toEqual({ recordId: 'a/b%25' })
  })

  test.each(['%ZZ', '%4', '%C3', '%00'])('a path parameter %s is refused', async id => {
    const response = await stage().send(`GET ${workspace}/records/${id}`)
    expect((await errorOf(response)).code).toBe('validation_error')
  })

  test('a broken escape in an unknown path is 400', async () => {
    expect((await stage().send('GET /nowhere/%ZZ')).status).toBe(400)
  })
})

describe('ignored fields', () => {
  const ignored = async (body: unknown) => {
    const response = await stage().post(body)
    expect(response.status).toBe(201)
    return response.headers.get('x-workbase-ignored')
  }

  test('unknown fields are named with their place, known and free ones are not', async () => {
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

  test('at most 10 are named, each cut at 64 bytes between its escapes', async () => {
    const fields = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`f${at}`, 1]))
    expect((await ignored({ name: 'x', ...fields(10) }))!.split(', ')).toHaveLength(limits.ignoredFieldsReported)
    expect((await ignored({ name: 'x', ...fields(11) }))!.split(', ')).toHaveLength(limits.ignoredFieldsReported)
    expect(await ignored({ name: 'x', ['y'.repeat(64)]: 1 })).toBe('y'.repeat(limits.ignoredFieldBytes))
    expect(await ignored({ name: 'x', ['y'.repeat(65)]: 1 })).toBe('y'.repeat(64))
    expect(await ignored({ name: 'x', ['é'.repeat(11)]: 1 })).toBe('%C3%A9'.repeat(10))
  })

  test('those that a handler names are added', async () => {
    const create = () => ({ status: 201, body: { name: 'x' }, ignored: ['rerank'] }) as const
    const response = await stage({ notes: { create } as never }).post({ name: 'x', colour: 1 })
    expect(response.headers.get('x-workbase-ignored')).toBe('colour, rerank')
  })
})

describe('identity of a request', () => {
  const idOf = async (headers: Record<string, string>) =>
    (await stage().send('GET /healthz', { headers })).headers.get('x-request-id')

  test('an id of 1 to 128 characters is kept, a longer or stranger one replaced', async () => {
    expect(await idOf({ 'x-request-id': 'a' })).toBe('a')
    expect(await idOf({ 'x-request-id': 'aA0._:-'.padEnd(128, 'x') })).toHaveLength(128)
    expect(await idOf({ 'x-request-id': 'x'.repeat(129) })).toMatch(/^[0-9A-Z]{26}$/)
    expect(await idOf({ 'x-request-id': 'a b' })).toMatch(/^[0-9A-Z]{26}$/)
  })

  test('the header may have another name', async () => {
    const { send } = stage({ settings: { requestIdHeader: 'X-Correlation-Id' } })
    const response = await send('GET /healthz', { headers: { 'x-correlation-id': 'mine' } })
    expect(response.headers.get('x-correlation-id')).toBe('mine')
    expect(response.headers.get('x-request-id')).toBe(null)
  })

  test('ids and trace ids do not repeat', async () => {
    const { send } = stage()
    const seen = new Set<string>()
    for (let at = 0; at < 2_000; at++) {
      const { headers } = await send('GET /healthz')
      seen.add(headers.get('x-request-id')!).add(headers.get('traceparent')!)
    }
    expect(seen.size).toBe(4_000)
  })

  test('HTTPS is demanded of browsers in production only', async () => {
    const asked = async (production: boolean) =>
      (await stage({ settings: { production } }).send('GET /healthz')).headers.get(
        'strict-transport-security',
      )
    expect(await asked(false)).toBe(null)
    expect(await asked(true)).toBe('max-age=15552000; includeSubDomains')
  })
})

describe('pages are no clients', () => {
  const outside = { peer: { encrypted: false } }

  test('a rebound name is refused; liveness answers it; requests of this process are not asked', async () => {
    const { send } = stage()
    const headers = { host: 'evil.example' }
    expect((await errorOf(await send('GET /api/v1/notes', { headers, ...outside }))).code).toBe(
      'forbidden_origin',
    )
    expect((await send('GET /nowhere', { headers, ...outside })).status).toBe(403)
    expect((await send('GET /healthz', { headers, ...outside })).status).toBe(200)
    expect((await send('GET /api/v1/notes', { headers })).status).toBe(200)
  })

  test('a cross-site multipart post is refused, and its body is not read', async () => {
    const create = vi.fn()
    const { send } = stage({ notes: { create } })
    const body = new FormData()
    body.set('name', 'x')
    const headers = { host: 'localhost:8787', origin: 'http://evil.example', 'sec-fetch-site': 'cross-site' }
    const response = await send('POST /api/v1/notes', { body, headers, ...outside })
    expect((await errorOf(response)).code).toBe('forbidden_origin')
    expect(create).not.toHaveBeenCalled()
  })

  test('a form of the own origin is refused for its type', async () => {
    const headers = { host: 'localhost:8787', origin: 'http://localhost:8787', 'content-type': 'text/plain' }
    const response = await stage().send('POST /api/v1/notes', { body: '{"name":"x"}', headers, ...outside })
    expect((await errorOf(response)).code).toBe('validation_error')
  })
})

describe('draining', () => {
  test('S7.3-draining S7.3-10: new requests are refused, the one in flight ends, liveness answers', async () => {
    let release = () => {}
    const held = new Promise<void>(resolve => {
      release = resolve
    })
    const create = async () => {
      await held
      return { status: 201, body: { name: 'late' } } as const
    }
    const { app, send, post } = stage({ notes: { create } })
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
  test('an answer is debug, a refusal info, a dependency that failed a warning', async () => {
    const { post, send, logged } = stage({ notes: { create: () => refusal('control_plane_unavailable') } })
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

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'undici'
import { afterAll, describe, expect, test } from 'vitest'
import { anyText, exactly, matching } from './exactly.ts'
import { type Serving, useServer, type Wire } from './harness.ts'

const home = mkdtempSync(join(tmpdir(), 'wb-rate-'))
afterAll(() => rmSync(home, { recursive: true, force: true }))

/** Writes a configuration as a JSON file, which is valid YAML. */
function configured(name: string, runtime: object): { args: string[] } {
  const path = join(home, `${name}.yaml`)
  writeFileSync(path, JSON.stringify({ version: 1, runtime }))
  return { args: ['--config', path] }
}

const hourMs = 3_600_000
/** Matches the remaining tokens of a small bucket; seconds lost on a slow machine do not matter. */
const told = (limit: number, remaining: number, seconds: number) => [
  limit,
  remaining,
  expect.closeTo(seconds, -2),
]
const small = { capacity: 5, authCapacity: 2, windowMs: hourMs }

interface Told {
  readonly status: number
  /** Limit, remaining, reset. */
  readonly left: readonly (number | undefined)[]
  readonly retryAfter: number | undefined
  readonly body: unknown
}

/** Sends one request from a loopback address. */
async function from(
  address: string,
  wire: Wire & { serving: Serving },
  line: string,
  headers: Record<string, string> = {},
): Promise<Told> {
  const [method, path] = line.split(' ') as ['GET', string]
  const client = new Client(wire.serving.url, { localAddress: address })
  try {
    const answer = await client.request({ method, path, headers })
    const text = await answer.body.text()
    const number = (name: string) => {
      const value = answer.headers[name]
      return value === undefined ? undefined : Number(value)
    }
    return {
      status: answer.statusCode,
      left: ['limit', 'remaining', 'reset'].map(name => number(`x-ratelimit-${name}`)),
      retryAfter: number('retry-after'),
      body: text.startsWith('{') ? JSON.parse(text) : undefined,
    }
  } finally {
    await client.close()
  }
}

describe('a small bucket', () => {
  const wire = useServer(configured('small', { rateLimit: small }))
  const local = (line: string, headers?: Record<string, string>) => from('127.0.0.1', wire, line, headers)

  test('S8-06 S8-08 S7.3-rate_limited: is exhausted after its number of requests, regardless of the route', async () => {
    expect(await local('GET /api/v1/workspaces')).toMatchObject({ status: 200, left: told(5, 4, 720) })
    expect(await local('GET /api/v1/openapi.json')).toMatchObject({ status: 200, left: told(5, 3, 1_440) })
    expect(await local('GET /api/v1/nowhere')).toMatchObject({ status: 404, left: told(5, 2, 2_160) })
    expect(await local('POST /api/v1/workspaces')).toMatchObject({ status: 400, left: told(5, 1, 2_880) })
    expect(await local('GET /auth/config')).toMatchObject({ status: 200, left: told(5, 0, 3_600) })
    const refused = await local('GET /api/v1/workspaces')
    expect(refused).toMatchObject({ status: 429, left: told(5, 0, 3_600) })
    expect(refused.retryAfter).toBeGreaterThan(700)
    expect(refused.retryAfter).toBeLessThanOrEqual(720)
    const error = {
      code: 'rate_limited',
      message: anyText,
      requestId: anyText,
      hint: matching(/Retry-After/),
      docs: 'docs/errors.md#rate-limited',
    }
    exactly(refused.body, { error }, 'rate_limited')
    for (const line of [
      'POST /api/v1/workspaces',
      'HEAD /api/v1/workspaces',
      'GET /auth/me',
      'PUT /api/v1/x',
    ])
      expect((await local(line)).status, line).toBe(429)
  })

  test('is shared by new connections, credentials and forged forwarding headers', async () => {
    for (const headers of [
      { authorization: 'Bearer x' },
      { cookie: 'wb_session=x' },
      { 'x-forwarded-for': '192.0.2.1' },
      { 'x-real-ip': '192.0.2.1' },
      { forwarded: 'for=192.0.2.1' },
    ] as Record<string, string>[])
      expect((await local('GET /api/v1/workspaces', headers)).status, JSON.stringify(headers)).toBe(429)
  })

  test('S8-09 S8-16: does not affect other addresses, and there is no global limit', async () => {
    for (let at = 2; at <= 21; at++)
      expect(await from(`127.0.0.${at}`, wire, 'GET /api/v1/workspaces')).toMatchObject({
        status: 200,
        left: told(5, 4, 720),
      })
    expect((await local('GET /api/v1/workspaces')).status).toBe(429)
  })

  test('S8-07: is separate from the bucket for sign-in', async () => {
    expect(await local('GET /auth/login')).toMatchObject({ status: 404, left: told(2, 1, 1_800) })
    expect(await local('POST /auth/device/authorize')).toMatchObject({ status: 404, left: told(2, 0, 3_600) })
    for (const line of ['GET /auth/login', 'GET /auth/callback', 'POST /auth/device/token'])
      expect(await local(line), line).toMatchObject({ status: 429, left: told(2, 0, 3_600) })
    expect((await from('127.0.0.2', wire, 'GET /auth/login')).status).toBe(404)
  })

  test('does not apply to operational routes', async () => {
    for (const path of ['/healthz', '/readyz', '/version', '/features', '/docs', '/error-codes'])
      expect(await local(`GET ${path}`)).toMatchObject({
        status: 200,
        left: [undefined, undefined, undefined],
      })
  })
})

describe('without a limit', () => {
  const wire = useServer(configured('off', { rateLimit: { enabled: false, capacity: 1 } }))

  test('no request is rejected and no rate-limit headers are sent', async () => {
    for (let at = 0; at < 5; at++)
      expect(await from('127.0.0.1', wire, 'GET /api/v1/workspaces')).toMatchObject({
        status: 200,
        left: [undefined, undefined, undefined],
      })
  })
})

describe('over time', () => {
  const wire = useServer(configured('short', { rateLimit: { capacity: 1, windowMs: 4_000 } }))

  test('S8-09: the bucket gains a token after the advertised seconds', async () => {
    const list = () => from('127.0.0.1', wire, 'GET /api/v1/workspaces')
    expect((await list()).status).toBe(200)
    const { status, retryAfter } = await list()
    expect(status).toBe(429)
    expect([2, 3, 4]).toContain(retryAfter)
    const startedAt = Date.now()
    await expect.poll(async () => (await list()).status === 200, { timeout: 20_000, interval: 50 }).toBe(true)
    const tookMs = Date.now() - startedAt
    expect(tookMs).toBeGreaterThan(1_000)
  })
})

describe('with default settings on loopback', () => {
  const wire = useServer()

  test('allows 60,000 requests per minute from this machine, 600 through a proxy, and 120 for sign-in', async () => {
    const local = (line: string, headers?: Record<string, string>) => from('127.0.0.1', wire, line, headers)
    expect((await local('GET /api/v1/workspaces')).left).toEqual([60_000, 59_999, 1])
    const forwarded = { 'x-forwarded-for': '192.0.2.1' }
    expect((await local('GET /api/v1/workspaces', forwarded)).left).toEqual([600, 599, 1])
    expect((await local('GET /auth/login')).left).toEqual([120, 119, 1])
  })
})

describe('behind a trusted proxy', () => {
  const wire = useServer(
    configured('proxied', { trustProxyHeaders: ['127.0.0.3', '192.0.2.0/24'], rateLimit: small }),
  )
  const list = 'GET /api/v1/workspaces'
  const via = (proxy: string, hops: string) => from(proxy, wire, list, { 'x-forwarded-for': hops })

  test('S8-09: each client has its own bucket, identified from the right of the header', async () => {
    expect((await via('127.0.0.3', '198.51.100.1')).left).toEqual(told(5, 4, 720))
    expect((await via('127.0.0.3', '9.9.9.9, 198.51.100.1')).left).toEqual(told(5, 3, 1_440))
    expect((await via('127.0.0.3', '198.51.100.1, 192.0.2.7')).left).toEqual(told(5, 2, 2_160))
    expect((await via('127.0.0.3', '198.51.100.2')).left).toEqual(told(5, 4, 720))
    expect((await via('127.0.0.3', '2001:db8::1')).left).toEqual(told(5, 4, 720))
    expect((await via('127.0.0.3', '2001:db8::ffff')).left).toEqual(told(5, 3, 1_440))
    expect((await via('127.0.0.3', 'nonsense')).left).toEqual(told(5, 4, 720))
    expect((await from('127.0.0.3', wire, list)).left).toEqual(told(5, 3, 1_440))
  })

  test('forged headers from another address have no effect', async () => {
    const left = []
    for (let at = 1; at <= 6; at++) left.push((await via('127.0.0.4', `198.51.100.${at + 10}`)).left[1])
    expect(left).toEqual([4, 3, 2, 1, 0, 0])
    expect((await via('127.0.0.3', '198.51.100.11')).left).toEqual(told(5, 4, 720))
  })
})

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'undici'
import { afterAll, describe, expect, test } from 'vitest'
import { audience, clients, startProvider } from '../harness/identity-provider.ts'
import { type Reply, type Row, type Serving, useServer, type Wire } from './harness.ts'

const home = mkdtempSync(join(tmpdir(), 'wb-origin-'))
const provider = await startProvider({ untilClosed: true, redirectUris: [] })
afterAll(async () => {
  await provider.close()
  rmSync(home, { recursive: true, force: true })
})

const bootstrap = 'bootstrap-token-of-a-test-of-48-characters-long'
const env = { BOOTSTRAP: bootstrap, SESSION: 'session-secret-of-a-test-of-32-bytes-and-more' }
const auth = {
  mode: 'any',
  bootstrapTokenRef: 'env:BOOTSTRAP',
  oidc: {
    issuer: provider.issuer,
    audience,
    client: { clientId: clients.public.id, sessionSecretRef: 'env:SESSION' },
  },
}

/** Writes a configuration as a JSON file, which is valid YAML. */
function configured(name: string, runtime: object, more: object = { auth }) {
  const path = join(home, `${name}.yaml`)
  writeFileSync(path, JSON.stringify({ version: 1, runtime, ...more }))
  return { env, args: ['--config', path] }
}

type Headers = Record<string, string>

const publicOrigin = 'https://wb.example.com'
const session = { cookie: 'wb_session=v2.x.y.z' }
const bearer = { authorization: `Bearer ${bootstrap}` }
const logout = 'POST /auth/logout'
const workspaces = '/api/v1/workspaces'

async function csrfRecords(wire: Wire): Promise<Row[]> {
  const reply = await wire.send('GET /api/v1/audit?action=auth.csrf_rejected', { headers: bearer })
  expect(reply.status, reply.text).toBe(200)
  return (reply.body as { items: Row[] }).items
}

/** Sends a request from a loopback address. */
async function from(address: string, serving: Serving, line: string, headers: Headers) {
  const [method, path] = line.split(' ') as ['GET', string]
  const client = new Client(serving.url, { localAddress: address })
  try {
    const answer = await client.request({ method, path, headers })
    await answer.body.dump()
    return { status: answer.statusCode, headers: answer.headers }
  } finally {
    await client.close()
  }
}

describe('with publicOrigin and browser login', () => {
  const wire = useServer(configured('public', { publicOrigin }))
  const change = (line: string, headers: Headers): Promise<Reply> =>
    wire.send(line, line === logout ? { headers } : { headers, json: { name: 'planted' } })

  test('S7.3-11: accepts a matching Origin or Referer, with and without a cookie', async () => {
    for (const claimed of [{ origin: publicOrigin }, { referer: `${publicOrigin}/ui/keys?x=1` }] as Headers[])
      for (const borne of [session, {}] as Headers[])
        expect((await change(logout, { ...claimed, ...borne })).status, JSON.stringify(claimed)).toBe(200)
  })

  test('S7.3-11 S7.3-forbidden_origin: rejects another origin, and a cookie without an origin', async () => {
    const before = await wire.get(workspaces)
    for (const headers of [
      { origin: 'https://evil.example' },
      { origin: 'https://wb.example.com.evil.example' },
      { origin: 'http://wb.example.com' },
      { origin: 'https://wb.example.com:8443' },
      { origin: 'null' },
      { referer: 'https://evil.example/https://wb.example.com/' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site', ...session },
      { origin: 'https://evil.example', referer: `${publicOrigin}/`, ...session },
      { origin: wire.serving.url, ...session },
      session,
    ] as Headers[])
      for (const line of [logout, 'POST /auth/refresh', `POST ${workspaces}`]) {
        const reply = await change(line, headers)
        const about = `${line} ${JSON.stringify(headers)} → ${reply.text}`
        expect(reply.status, about).toBe(403)
        expect(reply.body, about).toMatchObject({ error: { code: 'forbidden_origin' } })
        expect(reply.headers['set-cookie'], about).toBeUndefined()
      }
    expect(await wire.get(workspaces)).toEqual(before)
  })

  test('accepts a bearer token from any origin, and a client without origin headers', async () => {
    const made = await change(`POST ${workspaces}`, { ...bearer, origin: 'https://evil.example' })
    expect(made.status, made.text).toBe(201)
    expect((await change(logout, {})).status).toBe(200)
  })

  test('does not check the origin of reads', async () => {
    const reply = await wire.send(`GET ${workspaces}`, { headers: { origin: 'https://evil.example' } })
    expect(reply.status).toBe(200)
    expect(Object.keys(reply.headers).filter(name => name.startsWith('access-control'))).toEqual([])
  })

  test('S7.3-forbidden_origin: audits each rejected request with method, path and reason, without the query', async () => {
    const before = (await csrfRecords(wire)).length
    await change(`${logout}?token=canary`, { origin: 'https://evil.example' })
    await expect.poll(async () => (await csrfRecords(wire)).length > before, { timeout: 10_000 }).toBe(true)
    const [record] = await csrfRecords(wire)
    expect(record).toMatchObject({
      action: 'auth.csrf_rejected',
      outcome: 'failure',
      subject: { type: 'anonymous', id: null },
      workspaceId: null,
      details: { reason: 'POST /auth/logout: the Origin is https://evil.example' },
    })
  })

  test('S2.2-28 S2.5-04: publicOrigin determines the callback URL and the cookie, regardless of headers', async () => {
    const forged = { 'x-forwarded-proto': 'http', 'x-forwarded-host': 'evil.example' }
    const login = await wire.send('GET /auth/login', { headers: forged })
    expect(new URL(login.headers.location!).searchParams.get('redirect_uri')).toBe(
      `${publicOrigin}/auth/callback`,
    )
    expect((await change(logout, forged)).headers['set-cookie']).toMatch(/; Secure/)
  })
})

describe('S2.2-28 S2.5-04: behind a trusted proxy', () => {
  const wire = useServer(configured('proxied', { trustProxyHeaders: ['127.0.0.3'] }))
  const told = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'wb.example.com' }
  const seenFrom = async (address: string, headers: Headers) => {
    const login = await from(address, wire.serving, 'GET /auth/login', headers)
    const out = await from(address, wire.serving, logout, headers)
    return {
      callback: new URL(String(login.headers.location)).searchParams.get('redirect_uri'),
      secure: /; Secure/.test(String(out.headers['set-cookie'])),
    }
  }

  test('the forwarded scheme and host determine the callback URL and the cookie', async () => {
    expect(await seenFrom('127.0.0.3', told)).toEqual({
      callback: 'https://wb.example.com/auth/callback',
      secure: true,
    })
    const { host } = new URL(wire.serving.url)
    expect(await seenFrom('127.0.0.3', {})).toEqual({
      callback: `http://${host}/auth/callback`,
      secure: false,
    })
  })

  test('ignores forwarded headers from another address', async () => {
    const { host } = new URL(wire.serving.url)
    for (const address of ['127.0.0.1', '127.0.0.4'])
      expect(await seenFrom(address, told), address).toEqual({
        callback: `http://${host}/auth/callback`,
        secure: false,
      })
  })

  test('a page of the forwarded host has the same origin, but only through the proxy', async () => {
    const page = { ...told, ...session, origin: 'https://wb.example.com' }
    expect((await from('127.0.0.3', wire.serving, logout, page)).status).toBe(200)
    expect((await from('127.0.0.1', wire.serving, logout, page)).status).toBe(403)
  })
})

describe('csrfOriginCheck: false', () => {
  const wire = useServer(configured('unchecked', { csrfOriginCheck: false }))

  test('accepts pages of any origin, but not an unknown Host', async () => {
    const headers = { origin: 'https://evil.example', ...session }
    expect((await wire.send(logout, { headers })).status).toBe(200)
    const rebound = { headers: { ...headers, host: 'evil.example' } }
    await wire.refused(logout, rebound, 403, 'forbidden_origin', /evil\.example/)
  })
})

describe('without browser login', () => {
  const wire = useServer(configured('plain', {}, {}))

  test('checks the origin also in mode disabled', async () => {
    const headers = { origin: 'https://evil.example' }
    await wire.refused(`POST ${workspaces}`, { headers, json: { name: 'x' } }, 403, 'forbidden_origin')
    const own = { headers: { origin: wire.serving.url }, json: { name: 'own' } }
    expect((await wire.send(`POST ${workspaces}`, own)).status).toBe(201)
  })
})

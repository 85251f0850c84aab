import { describe, expect, test } from 'vitest'
import type { Caller } from '../../src/access/caller.ts'
import { type Subject, verifiedContext } from '../../src/access/subject.ts'
import type { Scope } from '../../src/contract/scopes.ts'
import { open } from '../harness/runtime.ts'
import { createTestApp, errorOf, throwError } from './test-app.ts'

const workspaceId = '8f2d3d8e-6f0e-4c0e-9d53-2f3a4b5c6d7e'
const keyId = '9b1c1a52-6f0e-4c0e-9d53-2f3a4b5c6d7e'
const workspace = `/api/v1/workspaces/${workspaceId}`
const authWithScopes = (...scopes: Scope[]) => {
  const subject: Subject = {
    id: 'key',
    label: null,
    type: 'apiKey',
    workspaceScopes: [workspaceId],
    scopes,
    role: null,
    principalId: 'key',
    keyLifetimeMaxMs: null,
  }
  return verifiedContext('apiKey', subject)
}

describe('S4.2-08: a change that needs a further scope', () => {
  async function patchError(body: object, ...scopes: Scope[]) {
    const response = await createTestApp({ auth: authWithScopes(...scopes) }).send(`PATCH ${workspace}`, {
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json' },
    })
    return response.status === 200 ? 200 : (await errorOf(response)).message
  }
  const missing = (scope: Scope) => `authenticated subject is missing required scope '${scope}'`

  test('needs the scope only if the field changes, not if it is unchanged or missing', async () => {
    expect(await patchError({ rlacEnabled: true }, 'write')).toBe(missing('manage:access'))
    expect(await patchError({ rlacEnabled: null }, 'write')).toBe(missing('manage:access'))
    expect(await patchError({ rlacEnabled: true }, 'write', 'manage:access')).toBe(200)
    expect(await patchError({ rlacEnabled: false }, 'write')).toBe(200)
    expect(await patchError({ name: 'y' }, 'write')).toBe(200)
    expect(await patchError({ rlacEnabled: true }, 'manage:access')).toBe(missing('write'))
  })

  test('detects a handler that does not check the change, at the first body with the field', async () => {
    const alter = () => ({ status: 200, body: {} }) as const
    const { send, logged } = createTestApp({ auth: authWithScopes('write', 'manage'), notes: { alter } })
    const patch = (body: object) =>
      send(`PATCH ${workspace}`, {
        body: JSON.stringify(body),
        headers: { 'content-type': 'application/json' },
      })
    expect((await patch({ name: 'y' })).status).toBe(200)
    expect((await patch({ rlacEnabled: false })).status).toBe(500)
    expect(String(logged.at(-1)!.facts.error)).toContain('did not check a change to rlacEnabled')
  })

  test('is not checked on a route without such a rule', async () => {
    const page = (_input: unknown, caller: Caller) => {
      caller.checkChange({ a: 1 }, { a: 2 })
      return { status: 200, body: '' } as const
    }
    expect((await createTestApp({ notes: { page } }).send('GET /page')).status).toBe(200)
  })
})

describe('the audit record of a request', () => {
  const line = `DELETE ${workspace}/api-keys/${keyId}`
  const auth = authWithScopes('manage')
  const record = (details: object = {}) => ({
    action: 'api_key.revoke',
    workspaceId,
    details: { keyId, ...details },
  })

  test('contains the IDs of the path and the details of the handler', async () => {
    const plain = createTestApp({ auth })
    await plain.send(line)
    expect(plain.audited).toEqual([record()])
    const revoke = () => ({ status: 204, body: undefined, audit: { label: 'ci' } }) as const
    const withDetails = createTestApp({ auth, notes: { revoke } })
    await withDetails.send(line)
    expect(withDetails.audited).toEqual([record({ label: 'ci' })])
  })

  test('contains decoded IDs, regardless of their escapes in the path', async () => {
    const { send, audited } = createTestApp({ auth })
    const spelt = [...keyId].map(character => `%${character.charCodeAt(0).toString(16)}`).join('')
    expect((await send(`DELETE ${workspace}/api-keys/${spelt}`)).status).toBe(204)
    expect(audited).toEqual([record()])
  })

  test('is announced once if the handler stores it, with the details of the last attempt', async () => {
    const revoke = (_input: unknown, caller: Caller) => {
      caller.record({ label: 'first try' })
      caller.record({ label: 'second try' })
      return { status: 204, body: undefined, audit: { label: 'not this' } } as const
    }
    const { send, audited } = createTestApp({ auth, notes: { revoke } })
    await send(line)
    expect(audited).toEqual([record({ label: 'second try' })])
  })

  test('can belong to another workspace than the path', async () => {
    const revoke = (_input: unknown, caller: Caller) => {
      caller.record({}, keyId)
      return { status: 204, body: undefined } as const
    }
    const { send, audited } = createTestApp({ auth, notes: { revoke } })
    await send(line)
    expect(audited).toEqual([{ ...record(), workspaceId: keyId }])
  })

  test('of a change is written only if a watched field changes, and the handler must pass the change', async () => {
    const rename = async (app: ReturnType<typeof createTestApp>, name: string) =>
      app.send('PATCH /api/v1/notes/name', {
        body: JSON.stringify({ name }),
        headers: { 'content-type': 'application/json' },
      })
    const recording = createTestApp()
    expect((await rename(recording, 'x')).status).toBe(200)
    expect(recording.audited).toEqual([])
    expect((await rename(recording, 'y')).status).toBe(200)
    expect(recording.audited).toMatchObject([{ details: { reason: 'changed name' } }])
    const silent = createTestApp({ notes: { rename: () => ({ status: 200, body: {} }) } })
    expect((await rename(silent, 'y')).status).toBe(500)
    expect(String(silent.logged.at(-1)!.facts.error)).toContain('did not call recordChange')
  })

  test('is not written for a failed request, even if the handler stored one', async () => {
    for (const keeps of [false, true]) {
      const revoke = (_input: unknown, caller: Caller) => {
        if (keeps) caller.record({})
        return throwError('api_key_not_found')
      }
      const { send, audited } = createTestApp({ auth, notes: { revoke } })
      expect((await send(line)).status).toBe(404)
      expect(audited).toEqual([])
    }
  })
})

test("passes the request ID, the browser's origin, cookies and the client address to a handler", async () => {
  const seen: unknown[] = []
  const page = (_input: unknown, { requestId, site, client, follows, signal }: Caller) => {
    seen.push({ requestId, site, client, follows, isAborted: signal.aborted })
    return { status: 200, body: '' } as const
  }
  const headers = {
    host: 'localhost:8787',
    cookie: 'a=b',
    'x-request-id': 'mine',
    accept: 'text/event-stream',
  }
  await createTestApp({ notes: { page } }).send('GET /page', { headers })
  expect(seen).toEqual([
    {
      requestId: 'mine',
      site: { origin: 'http://localhost:8787', cookies: 'a=b' },
      client: '',
      follows: null,
      isAborted: false,
    },
  ])
})

test('HEAD does not open an event stream, because nothing would read it', async () => {
  const { runtime } = await open()
  const ask = (method: string) =>
    runtime.fetch(
      new Request('http://localhost/api/v1/audit', { method, headers: { accept: 'text/event-stream' } }),
    )
  const streamed = await ask('GET')
  expect(streamed.headers.get('content-type')).toBe('text/event-stream')
  await streamed.body!.cancel()
  expect((await ask('HEAD')).headers.get('content-type')).toBe('application/json')
})

import { describe, expect, test } from 'vitest'
import type { Caller } from '../../src/access/caller.ts'
import { type Subject, verifiedContext } from '../../src/access/subject.ts'
import type { Scope } from '../../src/contract/scopes.ts'
import { open } from '../harness/runtime.ts'
import { errorOf, refusal, stage } from './stage.ts'

const workspaceId = '8f2d3d8e-6f0e-4c0e-9d53-2f3a4b5c6d7e'
const keyId = '9b1c1a52-6f0e-4c0e-9d53-2f3a4b5c6d7e'
const workspace = `/api/v1/workspaces/${workspaceId}`
const holding = (...scopes: Scope[]) => {
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

describe('S4.2-08: a rule that is raised by what changes', () => {
  async function altered(body: object, ...scopes: Scope[]) {
    const response = await stage({ auth: holding(...scopes) }).send(`PATCH ${workspace}`, {
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json' },
    })
    return response.status === 200 ? 200 : (await errorOf(response)).message
  }
  const missing = (scope: Scope) => `authenticated subject is missing required scope '${scope}'`

  test('a field that changes needs the further scope; one that stays, or is left out, does not', async () => {
    expect(await altered({ rlacEnabled: true }, 'write')).toBe(missing('manage:access'))
    expect(await altered({ rlacEnabled: null }, 'write')).toBe(missing('manage:access'))
    expect(await altered({ rlacEnabled: true }, 'write', 'manage:access')).toBe(200)
    expect(await altered({ rlacEnabled: false }, 'write')).toBe(200)
    expect(await altered({ name: 'y' }, 'write')).toBe(200)
    expect(await altered({ rlacEnabled: true }, 'manage:access')).toBe(missing('write'))
  })

  test('a handler that forgets to check is found out by the first body that has the field', async () => {
    const alter = () => ({ status: 200, body: {} }) as const
    const { send, logged } = stage({ auth: holding('write', 'manage'), notes: { alter } })
    const patch = (body: object) =>
      send(`PATCH ${workspace}`, {
        body: JSON.stringify(body),
        headers: { 'content-type': 'application/json' },
      })
    expect((await patch({ name: 'y' })).status).toBe(200)
    expect((await patch({ rlacEnabled: false })).status).toBe(500)
    expect(String(logged.at(-1)!.facts.error)).toContain('did not check a change to rlacEnabled')
  })

  test('on a route whose rule is not raised there is nothing to check', async () => {
    const page = (_input: unknown, caller: Caller) => {
      caller.checkChange({ a: 1 }, { a: 2 })
      return { status: 200, body: '' } as const
    }
    expect((await stage({ notes: { page } }).send('GET /page')).status).toBe(200)
  })
})

describe('the record of what was done', () => {
  const line = `DELETE ${workspace}/api-keys/${keyId}`
  const auth = holding('manage')
  const record = (details: object = {}) => ({
    action: 'api_key.revoke',
    workspaceId,
    details: { keyId, ...details },
  })

  test('holds the ids of the path, and what the handler adds', async () => {
    const plain = stage({ auth })
    await plain.send(line)
    expect(plain.audited).toEqual([record()])
    const revoke = () => ({ status: 204, body: undefined, audit: { label: 'ci' } }) as const
    const told = stage({ auth, notes: { revoke } })
    await told.send(line)
    expect(told.audited).toEqual([record({ label: 'ci' })])
  })

  test('holds ids as they are, however the path spells them', async () => {
    const { send, audited } = stage({ auth })
    const spelt = [...keyId].map(character => `%${character.charCodeAt(0).toString(16)}`).join('')
    expect((await send(`DELETE ${workspace}/api-keys/${spelt}`)).status).toBe(204)
    expect(audited).toEqual([record()])
  })

  test('one that its handler kept itself is announced once, the last one where it was tried again', async () => {
    const revoke = (_input: unknown, caller: Caller) => {
      caller.record({ label: 'first try' })
      caller.record({ label: 'second try' })
      return { status: 204, body: undefined, audit: { label: 'not this' } } as const
    }
    const { send, audited } = stage({ auth, notes: { revoke } })
    await send(line)
    expect(audited).toEqual([record({ label: 'second try' })])
  })

  test('may be of another workspace than the path names', async () => {
    const revoke = (_input: unknown, caller: Caller) => {
      caller.record({}, keyId)
      return { status: 204, body: undefined } as const
    }
    const { send, audited } = stage({ auth, notes: { revoke } })
    await send(line)
    expect(audited).toEqual([{ ...record(), workspaceId: keyId }])
  })

  test('is not made for what failed, whether it was kept or not', async () => {
    for (const keeps of [false, true]) {
      const revoke = (_input: unknown, caller: Caller) => {
        if (keeps) caller.record({})
        return refusal('api_key_not_found')
      }
      const { send, audited } = stage({ auth, notes: { revoke } })
      expect((await send(line)).status).toBe(404)
      expect(audited).toEqual([])
    }
  })
})

test('a handler is told the id of its request, where a browser sees the runtime, its cookies and its address', async () => {
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
  await stage({ notes: { page } }).send('GET /page', { headers })
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

test('HEAD of a route that can stream events opens no stream, as nobody would read it', async () => {
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

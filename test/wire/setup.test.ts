import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readManagedEnv } from '../../src/config/managed-env.ts'
import { WbError } from '../../src/contract/errors.ts'
import { setup } from '../../src/contract/setup.ts'
import { open } from '../harness/runtime.ts'
import { exactly } from './exactly.ts'
import { useServer } from './harness.ts'

const bootstrap = 'bootstrap-token-of-a-test-of-48-characters-long'
const asBootstrap = { authorization: `Bearer ${bootstrap}` }
const closed = {
  config: { auth: { mode: 'apiKey', anonymousPolicy: 'reject', bootstrapTokenRef: 'env:BOOT' } },
  environment: { BOOT: bootstrap },
}
const canary = 'sk-canary-of-a-managed-key-0123456789'

describe('GET /setup-status', () => {
  test('S4.2-33: reports the setup, and names the managed variables that have a value', async () => {
    const { send, dataDir } = await open({
      environment: { OPENROUTER_API_KEY: canary, OPENAI_API_KEY: '  ', PATH: 'x' },
    })
    const before = await send('GET /setup-status')
    expect(before.status).toBe(200)
    exactly(before.body, {
      setupComplete: false,
      workspacesCount: 0,
      controlPlane: { kind: 'sqlite', healthy: true },
      hasChatProvider: true,
      hasAstraCreds: false,
      managedEnv: {
        path: join(dataDir, '.env'),
        present: false,
        writable: true,
        configuredKeys: ['OPENROUTER_API_KEY'],
      },
    })
    await send('POST /api/v1/workspaces', { name: 'one' })
    expect((await send('GET /setup-status')).body).toMatchObject({ setupComplete: true, workspacesCount: 1 })
  })

  test('S4.2-34: contains no value of a variable', async () => {
    const { send, loggedProblems } = await open({ environment: { OPENAI_API_KEY: canary } })
    const written = await send('POST /setup/env', { values: { ASTRA_DB_APPLICATION_TOKEN: `${canary}2` } })
    const shown = await send('GET /setup-status')
    expect(shown.body).toMatchObject({ managedEnv: { configuredKeys: ['OPENAI_API_KEY'] } })
    expect(written.text + shown.text + JSON.stringify(loggedProblems)).not.toContain(canary)
  })

  test('lists both credentials of a remote database as such; without a key, chat is not set up', async () => {
    const one = await open({ environment: { ASTRA_DB_API_ENDPOINT: 'https://db.example' } })
    expect((await one.send('GET /setup-status')).body).toMatchObject({
      hasAstraCreds: false,
      hasChatProvider: false,
    })
    const chat = { provider: 'ollama' }
    const environment = { ASTRA_DB_API_ENDPOINT: 'https://db.example', ASTRA_DB_APPLICATION_TOKEN: 'token' }
    const both = await open({ environment, config: { controlPlane: { driver: 'memory' }, chat } })
    expect((await both.send('GET /setup-status')).body).toMatchObject({
      hasAstraCreds: true,
      hasChatProvider: true,
      controlPlane: { kind: 'memory' },
    })
    const off = await open({ config: { chat: { ...chat, enabled: false } } })
    expect((await off.send('GET /setup-status')).body).toMatchObject({ hasChatProvider: false })
  })

  test('reports a control plane that does not respond as unhealthy', async () => {
    const { send } = await open({
      rows: store => ({
        ...store,
        count: async () => {
          throw new WbError('control_plane_unavailable', 'gone')
        },
      }),
    })
    expect(await send('GET /setup-status')).toMatchObject({
      status: 200,
      body: { setupComplete: false, workspacesCount: 0, controlPlane: { kind: 'sqlite', healthy: false } },
    })
  })

  test('shows the path to operators only if authentication is enabled [security rule 17]', async () => {
    const { send, sendAsOperator, dataDir } = await open(closed)
    const path = async (headers: Record<string, string> = {}) =>
      ((await send('GET /setup-status', undefined, headers)).body as { managedEnv: { path: string | null } })
        .managedEnv.path
    const made = await send('POST /api/v1/workspaces', { name: 'one' }, asBootstrap)
    const keys = `POST /api/v1/workspaces/${made.body.workspaceId}/api-keys`
    const { plaintext } = (await send(keys, { label: 'admin', role: 'admin' }, asBootstrap)).body
    expect(await path()).toBeNull()
    expect(await path({ authorization: `Bearer ${plaintext}` })).toBeNull()
    expect(await path({ authorization: 'Bearer wrong' })).toBeNull()
    expect(await path(asBootstrap)).toBe(join(dataDir, '.env'))
    expect((await sendAsOperator('GET /setup-status')).text).toContain(join(dataDir, '.env'))
  })
})

describe('POST /setup/env', () => {
  test('S4.2-35: writes the managed file, keeps existing values, and requests a restart', async () => {
    const { send, dataDir } = await open()
    const first = await send('POST /setup/env', {
      values: {
        OPENROUTER_API_KEY: 'r "1" \\n',
        OPENAI_API_KEY: '',
        ASTRA_DB_API_ENDPOINT: 'https://db.example',
      },
    })
    expect(first.status).toBe(200)
    exactly(first.body, {
      ok: true,
      managedEnv: { path: join(dataDir, '.env'), present: true, writable: true },
      written: ['ASTRA_DB_API_ENDPOINT', 'OPENROUTER_API_KEY'],
      restartRequired: true,
    })
    expect(first.headers.get('cache-control')).toBe('no-store')
    await send('POST /setup/env', {
      values: { OPENAI_API_KEY: 'o', ASTRA_DB_API_ENDPOINT: 'https://two.example' },
    })
    expect(Object.fromEntries(readManagedEnv(dataDir))).toEqual({
      OPENROUTER_API_KEY: 'r "1" \\n',
      ASTRA_DB_API_ENDPOINT: 'https://two.example',
      OPENAI_API_KEY: 'o',
    })
    expect(statSync(join(dataDir, '.env')).mode & 0o777).toBe(0o600)
  })

  test('audits the names of the variables, and the restart', async () => {
    const { send, sendAsOperator } = await open()
    await send('POST /setup/env', { values: { OPENAI_API_KEY: 'o', OPENROUTER_API_KEY: 'r' } })
    const { items } = (await sendAsOperator('GET /api/v1/audit?action=setup.env')).body
    expect(items).toMatchObject([
      {
        action: 'setup.env',
        outcome: 'success',
        workspaceId: null,
        subject: { type: 'anonymous' },
        details: { label: 'OPENAI_API_KEY,OPENROUTER_API_KEY' },
      },
    ])
    expect(setup.restart.audit).toBe('setup.restart')
  })

  test('handles concurrent requests without losing a value', async () => {
    const { send, dataDir } = await open()
    const names = [
      'ASTRA_DB_API_ENDPOINT',
      'ASTRA_DB_APPLICATION_TOKEN',
      'OPENROUTER_API_KEY',
      'OPENAI_API_KEY',
    ]
    const posts = names.flatMap(name =>
      Array.from({ length: 5 }, () => ({ values: { [name]: `of ${name}` } })),
    )
    const answers = await Promise.all(posts.map(post => send('POST /setup/env', post)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect(Object.fromEntries(readManagedEnv(dataDir))).toEqual(
      Object.fromEntries(names.map(name => [name, `of ${name}`])),
    )
  })

  test.each<[what: string, body: unknown, field: string]>([
    ['a variable that is not managed', { values: { PATH: canary } }, 'values'],
    ['a value that is no text', { values: { OPENAI_API_KEY: [canary] } }, 'values.OPENAI_API_KEY'],
    ['a second line', { values: { OPENAI_API_KEY: `${canary}\nWB_X=1` } }, 'values.OPENAI_API_KEY'],
    ['a carriage return', { values: { OPENAI_API_KEY: `${canary}\r` } }, 'values.OPENAI_API_KEY'],
    ['a control character', { values: { OPENAI_API_KEY: `${canary}\u0000` } }, 'values.OPENAI_API_KEY'],
    ['a value that is too long', { values: { OPENAI_API_KEY: canary.repeat(200) } }, 'values.OPENAI_API_KEY'],
    ['no values', {}, 'values'],
    ['a list of values', { values: [] }, 'values'],
  ])('S7.3-validation_error: rejects %s by name and writes nothing', async (_what, body, field) => {
    const { send, dataDir } = await open()
    const refused = await send('POST /setup/env', body)
    expect(refused).toMatchObject({ status: 400, body: { error: { code: 'validation_error' } } })
    expect((refused.body.error as { message: string }).message).toContain(field)
    expect(refused.text).not.toContain(canary)
    expect(existsSync(join(dataDir, '.env'))).toBe(false)
  })

  test('S7.3-conflict: does not change a file that cannot be read', async () => {
    const { send, dataDir } = await open()
    writeFileSync(join(dataDir, '.env'), `not an assignment ${canary}\n`)
    const refused = await send('POST /setup/env', { values: { OPENAI_API_KEY: 'o' } })
    expect(refused).toMatchObject({ status: 409, body: { error: { code: 'conflict' } } })
    expect(refused.text).not.toContain(canary)
    expect(readFileSync(join(dataDir, '.env'), 'utf8')).toBe(`not an assignment ${canary}\n`)
  })

  test('accepts only the bootstrap token and the owner of the data directory if authentication is enabled', async () => {
    const { send, sendAsOperator } = await open(closed)
    const body = { values: { OPENAI_API_KEY: 'o' } }
    const made = await send('POST /api/v1/workspaces', { name: 'one' }, asBootstrap)
    const keys = `POST /api/v1/workspaces/${made.body.workspaceId}/api-keys`
    const { plaintext } = (await send(keys, { label: 'admin', role: 'admin' }, asBootstrap)).body
    const status = async (headers?: Record<string, string>) =>
      (await send('POST /setup/env', body, headers)).status
    expect(await status()).toBe(401)
    expect(await status({ authorization: `Bearer ${plaintext}` })).toBe(401)
    expect(await status({ authorization: `Bearer ${bootstrap}x` })).toBe(401)
    expect(await status(asBootstrap)).toBe(200)
    expect((await sendAsOperator('POST /setup/env', body)).status).toBe(200)
  })

  test('audits rejected callers, like other protected routes', async () => {
    const { send } = await open(closed)
    await send('POST /setup/restart', undefined, { authorization: `Bearer ${bootstrap}x` })
    const { body } = await send('GET /api/v1/audit?action=auth.api_denied', undefined, asBootstrap)
    expect(body.items).toMatchObject([{ outcome: 'denied', details: { scheme: 'bearer' } }])
  })

  test('rejects anonymous callers despite an anonymous policy that allows them', async () => {
    const { send } = await open({ config: { auth: { mode: 'apiKey', anonymousPolicy: 'allow' } } })
    expect((await send('POST /setup/env', { values: {} })).status).toBe(401)
  })
})

describe('POST /setup/restart', () => {
  test('S7.3-setup_restart_unavailable: is rejected first if the runtime has no supervisor that can reopen it', async () => {
    const { send } = await open()
    const refused = await send('POST /setup/restart')
    expect(refused.status).toBe(503)
    expect(refused.body).toEqual({
      error: {
        code: 'setup_restart_unavailable',
        message: 'this process cannot restart the runtime',
        requestId: expect.any(String),
        hint: 'Restart the server process yourself.',
        docs: 'docs/errors.md#setup-restart-unavailable',
      },
    })
    expect((await send('GET /readyz')).status).toBe(200)
  })
})

describe('setup over HTTP with authentication disabled [security rule 3, security rule 17]', () => {
  const wire = useServer()
  const json = { values: { OPENAI_API_KEY: 'o' } }

  test('rejects another origin, another Host, and another machine behind a proxy', async () => {
    const refusedWith = async (headers: Record<string, string>) => {
      const { status, body } = await wire.send('POST /setup/env', { json, headers })
      return [status, (body as { error: { code: string } }).error.code]
    }
    expect(await refusedWith({ origin: 'https://evil.example' })).toEqual([403, 'forbidden_origin'])
    expect(await refusedWith({ 'sec-fetch-site': 'cross-site' })).toEqual([403, 'forbidden_origin'])
    expect(await refusedWith({ host: 'evil.example' })).toEqual([403, 'forbidden_origin'])
    expect(await refusedWith({ 'x-forwarded-for': '203.0.113.9' })).toEqual([401, 'unauthorized'])
    expect(await refusedWith({ via: '1.1 proxy' })).toEqual([401, 'unauthorized'])
    expect(await refusedWith({ authorization: 'Bearer anything' })).toEqual([401, 'unauthorized'])
    expect(await wire.get('/setup-status')).toMatchObject({ managedEnv: { present: false } })
    expect((await wire.send('POST /setup/env', { json })).status).toBe(200)
  })

  test('is rate-limited to prevent guessing of tokens', async () => {
    const { headers } = await wire.send('GET /setup-status')
    expect(Number(headers['x-ratelimit-remaining'])).toBeGreaterThan(0)
  })
})

describe('setup on a network address with authentication disabled', () => {
  const wire = useServer({ args: ['--host', '0.0.0.0', '--allow-open-access'] })

  test('is rejected [security rule 17]', async () => {
    expect((await wire.send('POST /setup/env', { json: { values: {} } })).status).toBe(401)
    expect((await wire.send('POST /setup/restart')).status).toBe(401)
  })
})

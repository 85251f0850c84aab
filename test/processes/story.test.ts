import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { type Reply, type Row, serve, Wire } from '../wire/harness.ts'

const bootstrapToken = 'the-first-token-of-an-empty-runtime'

/** A configuration of a runtime that requires credentials. */
async function closedRuntime(): Promise<{ wire: Wire }> {
  const folder = mkdtempSync(join(tmpdir(), 'wb-story-'))
  const config = join(folder, 'closed.yaml')
  const auth = { mode: 'apiKey', anonymousPolicy: 'reject', bootstrapTokenRef: 'env:FIRST_TOKEN' }
  writeFileSync(config, JSON.stringify({ version: 1, auth }))
  const serving = await serve({ env: { FIRST_TOKEN: bootstrapToken }, args: ['--config', config] })
  const wire = new Wire()
  wire.open(serving.url)
  onTestFinished(async () => {
    await wire.close()
    expect(await serving.stop()).toBe(0)
    rmSync(folder, { recursive: true, force: true })
  })
  return { wire }
}

interface Told {
  readonly action: string
  readonly outcome: string
  readonly subject: { type: string; id: string | null } | null
  readonly workspaceId: string | null
  readonly details: Readonly<Record<string, unknown>> | null
}

test('S5.2-11 S5.9-07 S6-04 S6-05 S6-08 S6-13 S7.2-05 S7.2-07 S9-08 S9-09: from an empty runtime to a revoked key, with every step in the audit trail', {
  timeout: 60_000,
}, async () => {
  const { wire } = await closedRuntime()
  const as = (token: string | null, line: string, json?: unknown) =>
    wire.send(line, {
      ...(json !== undefined && { json }),
      ...(token !== null && { headers: { authorization: `Bearer ${token}` } }),
    })
  const done = async (status: number, sent: Promise<Reply>): Promise<Row> => {
    const reply = await sent
    expect(reply.status, reply.text).toBe(status)
    return (reply.body ?? {}) as Row
  }
  const refused = async (status: number, code: string, message: string, sent: Promise<Reply>) => {
    const reply = await sent
    expect(reply.status, reply.text).toBe(status)
    const { error } = reply.body as { error: Row }
    expect(error).toMatchObject({ code, message: expect.stringContaining(message) })
    expect(error.requestId).toBe(reply.headers['x-request-id'])
    expect(reply.headers['www-authenticate']).toBe(status === 401 ? 'Bearer' : undefined)
  }
  const all = '/api/v1/workspaces'

  // Requests without credentials are rejected, even for an empty list.
  await refused(401, 'unauthorized', 'rejects requests without credentials', as(null, `GET ${all}`))

  // The bootstrap token creates the first workspaces and the first key.
  const mine = String((await done(201, as(bootstrapToken, `POST ${all}`, { name: 'mine' }))).workspaceId)
  const other = String((await done(201, as(bootstrapToken, `POST ${all}`, { name: 'other' }))).workspaceId)
  const keys = `${all}/${mine}/api-keys`
  const minted = await done(201, as(bootstrapToken, `POST ${keys}`, { label: 'ci', role: 'editor' }))
  const [token, { keyId }] = [String(minted.plaintext), minted.key as { keyId: string }]
  expect(token).toMatch(/^wb_live_[a-z0-9]{12}_[a-z0-9]{32}$/)

  // The key has access to its own workspace only.
  await done(201, as(token, `POST ${all}/${mine}/knowledge-bases`, { name: 'handbook' }))
  expect((await done(200, as(token, `GET ${all}`))).items).toMatchObject([{ workspaceId: mine }])
  await refused(403, 'forbidden', 'no access to this workspace', as(token, `GET ${all}/${other}`))
  await refused(
    403,
    'forbidden',
    "authenticated subject is missing required scope 'manage:keys'",
    as(token, `POST ${keys}`, { label: 'more' }),
  )
  await refused(403, 'forbidden', 'the whole runtime', as(token, `POST ${all}`, { name: 'more' }))

  // A rotation creates a successor, and both keys work for some time.
  const rotated = await done(201, as(bootstrapToken, `POST ${keys}/${keyId}/rotate`, { graceSeconds: 600 }))
  const successor = String(rotated.plaintext)
  const successorId = (rotated.key as { keyId: string }).keyId
  await done(200, as(token, `GET ${all}/${mine}`))
  await done(200, as(successor, `GET ${all}/${mine}`))

  // The old key is revoked and rejected on the next request.
  await done(204, as(bootstrapToken, `DELETE ${keys}/${keyId}`))
  await refused(401, 'unauthorized', 'revoked', as(token, `GET ${all}/${mine}`))
  await done(200, as(successor, `GET ${all}/${mine}`))
  await done(204, as(bootstrapToken, `DELETE ${keys}/${successorId}`))
  await refused(401, 'unauthorized', 'revoked', as(successor, `GET ${all}/${mine}`))

  // The audit trail has all steps in order.
  const operator = { type: 'bootstrap', id: 'bootstrap' }
  const ci = { type: 'apiKey', id: keyId }
  const stranger = { type: 'anonymous', id: null }
  const story: object[] = [
    { action: 'auth.api_denied', outcome: 'denied', subject: stranger, details: { scheme: 'none' } },
    { action: 'workspace.create', subject: operator, workspaceId: mine, details: { label: 'mine' } },
    { action: 'workspace.create', subject: operator, workspaceId: other, details: { label: 'other' } },
    {
      action: 'api_key.create',
      subject: operator,
      workspaceId: mine,
      details: { keyId, label: 'ci', scopes: 'read,write' },
    },
    { action: 'kb.create', subject: ci, workspaceId: mine, details: { label: 'handbook' } },
    { action: 'auth.api_denied', outcome: 'denied', subject: ci, workspaceId: other },
    {
      action: 'auth.api_denied',
      outcome: 'denied',
      subject: ci,
      workspaceId: mine,
      details: { requiredScope: 'manage:keys' },
    },
    { action: 'auth.api_denied', outcome: 'denied', subject: ci, workspaceId: null },
    { action: 'api_key.rotate', subject: operator, workspaceId: mine },
    { action: 'api_key.revoke', subject: operator, workspaceId: mine, details: { keyId } },
    { action: 'auth.api_denied', outcome: 'denied', subject: stranger, details: { scheme: 'bearer' } },
    { action: 'api_key.revoke', subject: operator, workspaceId: mine, details: { keyId: successorId } },
    { action: 'auth.api_denied', outcome: 'denied', subject: stranger, details: { scheme: 'bearer' } },
  ]
  let trail: Told[] = []
  await vi.waitFor(async () => {
    const page = await done(200, as(bootstrapToken, 'GET /api/v1/audit?limit=200'))
    trail = (page.items as Told[]).reverse()
    const told = trail.filter(record => record.action !== 'auth.bootstrap_use')
    expect(told.map(record => record.action)).toEqual(story.map(step => (step as Told).action))
    expect(told).toMatchObject(story)
  }, 10_000)

  // Every use of the bootstrap token is audited too, and no record contains a token.
  const uses = trail.filter(record => record.action === 'auth.bootstrap_use')
  expect(uses.length).toBeGreaterThanOrEqual(6)
  expect(uses[0]).toMatchObject({ subject: operator, details: { scheme: 'bootstrap' } })
  const text = JSON.stringify(trail)
  for (const secret of [bootstrapToken, token, successor, token.slice(-32), successor.slice(-32)])
    expect(text).not.toContain(secret)
})

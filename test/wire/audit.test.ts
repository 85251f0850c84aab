import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { anyText, exactly, isoMs, uuid } from './exactly.ts'
import { executable, expectRefusal, past, type Reply, type Row, serve, useServer, Wire } from './harness.ts'
import { unknownId } from './shapes.ts'

const bootstrapToken = 'the-token-of-the-operator-of-this-trail'
const folder = mkdtempSync(join(tmpdir(), 'wb-audit-'))
const path = join(folder, 'closed.yaml')
const auth = { mode: 'apiKey', anonymousPolicy: 'reject', bootstrapTokenRef: 'env:FIRST_TOKEN' }
writeFileSync(path, JSON.stringify({ version: 1, auth }))
const options = { env: { FIRST_TOKEN: bootstrapToken }, args: ['--config', path] }

const wire = useServer(options)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const all = '/api/v1/workspaces'
let mine: string
let other: string
let viewer: { keyId: string; token: string }

function as(token: string | null, line: string, json?: unknown, more = {}): Promise<Reply> {
  const headers = { ...(token !== null && { authorization: `Bearer ${token}` }), ...more }
  return wire.send(line, json === undefined ? { headers } : { headers, json })
}

async function made(line: string, json: unknown): Promise<Row> {
  const reply = await as(bootstrapToken, line, json)
  expect(reply.status, reply.text).toBe(201)
  return reply.body as Row
}

async function page(
  path: string,
  token = bootstrapToken,
): Promise<{ items: Row[]; nextCursor: string | null }> {
  const reply = await as(token, `GET ${path}`)
  expect(reply.status, reply.text).toBe(200)
  return reply.body as unknown as { items: Row[]; nextCursor: string | null }
}

beforeAll(async () => {
  mine = String((await made(`POST ${all}`, { name: 'mine' })).workspaceId)
  other = String((await made(`POST ${all}`, { name: 'other' })).workspaceId)
  const minted = await made(`POST ${all}/${mine}/api-keys`, { label: 'viewer', role: 'viewer' })
  viewer = { keyId: String((minted.key as Row).keyId), token: String(minted.plaintext) }
})

describe('the audit list', () => {
  test('S6-16: a record has exactly the documented fields', async () => {
    const denied = await as(viewer.token, `POST ${all}/${mine}/knowledge-bases`, { name: 'x' })
    expect(denied.status).toBe(403)
    const reply = await as(bootstrapToken, `GET ${all}/${mine}/audit`)
    const { items } = reply.body as { items: Row[] }
    exactly(reply.body, {
      items: [
        {
          auditId: uuid,
          at: isoMs,
          action: 'auth.api_denied',
          outcome: 'denied',
          requestId: denied.headers['x-request-id'],
          subject: { type: 'apiKey', id: viewer.keyId, label: 'viewer' },
          workspaceId: mine,
          details: {
            requiredScope: 'write:kb',
            reason: "authenticated subject is missing required scope 'write:kb'",
          },
        },
        {
          auditId: uuid,
          at: isoMs,
          action: 'api_key.create',
          outcome: 'success',
          requestId: anyText,
          subject: { type: 'bootstrap', id: 'bootstrap', label: anyText },
          workspaceId: mine,
          details: { keyId: viewer.keyId, label: 'viewer', scopes: 'read' },
        },
        {
          auditId: uuid,
          at: isoMs,
          action: 'workspace.create',
          outcome: 'success',
          requestId: anyText,
          subject: { type: 'bootstrap', id: 'bootstrap', label: anyText },
          workspaceId: mine,
          details: { label: 'mine' },
        },
      ],
      nextCursor: null,
    })
    expect(items[0]!.at! >= items[1]!.at!).toBe(true)
  })

  test('paginates with cursors that are valid for one list only', async () => {
    const path = `${all}/${mine}/audit`
    const whole = (await page(`${path}?limit=200`)).items.map(({ auditId }) => auditId)
    const first = await page(`${path}?limit=1`)
    const second = await page(`${path}?limit=1&cursor=${first.nextCursor}`)
    expect([...first.items, ...second.items].map(({ auditId }) => auditId)).toEqual(whole.slice(0, 2))
    for (const elsewhere of [
      `${all}/${other}/audit?cursor=${first.nextCursor}`,
      `/api/v1/audit?cursor=${first.nextCursor}`,
      `${path}?action=api_key.create&cursor=${first.nextCursor}`,
      `${path}?since=2020-01-01T00:00:00Z&cursor=${first.nextCursor}`,
      `${path}?cursor=x`,
    ])
      expectRefusal(await as(bootstrapToken, `GET ${elsewhere}`), 400, 'invalid_cursor', elsewhere)
  })

  test('filters records by action and since', async () => {
    const path = `${all}/${mine}/audit`
    const { items } = await page(`${path}?action=api_key.create`)
    expect(items.map(({ action }) => action)).toEqual(['api_key.create'])
    await past((await page(`${path}?limit=1`)).items[0]!.at)
    const since = new Date().toISOString()
    expect((await page(`${path}?since=${since}`)).items).toEqual([])
    await as(viewer.token, `DELETE ${all}/${mine}`)
    expect((await page(`${path}?since=${since}`)).items).toMatchObject([
      { details: { requiredScope: 'manage:workspace' } },
    ])
  })

  test.each(['action=nothing', 'since=yesterday', 'limit=0', 'limit=201', 'cursor='])(
    'rejects a query with %s',
    async query => {
      for (const path of [`${all}/${mine}/audit`, '/api/v1/audit'])
        expectRefusal(
          await as(bootstrapToken, `GET ${path}?${query}`),
          400,
          'validation_error',
          query,
          new RegExp(query.split('=')[0]!),
        )
    },
  )

  test('returns 404 for an unknown workspace, and rejects unauthorized callers', async () => {
    const missing = `GET ${all}/${unknownId}/audit`
    expectRefusal(await as(bootstrapToken, missing), 404, 'workspace_not_found', missing)
    for (const line of [`GET ${all}/${mine}/audit`, 'GET /api/v1/audit'])
      expectRefusal(await as(null, line), 401, 'unauthorized', line)
    for (const line of [`GET ${all}/${other}/audit`, 'GET /api/v1/audit'])
      expectRefusal(await as(viewer.token, line), 403, 'forbidden', line)
    expect((await as(viewer.token, `GET ${all}/${mine}/audit`)).status).toBe(200)
  })

  test('S6-13: the audit trail of the runtime contains each use of the bootstrap token', async () => {
    const sent = await as(bootstrapToken, `GET ${all}`)
    const { items } = await page('/api/v1/audit?action=auth.bootstrap_use&limit=2')
    expect(items.map(({ requestId }) => requestId)).toContain(sent.headers['x-request-id'])
    exactly(items[0], {
      auditId: uuid,
      at: isoMs,
      action: 'auth.bootstrap_use',
      outcome: 'success',
      requestId: anyText,
      subject: { type: 'bootstrap', id: 'bootstrap', label: anyText },
      workspaceId: null,
      details: { scheme: 'bootstrap' },
    })
  })
})

/** A stream of audit events: the text received so far, and a promise of its end. */
async function stream(from: Wire, path: string, headers: Record<string, string> = {}) {
  const answer = await from.pool.request({
    method: 'GET',
    path,
    headers: { authorization: `Bearer ${bootstrapToken}`, accept: 'text/event-stream', ...headers },
  })
  const read = { text: '', hasEnded: false }
  const ended = new Promise<void>(resolve => {
    answer.body.on('data', part => {
      read.text += String(part)
    })
    answer.body.on('close', () => {
      read.hasEnded = true
      resolve()
    })
    answer.body.on('error', () => {})
  })
  onTestFinished(() => void answer.body.destroy())
  const blocks = () => read.text.split('\n\n').slice(0, -1)
  const events = async (many: number) => {
    await expect
      .poll(() => blocks().filter(block => !block.startsWith(':')).length, { timeout: 10_000 })
      .toBe(many)
    return blocks().filter(block => !block.startsWith(':'))
  }
  return { answer, read, ended, blocks, events, leave: () => answer.body.destroy() }
}

describe('the audit stream', () => {
  test('sends each new record as a server-sent event, and no earlier records', async () => {
    const { answer, blocks, events } = await stream(wire, `${all}/${mine}/audit`)
    expect(answer.statusCode).toBe(200)
    expect(answer.headers).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache, no-store',
      'x-accel-buffering': 'no',
    })
    expect(answer.headers['content-length']).toBeUndefined()
    const denied = await as(viewer.token, `PATCH ${all}/${mine}`, { name: 'x' })
    const [event] = await events(1)
    expect(blocks()).toEqual([event])
    const [record] = (await page(`${all}/${mine}/audit?limit=1`)).items
    expect(record!.requestId).toBe(denied.headers['x-request-id'])
    expect(event).toBe(`event: audit\ndata: ${JSON.stringify(record)}\nid: ${record!.auditId}`)
  })

  test('resumes after Last-Event-ID with the same action and workspace filter', async () => {
    const path = `${all}/${mine}/audit`
    const [newest, ...older] = (await page(`${path}?action=auth.api_denied`)).items
    expect(older.length).toBeGreaterThan(1)
    const last = { 'last-event-id': String(older.at(-1)!.auditId) }
    const { events } = await stream(wire, `${path}?action=auth.api_denied`, last)
    const ids = (blocks: string[]) => blocks.map(block => /^id: (.*)$/m.exec(block)![1])
    const missed = [newest!, ...older.slice(0, -1)].map(({ auditId }) => auditId).reverse()
    expect(ids(await events(missed.length))).toEqual(missed)
    await made(`POST ${all}/${other}/api-keys`, { label: 'elsewhere' })
    await made(`POST ${all}/${mine}/api-keys`, { label: 'not asked for' })
    await as(viewer.token, `DELETE ${all}/${mine}`)
    const [next] = (await page(`${path}?limit=1`)).items
    expect(ids(await events(missed.length + 1)).at(-1)).toBe(next!.auditId)
  })

  test('includes events of another process on the same data directory', async () => {
    const { events } = await stream(wire, `${all}/${mine}/audit?action=kb.create`)
    const { dataDir } = wire.serving
    const args = ['kb', 'create', 'by_hand', '-w', mine, '--as-operator', '--data-dir', dataDir]
    const home = { HOME: folder, WB_CONFIG: path, FIRST_TOKEN: bootstrapToken }
    await promisify(execFile)(process.execPath, [executable, ...args], { cwd: folder, env: home })
    const [event] = await events(1)
    expect(JSON.parse(/^data: (.*)$/m.exec(event!)![1]!)).toMatchObject({
      subject: { type: 'system' },
      details: { label: 'by_hand' },
    })
  })

  test('rejects the callers that the list rejects', async () => {
    for (const [token, path, status, code] of [
      [null, `${all}/${mine}/audit`, 401, 'unauthorized'],
      [viewer.token, '/api/v1/audit', 403, 'forbidden'],
      [bootstrapToken, `${all}/${unknownId}/audit`, 404, 'workspace_not_found'],
      [bootstrapToken, '/api/v1/audit?action=x', 400, 'validation_error'],
    ] as const) {
      const reply = await as(token, `GET ${path}`, undefined, { accept: 'text/event-stream' })
      expectRefusal(reply, status, code, path)
    }
  })

  test('ends when the server is stopped, which then exits with status 0', async () => {
    const serving = await serve(options)
    const own = new Wire()
    own.open(serving.url)
    onTestFinished(() => own.close())
    const open = await Promise.all([stream(own, '/api/v1/audit'), stream(own, '/api/v1/audit')])
    const begun = performance.now()
    const status = serving.stop()
    await Promise.all(open.map(({ ended }) => ended))
    expect(await status).toBe(0)
    expect(performance.now() - begun).toBeLessThan(5_000)
  })
})

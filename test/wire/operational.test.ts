import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { anyText, arrayOf, count, exactly, isoMs, matching, optional } from './exactly.ts'
import { useServer } from './harness.ts'

const wire = useServer()
const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string
}

/** Every route of the API contract. */
const surface = [
  'GET /',
  'GET /healthz',
  'GET /readyz',
  'GET /version',
  'GET /features',
  'GET /docs',
  'GET /error-codes',
  'GET /api/v1/openapi.json',
  'GET /api/v1/workspaces',
  'POST /api/v1/workspaces',
  'GET /api/v1/workspaces/{workspaceId}',
  'PATCH /api/v1/workspaces/{workspaceId}',
  'DELETE /api/v1/workspaces/{workspaceId}',
  'GET /api/v1/chunkers',
  ...['chunking', 'embedding'].flatMap(kind => [
    `GET /api/v1/workspaces/{workspaceId}/${kind}-services`,
    `POST /api/v1/workspaces/{workspaceId}/${kind}-services`,
    `GET /api/v1/workspaces/{workspaceId}/${kind}-services/{${kind}ServiceId}`,
    `PATCH /api/v1/workspaces/{workspaceId}/${kind}-services/{${kind}ServiceId}`,
    `DELETE /api/v1/workspaces/{workspaceId}/${kind}-services/{${kind}ServiceId}`,
  ]),
  'GET /api/v1/workspaces/{workspaceId}/knowledge-bases',
  'POST /api/v1/workspaces/{workspaceId}/knowledge-bases',
  ...[
    'GET ',
    'PATCH ',
    'DELETE ',
    'POST /search',
    'GET /documents',
    'POST /documents',
    'GET /documents/{documentId}',
    'PATCH /documents/{documentId}',
    'DELETE /documents/{documentId}',
    'POST /documents/bulk-delete',
    'GET /documents/{documentId}/chunks',
    'POST /ingest',
    'POST /ingest/batch',
    'POST /records',
    'DELETE /records/{recordId}',
  ].map(line => line.replace(' ', ' /api/v1/workspaces/{workspaceId}/knowledge-bases/{knowledgeBaseId}')),
]

describe('operational routes without credentials', () => {
  test('S4.1-01: GET / returns the product name', async () => {
    await wire.exchange('GET /', undefined, 200, {
      name: 'workbase',
      version,
      commit: anyText,
      docs: '/docs',
    })
  })

  test('S4.1-02: GET /healthz succeeds', async () => {
    await wire.exchange('GET /healthz', undefined, 200, { status: 'ok' })
  })

  test('S4.1-03: GET /readyz counts the workspaces', async () => {
    const ready = {
      status: 'ready',
      workspaces: 0,
      ingest: optional({ active: count, capacity: count, queued: count }),
    }
    await wire.exchange('GET /readyz', undefined, 200, ready)
    const id = await wire.make('/api/v1/workspaces', { name: 'counted' }, 'workspaceId')
    await wire.exchange('GET /readyz', undefined, 200, { ...ready, workspaces: 1 })
    await wire.exchange(`DELETE /api/v1/workspaces/${id}`, undefined, 204, undefined)
  })

  test('S4.1-04 S9-01: GET /version returns the version of the runtime', async () => {
    await wire.exchange('GET /version', undefined, 200, {
      version,
      commit: anyText,
      buildTime: isoMs,
      node: process.version,
    })
  })

  test('GET /features lists MCP and batch ingest', async () => {
    const { origin } = new URL(wire.serving.url)
    await wire.exchange('GET /features', undefined, 200, {
      mcp: { enabled: true, baseUrl: origin },
      ingestBatch: true,
    })
  })

  test('S4.1-05: GET /docs returns a page without external resources', async () => {
    const reply = await wire.send('GET /docs')
    expect(reply.status).toBe(200)
    expect(reply.headers['content-type']).toMatch(/^text\/html/)
    expect(reply.text).toMatch(/<html/i)
    expect(reply.text).not.toMatch(
      /<(?:script|link|img|iframe)[^>]+(?:src|href)\s*=\s*["']?(?:https?:)?\/\//i,
    )
  })

  test('GET /error-codes lists every code with its status, hint and anchor', async () => {
    await wire.exchange('GET /error-codes', undefined, 200, {
      codes: arrayOf({
        code: matching(/^[a-z][a-z_]*$/),
        defaultStatus: count,
        hint: anyText,
        docs: matching(/^docs\/errors\.md#[a-z][a-z-]*$/),
      }),
    })
  })

  test('S4.1-06 S9-01 S1-01: GET /api/v1/openapi.json describes every route, below /api/v1', async () => {
    const reply = await wire.send('GET /api/v1/openapi.json')
    expect(reply.status).toBe(200)
    const described = reply.body as {
      openapi: string
      info: { version: string }
      servers: unknown
      paths: Record<string, Record<string, unknown>>
      components: { securitySchemes: Record<string, unknown> }
    }
    expect(described.openapi).toBe('3.1.0')
    expect(described.info.version).toBe(version)
    exactly(described.servers, [{ url: '/' }])
    expect(Object.keys(described.components.securitySchemes).sort()).toEqual(['OidcBearer', 'WorkbaseApiKey'])
    const listed = Object.entries(described.paths).flatMap(([path, operations]) => {
      return Object.keys(operations)
        .filter(method => ['get', 'post', 'put', 'patch', 'delete'].includes(method))
        .map(method => `${method.toUpperCase()} ${path}`)
    })
    expect(listed).toEqual(expect.arrayContaining(surface))
  })

  test('S4.1-01 S4.1-02 S4.1-03 S4.1-04 S4.1-05 S4.1-06: an invalid Authorization header has no effect', async () => {
    for (const path of ['/', '/healthz', '/readyz', '/version', '/docs', '/api/v1/openapi.json']) {
      const reply = await wire.send(`GET ${path}`, { headers: { authorization: 'Basic bm90OmFueXRoaW5n' } })
      expect(reply.status, path).toBe(200)
    }
  })
})

describe('with auth.anonymousPolicy: reject', () => {
  const folder = mkdtempSync(join(tmpdir(), 'wb-reject-'))
  const config = join(folder, 'workbase.yaml')
  writeFileSync(config, 'version: 1\nauth: { anonymousPolicy: reject }\n')
  const strict = useServer({ args: ['--config', config] })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  test('S4.1-01 S4.1-02 S4.1-03 S4.1-04 S4.1-05 S4.1-06: the operational routes succeed and other routes do not', async () => {
    for (const path of ['/', '/healthz', '/readyz', '/version', '/docs', '/api/v1/openapi.json']) {
      const reply = await strict.send(`GET ${path}`)
      expect(reply.status, `${path} ${reply.text.slice(0, 200)}`).toBe(200)
    }
    await strict.refused('GET /api/v1/workspaces', {}, 401, 'unauthorized')
  })
})

import { describe, expect, test } from 'vitest'
import type { Clock } from '../../src/base/clock.ts'
import { errorCodes } from '../../src/contract/errors.ts'
import { api } from '../../src/contract/index.ts'
import { openApiDocument } from '../../src/contract/openapi.ts'
import { renderDocs } from '../../src/http/docs/page.ts'
import { createTestApp, errorOf } from './test-app.ts'

const json = async (line: string) => (await createTestApp().send(line)).json()

test('S4.1-01 S4.1-02 S4.1-04: the runtime reports its name, liveness and version', async () => {
  expect(await json('GET /')).toEqual({ name: 'workbase', version: '1.2.3', commit: 'abc', docs: '/docs' })
  expect(await json('GET /healthz')).toEqual({ status: 'ok' })
  const buildTime = '2026-01-02T03:04:05.678Z'
  expect(await json('GET /version')).toEqual({
    version: '1.2.3',
    commit: 'abc',
    buildTime,
    node: process.version,
  })
  expect(await json('GET /features')).toEqual({ mcp: { enabled: false, baseUrl: null }, ingestBatch: true })
})

describe('S4.1-03: readiness', () => {
  test('counts the workspaces', async () => {
    expect(await json('GET /readyz')).toEqual({ status: 'ready', workspaces: 3 })
  })

  test('fails without details if the control plane fails', async () => {
    const { send, logged } = createTestApp({
      countWorkspaces: () => Promise.reject(new Error('SQLITE_IOERR at /home/x')),
    })
    const response = await send('GET /readyz')
    expect(response.status).toBe(503)
    const error = await errorOf(response)
    expect(error.code).toBe('control_plane_unavailable')
    expect(JSON.stringify(error)).not.toContain('SQLITE')
    expect(String(logged.at(-1)!.facts.error)).toContain('SQLITE')
  })

  test('times out after 4,000 ms', async () => {
    const timers: { delayMs: number; run: () => void }[] = []
    const clock: Clock = {
      now: () => 0,
      after: (delayMs, run) => {
        timers.push({ delayMs, run })
        return () => {}
      },
    }
    const { send } = createTestApp({ clock, countWorkspaces: () => new Promise(() => {}) })
    const response = send('GET /readyz')
    await new Promise(resolve => setImmediate(resolve))
    expect(timers.map(({ delayMs }) => delayMs)).toEqual([4_000])
    timers[0]!.run()
    expect((await errorOf(await response)).code).toBe('control_plane_unavailable')
  })
})

test('S7.1-02: lists every registered code in alphabetical order, with status, hint and docs', async () => {
  const { codes } = (await json('GET /error-codes')) as { codes: { code: string }[] }
  expect(codes.map(({ code }) => code)).toEqual([...errorCodes].sort())
  expect(Object.keys(codes[0]!)).toEqual(['code', 'defaultStatus', 'hint', 'docs'])
})

test('S4.1-06 S9-01: serves the OpenAPI document as JSON', async () => {
  const response = await createTestApp().send('GET /api/v1/openapi.json')
  expect(response.headers.get('content-type')).toBe('application/json')
  const document = (await response.json()) as {
    openapi: string
    paths: Record<string, object>
    info: { version: string }
  }
  expect([document.openapi, document.info.version]).toEqual(['3.1.0', '1.2.3'])
  expect(Object.keys(document.paths)).toContain('/api/v1/notes')
})

describe('S4.1-05: the reference page', () => {
  test('shows every route, schema and code, and its links have targets', async () => {
    const response = await createTestApp().send('GET /docs')
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
    const page = await response.text()
    for (const text of ['/api/v1/notes', 'Create a note', 'manage:workspace', 'vector_collection_required'])
      expect(page).toContain(text)
    const targets = [...page.matchAll(/href="#([^"]+)"/g)].map(([, id]) => id)
    expect(targets.length).toBeGreaterThan(5)
    expect(targets.filter(id => !page.includes(`id="${id}"`))).toEqual([])
  })

  test('loads nothing else, and its policy allows only its own style and script by hash', async () => {
    const response = await createTestApp().send('GET /docs')
    const page = await response.text()
    expect(page).not.toMatch(/<img|<link|<iframe|\son[a-z]+=|javascript:|style=|url\(|@import/i)
    expect(page).not.toMatch(/(?:href|src)="(?!#|\/api\/v1\/openapi\.json")/)
    const policy = response.headers.get('content-security-policy')!
    for (const name of ['style', 'script']) {
      const elements = [...page.matchAll(new RegExp(`<${name}>([\\s\\S]*?)</${name}>`, 'g'))]
      expect(elements, name).toHaveLength(1)
      expect(page.split(`<${name}`), name).toHaveLength(2)
      const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(elements[0]![1]))
      expect(policy).toContain(`${name}-src 'sha256-${Buffer.from(digest).toString('base64')}'`)
    }
    expect(policy).toContain("default-src 'none'")
    expect(policy).not.toContain('unsafe')
  })

  test('starts with authentication, lists knowledge bases before setup, and hides the filter until its script runs', async () => {
    const { html } = renderDocs(openApiDocument(api, { version: '1.2.3' }))
    const at = (text: string) => html.indexOf(text)
    expect(at('Authorization: Bearer')).toBeGreaterThan(0)
    expect(at('Authorization: Bearer')).toBeLessThan(at('id="topic-workspaces"'))
    expect(at('id="topic-kb"')).toBeLessThan(at('id="topic-setup"'))
    expect(html).toContain('<div class="filter" hidden><input id="filter"')
    const linked = [...html.matchAll(/href="#([^"]+)"/g)].map(([, id]) => id!)
    expect(linked.filter(id => !html.includes(`id="${id}"`))).toEqual([])
    const entries = html.match(/ data-entry="/g)!
    expect(entries.length).toBeGreaterThan(Object.keys(api).length)
  })
})

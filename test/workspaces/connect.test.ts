import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anonymousContext } from '../../src/access/subject.ts'
import type { TrafficEntry } from '../../src/contract/connect.ts'
import { buildSnippets } from '../../src/workspaces/connect-snippets.ts'
import { Connections } from '../../src/workspaces/connections.ts'
import { McpTraffic } from '../../src/workspaces/mcp-traffic.ts'
import { makeWorkspace } from '../harness/resources.ts'
import { open, TestClock } from '../harness/runtime.ts'

const hour = 3_600_000

function call(toolName: string, outcome: TrafficEntry['outcome'] = 'success'): Omit<TrafficEntry, 'at'> {
  return { toolName, outcome, subjectType: 'apiKey', subjectLabel: 'ci', reason: null }
}

describe('MCP traffic of a workspace', () => {
  test('contains the last 256 calls, newest first', () => {
    const traffic = new McpTraffic(new TestClock())
    for (let n = 0; n < 300; n++) traffic.add('w', null, call(`tool${n}`))
    traffic.add('other', null, call('elsewhere'))
    const names = traffic.list('w').map(({ toolName }) => toolName)
    expect(names).toHaveLength(256)
    expect([names[0], names.at(-1)]).toEqual(['tool299', 'tool44'])
    expect(traffic.list('nobody')).toEqual([])
  })

  test('expires after 24 hours', () => {
    const clock = new TestClock()
    const traffic = new McpTraffic(clock)
    traffic.add('w', null, call('old'))
    clock.advance(23 * hour)
    traffic.add('w', null, call('new'))
    expect(traffic.list('w')).toHaveLength(2)
    clock.advance(hour)
    expect(traffic.list('w').map(({ toolName }) => toolName)).toEqual(['new'])
    clock.advance(23 * hour)
    expect(traffic.list('w')).toEqual([])
  })

  test('is kept for the thousand workspaces with the most recent calls', () => {
    const traffic = new McpTraffic(new TestClock())
    for (let n = 0; n < 1_000; n++) traffic.add(`w${n}`, null, call('tool'))
    traffic.add('w0', null, call('again'))
    traffic.add('one more', null, call('tool'))
    expect(traffic.list('w0')).toHaveLength(2)
    expect(traffic.list('w1')).toEqual([])
    expect(traffic.list('w2')).toHaveLength(1)
  })

  test('has a summary of all calls, in which denied calls are failures', async () => {
    const traffic = new McpTraffic(new TestClock())
    const get = async () => ({ row: {}, version: 1, ordinal: 1, text: '{}' })
    const rows = { get } as unknown as ConstructorParameters<typeof Connections>[0]['rows']
    const room = new Connections({
      rows,
      traffic,
      clock: new TestClock(),
      log: { debug() {}, info() {}, warn() {}, error() {} },
      mcpEnabled: true,
      listTools: async () => [],
    })
    for (const outcome of ['success', 'failure', 'denied', 'success'] as const)
      traffic.add('w', null, call(outcome, outcome))
    expect(await room.traffic('w', { limit: 1 }, { auth: anonymousContext('disabled') })).toEqual({
      workspaceId: 'w',
      mcpEnabled: true,
      entries: [{ at: '2026-01-01T00:00:00.000Z', ...call('success') }],
      summary: { total: 4, successes: 2, failures: 2 },
    })
  })
})

describe('the address in snippets', () => {
  const publicOrigin = 'https://wb.example.com'
  const publicBaseUrl = async (config: object, headers: Record<string, string> = {}) => {
    const wb = await open({ config: { runtime: config } })
    const { workspaceId } = await makeWorkspace(wb)
    const line = `GET /api/v1/workspaces/${workspaceId}/connect/snippets`
    return (await wb.send(line, undefined, headers)).body.publicBaseUrl
  }

  test('is the public origin if configured, otherwise the address of the request', async () => {
    const forged = { forwarded: 'host=evil.example;proto=https', 'x-forwarded-host': 'evil.example' }
    expect(await publicBaseUrl({ publicOrigin })).toBe(publicOrigin)
    expect(await publicBaseUrl({ publicOrigin }, forged)).toBe(publicOrigin)
    expect(await publicBaseUrl({}, forged)).toBe('http://localhost')
  })

  test('is escaped as a string literal', () => {
    fc.assert(
      fc.property(fc.string(), url => {
        const place = { searchUrl: url, mcpUrl: url, apiKeyEnvVar: 'WB_API_KEY' }
        const [first, ...others] = buildSnippets(place)
        expect(first!.code).toContain(`        ${JSON.stringify(url)},\n`)
        expect(others.at(-1)!.code).toContain(`curl --fail-with-body '${url.replaceAll("'", "'\\''")}' `)
      }),
    )
  })
})

test('snippets search the given knowledge base, or the whole workspace', async () => {
  const wb = await open()
  const { workspaceId } = await makeWorkspace(wb)
  const path = `/api/v1/workspaces/${workspaceId}`
  for (const [query, place] of [
    ['', path],
    [`?knowledgeBaseId=${workspaceId}`, `${path}/knowledge-bases/${workspaceId}`],
  ]) {
    const { targets } = (await wb.send(`GET ${path}/connect/snippets${query}`)).body
    for (const { transport, code } of targets as { transport: string; code: string }[])
      expect(code).toContain(transport === 'rest' ? `"http://localhost${place}/search"` : `${path}/mcp'`)
  }
})

test('S4.2-29: verifying requires read access only, but not anonymous access', async () => {
  const wb = await open({ config: { auth: { mode: 'apiKey', anonymousPolicy: 'reject' } } })
  const made = await wb.sendAsOperator('POST /api/v1/workspaces', { name: 'verified' })
  const path = `/api/v1/workspaces/${made.body.workspaceId}`
  const { body: key } = await wb.sendAsOperator(`POST ${path}/api-keys`, { label: 'key', scopes: ['read'] })
  const verify = async (headers: Record<string, string>) =>
    (await wb.send(`POST ${path}/connect/verify`, undefined, headers)).status
  expect(await verify({ authorization: `Bearer ${key.plaintext}` })).toBe(200)
  expect(await verify({})).toBe(401)
})

test('a runtime with MCP disabled reports it without an error', async () => {
  const wb = await open({ config: { mcp: { enabled: false } } })
  const { workspaceId } = await makeWorkspace(wb)
  const { body } = await wb.send(`POST /api/v1/workspaces/${workspaceId}/connect/verify`)
  expect(body).toMatchObject({ ok: false, mcpEnabled: false, error: null })
})

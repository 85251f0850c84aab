import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { runProgram } from '../commands/sandbox.ts'
import { scratchDir } from '../harness/runtime.ts'
import { anyText, arrayOf, count, oneOf } from './exactly.ts'
import { ingest, makePlace, type Place } from './fixtures.ts'
import { type Row, useServer } from './harness.ts'
import { unknownId } from './shapes.ts'

const wire = useServer()
const ids = ['langgraph', 'crewai', 'google-adk', 'microsoft-agent-framework', 'watsonx', 'mcp-raw']
const [python, shell] = ['python3', 'bash'].map(name => spawnSync(name, ['--version']).status === 0)

let place: Place
beforeAll(async () => {
  place = await makePlace(wire)
  await ingest(wire, place.kb, { text: 'The ornithopter flaps its wings.' })
})

function snippet(id: string): Row {
  const texts = { displayName: anyText, tagline: anyText, code: anyText }
  const uses = {
    language: oneOf('python', 'bash'),
    transport: oneOf('rest', 'mcp'),
    requiresMcp: id === 'mcp-raw',
  }
  const optional = { install: oneOf(null, anyText), notes: oneOf(null, anyText) }
  return { id, ...texts, ...uses, ...optional, docsUrl: anyText }
}

describe('connection snippets', () => {
  function expected(known: Row = {}): Row {
    const { origin } = new URL(wire.serving.url)
    return {
      workspaceId: place.workspaceId,
      knowledgeBaseId: null,
      publicBaseUrl: origin,
      mcpUrl: `${origin}${place.workspace}/mcp`,
      restBaseUrl: `${origin}/api/v1`,
      mcpEnabled: true,
      apiKeyEnvVar: 'WB_API_KEY',
      targets: ids.map(snippet),
      ...known,
    }
  }

  test('cover six frameworks as documented, and can be cached for a minute', async () => {
    const line = `GET ${place.workspace}/connect/snippets`
    await wire.exchange(line, undefined, 200, expected())
    expect((await wire.send(line)).headers['cache-control']).toBe('private, max-age=60')
    const named = { knowledgeBaseId: place.knowledgeBaseId, apiKeyEnvVar: 'MY_KEY' }
    await wire.exchange(`${line}?${new URLSearchParams(named)}`, undefined, 200, expected(named))
    await wire.exchange(
      `${line}?knowledgeBaseId=${unknownId}`,
      undefined,
      200,
      expected({ knowledgeBaseId: unknownId }),
    )
  })

  test.each([
    'apiKeyEnvVar=lower',
    'apiKeyEnvVar=A-B',
    'apiKeyEnvVar=1A',
    'apiKeyEnvVar=',
    'knowledgeBaseId=x',
  ])('S7.3-validation_error: reject ?%s', async query => {
    const line = `GET ${place.workspace}/connect/snippets?${query}`
    await wire.refused(line, {}, 400, 'validation_error', new RegExp(`^${query.split('=')[0]}: `))
  })

  test('contain the address of the request, despite forwarding headers from an untrusted peer', async () => {
    const forged: Record<string, string>[] = [
      { forwarded: 'host=evil.example;proto=https' },
      { 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https' },
      { 'x-real-ip': '10.0.0.1' },
    ]
    for (const headers of forged) {
      const { text, status } = await wire.send(`GET ${place.workspace}/connect/snippets`, { headers })
      expect(status).toBe(200)
      expect(text).not.toContain('evil.example')
    }
  })

  const frameworks = ids.filter(id => id !== 'mcp-raw')
  test.skipIf(!python).each(frameworks)('the code for %s runs and finds the document', async id => {
    for (const query of ['', `?knowledgeBaseId=${place.knowledgeBaseId}`]) {
      const { targets } = await wire.get(`${place.workspace}/connect/snippets${query}`)
      const { code } = (targets as Row[]).find(target => target.id === id)!
      const { stdout, stderr } = await runInFramework(String(code))
      expect(stdout, stderr).toContain('ornithopter')
    }
  })

  test.skipIf(!shell)('the code for MCP calls the route that it names', async () => {
    const { targets } = await wire.get(`${place.workspace}/connect/snippets`)
    const { code } = (targets as Row[]).find(target => target.id === 'mcp-raw')!
    const { stdout } = spawnSync('bash', ['-c', `curl() { printf '%s\\n' "$@"; }; ${code}`], {
      encoding: 'utf8',
      env: { WB_API_KEY: 'the key' },
    })
    const lines = stdout.split('\n')
    expect(lines).toContain(`${new URL(wire.serving.url).origin}${place.workspace}/mcp`)
    expect(lines).toContain('Authorization: Bearer the key')
    expect(JSON.parse(lines.find(line => line.startsWith('{'))!)).toMatchObject({ method: 'tools/list' })
  })

  /** Stubs of the exports of each framework, which record their arguments and call the tools that they receive. */
  function runInFramework(code: string) {
    const folder = scratchDir()
    const stub = `
class Any:
    def __init__(self, *args, **kwargs):
        for found in kwargs.get("tools", []):
            print(found("What flaps its wings?"))
    def __getattr__(self, name):
        return Any
    def __getitem__(self, key):
        return self
    def __await__(self):
        return iter(())
def tool(*args):
    return lambda function: function
def __getattr__(name):
    return Any
`
    const modules = [
      ['langchain', 'agents'],
      ['crewai', 'tools'],
      ['google', 'adk', 'agents'],
      ['agent_framework', 'openai'],
      ['ibm_watsonx_orchestrate', 'agent_builder', 'tools'],
    ]
    for (const parts of modules)
      for (const depth of parts.keys()) {
        const path = join(folder, ...parts.slice(0, depth + 1))
        mkdirSync(path, { recursive: true })
        writeFileSync(join(path, '__init__.py'), stub)
      }
    const isTool = code.includes('@tool()')
    const program = `import asyncio\nasyncio.run = lambda work: work\n${code}${isTool ? 'print(search_knowledge("What flaps its wings?"))\n' : ''}`
    const env = { PATH: process.env.PATH ?? '', PYTHONPATH: folder, WB_API_KEY: 'unasked' }
    return runProgram({ home: folder, env }, 'python3', ['-c', program])
  }
})

describe('verifying MCP and MCP traffic', () => {
  test('S4.2-29: verify lists the tools like an MCP client', async () => {
    const tools = [
      'create_knowledge_base',
      'delete_document',
      'delete_knowledge_base',
      'get_agent',
      'get_document',
      'ingest_text',
      'list_agents',
      'list_chat_messages',
      'list_chats',
      'list_documents',
      'list_knowledge_bases',
      'list_services',
      'search_kb',
    ]
    const body = { ok: true, mcpEnabled: true, toolCount: 13, tools, latencyMs: count, error: null }
    await wire.exchange(`POST ${place.workspace}/connect/verify`, undefined, 200, body)
  })

  test('traffic is empty at first, and its responses are not cached', async () => {
    const summary = { total: 0, successes: 0, failures: 0 }
    const body = { workspaceId: place.workspaceId, mcpEnabled: true, entries: arrayOf({}), summary }
    const line = `GET ${place.workspace}/connect/traffic`
    await wire.exchange(line, undefined, 200, body)
    expect((await wire.send(line)).headers['cache-control']).toBe('no-store')
    for (const limit of ['0', '201', 'x'])
      await wire.refused(`${line}?limit=${limit}`, {}, 400, 'validation_error', /^limit: /)
  })

  test('S7.3-workspace_not_found: both return 404 for an unknown workspace', async () => {
    const elsewhere = `/api/v1/workspaces/${unknownId}/connect`
    for (const line of [`GET ${elsewhere}/snippets`, `POST ${elsewhere}/verify`, `GET ${elsewhere}/traffic`])
      await wire.refused(line, {}, 404, 'workspace_not_found')
  })
})

describe('test-connection', () => {
  const make = (body: Row) => wire.make('/api/v1/workspaces', body, 'workspaceId')
  const test_ = async (body: Row, ok: boolean, details: unknown = anyText) => {
    const path = `/api/v1/workspaces/${await make(body)}`
    const expected = { ok, kind: body.kind, details }
    await wire.exchange(`POST ${path}/test-connection`, undefined, 200, expected)
  }

  test('S4.2-28: succeeds for local and mock workspaces', async () => {
    await test_({ name: 'a local one', kind: 'local' }, true)
    await test_({ name: 'a mock one', kind: 'mock' }, true)
  })

  test('S4.2-28: reports a workspace without a driver in a response with status 200', async () => {
    await test_({ name: 'openrag', kind: 'openrag' }, false, "no driver for workspaces of kind 'openrag'")
    await test_({ name: 'bare', kind: 'astra' }, false, "a workspace of kind 'astra' needs url")
    const bound = { url: 'https://db.example.com', keyspace: 'ks', credentials: { token: 'env:TOKEN' } }
    await test_({ name: 'bound', kind: 'hcd', ...bound }, false, "no driver for workspaces of kind 'hcd'")
  })

  test('S7.3-workspace_not_found: returns 404 for an unknown workspace', async () => {
    const line = `POST /api/v1/workspaces/${unknownId}/test-connection`
    await wire.refused(line, {}, 404, 'workspace_not_found')
  })
})

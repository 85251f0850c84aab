import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { formatLogLine } from '../../src/cli/serve/format-log-line.ts'
import { principals } from '../../src/contract/principals.ts'
import { workspaces } from '../../src/contract/workspaces.ts'
import { createSandbox } from './sandbox.ts'

const timeout = 60_000
const unknown = '9b1c1a52-6f0e-4c0e-9d53-2f3a4b5c6d7e'

test('an error suggests the command that helps', { timeout }, async () => {
  const { wb } = createSandbox()
  const base = JSON.parse((await wb(['kb', 'create', 'handbook', '--json'])).stdout) as Record<string, string>
  const tool = await wb(['agents', 'create', 'a', '--prompt', 'Be brief.', '--tool', 'native:web_search'])
  expect(tool.stderr).toMatch(/agent_tool_unresolved[\s\S]*\n {4}wb agents tools\n$/)
  const job = await wb(['jobs', 'show', unknown])
  expect(job.stderr).toMatch(/job_not_found[\s\S]*\n {4}wb jobs list\n$/)
  const bound = await wb(['services', 'delete', base.chunkingServiceId!, '--yes'])
  expect(bound.stderr).toMatch(/chunking_service_in_use[\s\S]*\n {4}wb kb show handbook\n$/)
  const pathFirst = await wb(['api', '/api/v1/workspaces', 'GET'])
  expect(pathFirst.stderr).toMatch(/is not an HTTP method[^\n]*\n {4}wb api GET \/api\/v1\/workspaces\n$/)
})

test('an error in rescue mode suggests a repair command', { timeout }, async () => {
  const { wb, serve, dataDir } = createSandbox()
  mkdirSync(dataDir, { mode: 0o700 })
  writeFileSync(join(dataDir, 'workbase.db'), 'no database '.repeat(1_000))
  await serve()
  const { stderr } = await wb(['kb', 'list'])
  expect(stderr).toContain('run wb api POST /setup/restart. wb api GET /setup-status shows the state.')
})

test('formats log lines of rejected requests, and leaves other lines unchanged', () => {
  const request = {
    level: 'warn',
    msg: 'request',
    method: 'GET',
    route: '/api/v1/workspaces',
    status: 503,
    code: 'control_plane_unavailable',
    reason: 'this runtime is in rescue mode',
    requestId: 'abc',
  }
  expect(formatLogLine(`${JSON.stringify(request)}\n`)).toBe(
    '  ! GET /api/v1/workspaces failed with 503: this runtime is in rescue mode (request abc)',
  )
  const broken = JSON.stringify({ ...request, level: 'error' })
  expect(formatLogLine(`${broken}\n`)).toBe(broken)
  expect(formatLogLine('no JSON\n')).toBe('no JSON')
})

test('jobs include the names of their document and knowledge base, and a preview reports an unknown principal', {
  timeout,
}, async () => {
  const { wb, serve } = createSandbox()
  const { call } = await serve()
  const stdin = { input: '# Wings\n' }
  await wb(['kb', 'ingest', 'handbook', '-', '--name', 'wings.md', '--create', '--async'], stdin)
  expect((await wb(['jobs', 'list'])).stdout).toMatch(/\twings\.md\thandbook\n$/)
  for (const verb of ['show', 'watch']) {
    const { stdout } = await wb(['jobs', verb])
    expect(stdout).toMatch(/^document\twings\.md$/m)
    expect(stdout).toMatch(/^knowledge base\thandbook$/m)
  }
  const preview = ['access', 'policy', 'preview', 'team = $principal.team', '--as']
  expect((await wb([...preview, 'mallory'])).stderr).toContain('there is no principal mallory in')
  const { items } = await call(workspaces.list, { query: {} })
  const { workspaceId } = items[0]!
  await call(principals.create, { params: { workspaceId }, body: { principalId: 'alice' } })
  expect((await wb([...preview, 'alice'])).stderr).not.toContain('does not know')
})

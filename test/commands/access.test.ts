import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openEmbeddedStore } from '../../src/storage/open.ts'
import { tables } from '../../src/storage/tables.ts'
import { createSandbox, sandboxFactory } from './sandbox.ts'
import { runInTerminal, stripSequences } from './terminal.ts'

const timeout = 60_000

const demo = sandboxFactory(async ({ wb }) => {
  expect((await wb(['workspaces', 'create', 'demo'])).status).toBe(0)
})

describe('wb access principals', () => {
  test('creates, lists, shows, changes and deletes principals', { timeout }, async () => {
    const { wb, serve } = await demo()
    await serve()
    const principals = (...args: string[]) => wb(['access', 'principals', ...args])
    const none = await principals('list')
    expect(none).toMatchObject({ status: 0, stdout: '' })
    expect(none.stderr).toContain('wb access principals create alice')

    const created = await principals('create', 'alice', '--label', 'Alice A.', '--attribute', 'team=blue')
    expect(created).toMatchObject({ status: 0, stdout: 'alice\n' })
    const json = JSON.parse((await principals('show', 'Alice A.', '--json')).stdout)
    expect(json).toMatchObject({ principalId: 'alice', role: 'viewer', attributes: { team: 'blue' } })
    await principals('create', 'bob', '--role', 'admin')
    const [alice, bob] = (await principals('list')).stdout.split('\n').map(line => line.split('\t'))
    expect(alice!.slice(0, 4)).toEqual(['alice', 'Alice A.', 'viewer', 'team=blue'])
    expect(bob!.slice(0, 4)).toEqual(['bob', '', 'admin', ''])

    expect(await principals('update', 'alice', '--role', 'editor', '--label', '')).toMatchObject({
      status: 0,
    })
    expect(JSON.parse((await principals('show', 'alice', '--json')).stdout)).toMatchObject({
      label: null,
      role: 'editor',
      attributes: { team: 'blue' },
    })
    expect((await principals('update', 'alice')).status).toBe(2)
    expect((await principals('create', 'alice')).status).toBe(5)

    const unconfirmed = await principals('delete', 'alice')
    expect(unconfirmed.status).toBe(2)
    expect(unconfirmed.stderr).toContain('deletes principal alice (editor) of workspace demo')
    expect(await principals('delete', 'alice', '--yes', '--json')).toMatchObject({
      status: 0,
      stdout: '{"deleted":"alice"}\n',
    })
    const deleted = await principals('show', 'bo')
    expect(deleted.status).toBe(4)
    expect(deleted.stderr).toContain('did you mean bob?')
  })

  test('prompts for missing arguments in a terminal, and rejects the command in a pipe', {
    timeout,
  }, async () => {
    const sandbox = await demo()
    const piped = await sandbox.wb(['access', 'principals', 'create'])
    expect(piped.status).toBe(2)
    const args = ['access', 'principals', 'create']
    const answer = (text: string) => (text.includes('ID') ? 'carol\r' : undefined)
    const { status, text } = await runInTerminal(sandbox, args, { answer })
    expect(status).toBe(0)
    expect(stripSequences(text)).toContain('added principal carol (viewer)')
  })
})

test('a nested topic has its own help page, and a mistyped command in it is reported with its full name', {
  timeout,
}, async () => {
  const { wb } = createSandbox()
  for (const args of [
    ['access', 'principals'],
    ['access', 'principals', '--help'],
  ]) {
    const { status, stdout } = await wb(args)
    expect(status).toBe(0)
    expect(stdout).toContain('access principals create')
    expect(stdout).not.toContain('access policy')
  }
  const { status, stderr } = await wb(['access', 'principals', 'lst'])
  expect(status).toBe(2)
  expect(stderr).toContain('did you mean wb access principals list?')
})

describe('wb access policy', () => {
  test('preview prints the filter, or the position of an error in the policy', { timeout }, async () => {
    const { wb, serve } = await demo()
    await serve()
    const preview = (...args: string[]) => wb(['access', 'policy', 'preview', ...args])
    await wb(['access', 'principals', 'create', 'alice', '--attribute', 'team=blue'])
    const shown = await preview('team = $principal.team', '--as', 'alice')
    expect(shown).toMatchObject({ status: 0, stdout: '{"team":"blue"}\n', stderr: '' })
    const invalid = await preview('team =')
    expect(invalid).toMatchObject({ status: 1, stdout: '' })
    expect(invalid.stderr).toContain('Col 7: expected')
    const idle = await preview('1 = 1')
    expect(idle).toMatchObject({ status: 1, stdout: '{}\n' })
    expect(idle.stderr).toContain('the comparison contains no column')
    const json = await preview('team =', '--json')
    expect(json.status).toBe(1)
    expect(JSON.parse(json.stdout)).toMatchObject({ ok: false, compiledFilter: null })
  })
})

test('turning row-level access on warns if the runtime has no authentication, without which callers see nothing', {
  timeout,
}, async () => {
  const { wb } = await demo()
  const on = await wb(['workspaces', 'update', 'demo', '--rlac'])
  expect(on.stderr).toMatch(/^ {2}! without authentication, requests have no principal, [^\n]*\n$/)
  expect((await wb(['workspaces', 'update', 'demo', '--no-rlac'])).stderr).toBe('')
})

test('wb audit decisions lists decisions, newest first, and filters them', { timeout }, async () => {
  const { wb, serve, dataDir } = await demo()
  await serve()
  const empty = await wb(['audit', 'decisions'])
  expect(empty).toMatchObject({ status: 0, stdout: '' })
  expect(empty.stderr).toContain('no decisions in workspace demo yet')
  const { workspaceId } = JSON.parse((await wb(['workspaces', 'show', '--json'])).stdout)
  const { rows, close } = await openEmbeddedStore({ path: join(dataDir, 'workbase.db') })
  const knowledgeBaseId = '5e0ab0c4-3f0f-4e51-9f27-4c2c7be6d0a1'
  const decisionOf = (n: number, principalId: string, decision: string) => ({
    workspaceId,
    auditDay: `2026-01-0${n}`,
    ts: `2026-01-0${n}T00:00:00.000Z`,
    decisionId: `9b1c1a52-6f0e-4c0e-9d53-00000000000${n}`,
    principalId,
    knowledgeBaseId,
    resourceId: '*',
    action: 'search',
    decision,
    reason: 'filtered',
    compiledFilterJson: '{}',
  })
  const table = tables.policyAudit
  const decisions = [decisionOf(1, 'alice', 'filter'), decisionOf(2, 'bob', 'deny')]
  await rows.atomic(decisions.map(row => ({ op: 'insert', table, row })))
  await close()
  const lines = (await wb(['audit', 'decisions'])).stdout.trim().split('\n')
  expect(lines.map(line => line.split('\t'))).toEqual([
    ['2026-01-02T00:00:00.000Z', 'bob', 'search', 'deny', 'filtered', '*', knowledgeBaseId, '{}'],
    ['2026-01-01T00:00:00.000Z', 'alice', 'search', 'filter', 'filtered', '*', knowledgeBaseId, '{}'],
  ])
  for (const [flags, count] of [
    [['--principal', 'alice'], 1],
    [['--day', '2026-01-02'], 1],
    [['--decision', 'deny'], 1],
    [['--decision', 'deny', '--principal', 'alice'], 0],
    [['--limit', '1'], 1],
  ] as const) {
    const { status, stdout } = await wb(['audit', 'decisions', ...flags, '--json'])
    expect([flags, status, JSON.parse(stdout).length]).toEqual([flags, 0, count])
  }
  expect((await wb(['audit', 'decisions', '--kb', 'none'])).status).not.toBe(0)
  expect((await wb(['audit', 'decisions', '--day', 'x'])).stderr).toContain('auditDay')
})

test('wb workspaces test reports whether the store responds', { timeout }, async () => {
  const { wb } = await demo()
  const works = await wb(['workspaces', 'test'])
  expect(works).toMatchObject({ status: 0, stderr: '' })
  expect(works.stdout).toMatch(/responds\n$/)
  await wb(['workspaces', 'create', 'remote', '--kind', 'astra'])
  const broken = await wb(['workspaces', 'test', 'remote'])
  expect(broken).toMatchObject({ status: 1, stdout: '' })
  expect(broken.stderr).toContain("a workspace of kind 'astra' needs url")
  const json = await wb(['workspaces', 'test', 'remote', '--json'])
  expect(json.status).toBe(1)
  expect(JSON.parse(json.stdout)).toMatchObject({ ok: false, kind: 'astra' })
})

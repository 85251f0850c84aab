import { describe, expect, test } from 'vitest'
import { type CommandResult, createSandbox, type Sandbox } from './sandbox.ts'

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const note = 'Mach number and reduced frequency.'

/** Connections of a command: a runtime in its process, a discovered server, and a named server. */
const connections = ['in process', 'a discovered server', 'a named server'] as const

async function commandRunner(way: (typeof connections)[number]): Promise<Sandbox['wb']> {
  const sandbox = createSandbox()
  if (way === 'in process') return sandbox.wb
  const { url } = await sandbox.serve()
  if (way === 'a discovered server') return sandbox.wb
  return (args, options) =>
    sandbox.wb(args, { ...options, env: { WB_URL: url, WB_DATA_DIR: '/nonexistent', ...options?.env } })
}

async function stdoutOf(run: Promise<CommandResult>): Promise<string> {
  const { status, stdout, stderr } = await run
  expect({ status, stderr }).toMatchObject({ status: 0 })
  return stdout.trimEnd()
}

test('a suggested command keeps the data directory and the role of the command', {
  timeout: 60_000,
}, async () => {
  const { wb, dataDir } = createSandbox()
  const there = ['--data-dir', dataDir, '--as-operator']
  expect((await wb(['workspaces', 'create', 'two words', ...there])).stderr).toBe(
    `  wb kb create handbook --workspace "two words" --data-dir ${dataDir} --as-operator\n`,
  )
  expect((await wb(['kb', 'create', 'papers', '-w', 'two words', ...there])).stderr).toBe(
    `  wb kb ingest papers ./my-folder -w "two words" --data-dir ${dataDir} --as-operator\n`,
  )
  const started = await wb(['quickstart', '-w', 'two words', ...there])
  expect(started.stderr).toContain(
    ` kb ingest handbook ./my-folder -w "two words" --data-dir ${dataDir} --as-operator  `,
  )
  expect(started.stderr).toContain(` serve --open -w "two words" --data-dir ${dataDir}  `)
})

describe.each(connections)('S1-10: the same commands, %s', way => {
  test('create, search and delete documents', { timeout: 60_000 }, async () => {
    const wb = await commandRunner(way)
    expect(await wb(['kb', 'list'])).toEqual({
      status: 4,
      stdout: '',
      stderr:
        '  ✗ There is no workspace yet (workspace_not_found)\n    wb kb create handbook     also creates a workspace\n    wb workspaces create demo\n',
    })
    const created = await wb(['kb', 'create', 'handbook', '--description', 'ours'])
    expect(created).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(uuid.source.replace('$', '\\n$')),
    })
    expect(created.stderr).toBe('  ✓ created workspace default\n  wb kb ingest handbook ./my-folder\n')
    const knowledgeBaseId = created.stdout.trim()

    const [base] = JSON.parse(await stdoutOf(wb(['kb', 'list', '--json']))) as Record<string, unknown>[]
    expect(base).toMatchObject({ knowledgeBaseId, name: 'handbook', description: 'ours' })
    expect(await stdoutOf(wb(['kb', 'list']))).toBe(
      [knowledgeBaseId, 'handbook', 'ours', 'active', base!.updatedAt].join('\t'),
    )

    const path = `/api/v1/workspaces/${base!.workspaceId}/knowledge-bases/${knowledgeBaseId}/ingest`
    const body = JSON.stringify({ text: note, sourceFilename: 'notes.md', metadata: { title: 'Notes' } })
    const { document } = JSON.parse(
      await stdoutOf(wb(['api', 'post', path, '-d', '-'], { input: body })),
    ) as {
      document: { documentId: string; updatedAt: string }
    }
    const { documentId, updatedAt } = document
    expect(await stdoutOf(wb(['documents', 'list']))).toBe(
      [documentId, 'Notes', 'notes.md', 'ready', '1', updatedAt].join('\t'),
    )
    for (const name of [documentId, 'notes.md', 'Notes'])
      expect(JSON.parse(await stdoutOf(wb(['documents', 'show', name, '--json'])))).toMatchObject({
        documentId,
      })
    expect(await stdoutOf(wb(['documents', 'chunks', 'notes.md']))).toBe(`${documentId}:0\t${note}`)
    expect(JSON.parse(await stdoutOf(wb(['document', 'chunks', documentId, '--json'])))).toMatchObject([
      { text: note },
    ])

    const unasked = await wb(['documents', 'delete', 'notes.md'])
    expect(unasked).toEqual({
      status: 2,
      stdout: '',
      stderr: '  ✗ This deletes document Notes with 1 chunk\n    add --yes to skip the confirmation\n',
    })
    expect(await wb(['documents', 'delete', 'notes.md', '--yes'])).toEqual({
      status: 0,
      stdout: '',
      stderr: `  ✓ deleted document Notes with 1 chunk\n  wb documents restore\n`,
    })
    expect(await wb(['documents', 'list'])).toEqual({
      status: 0,
      stdout: '',
      stderr: '  no documents in handbook yet; ingest some:\n    wb kb ingest handbook ./my-folder\n',
    })
    expect(await wb(['kb', 'delete', 'handbook', '-y', '-q'])).toEqual({ status: 0, stdout: '', stderr: '' })
    expect(await stdoutOf(wb(['kb', 'list', '--json']))).toBe('[]')
  })
})

describe('wb workspaces', () => {
  test('lists, selects, renames and deletes workspaces by name', async () => {
    const { wb, serve } = createSandbox()
    await serve()
    const one = await stdoutOf(wb(['workspaces', 'create', 'one']))
    const two = await stdoutOf(wb(['workspaces', 'create', 'two', '--kind', 'mock']))
    expect(
      (await stdoutOf(wb(['workspace', 'list']))).split('\n').map(line => line.split('\t').slice(0, 3)),
    ).toEqual([
      [one, 'one', 'local'],
      [two, 'two', 'mock'],
    ])
    expect(await wb(['kb', 'list'])).toEqual({
      status: 2,
      stdout: '',
      stderr:
        '  ✗ There are 2 workspaces; specify one\n    wb kb list --workspace one\n    wb kb list --workspace two\n',
    })
    await stdoutOf(wb(['workspaces', 'use', 'two']))
    expect(JSON.parse(await stdoutOf(wb(['workspaces', 'show', '--json'])))).toMatchObject({
      workspaceId: two,
    })
    expect(JSON.parse(await stdoutOf(wb(['workspaces', 'show', '--json', '-w', 'one'])))).toMatchObject({
      workspaceId: one,
    })
    expect(
      JSON.parse(await stdoutOf(wb(['workspaces', 'show', '--json'], { env: { WB_WORKSPACE: 'one' } }))),
    ).toMatchObject({
      workspaceId: one,
    })
    await stdoutOf(wb(['workspaces', 'update', '--name', 'zwei']))
    expect((await wb(['workspaces', 'delete', 'zwei', '--yes'])).stderr).toBe(
      '  ✓ deleted workspace zwei with 0 knowledge bases, 2 agents, and all documents, conversations, services and keys\n',
    )
    expect(JSON.parse(await stdoutOf(wb(['workspaces', 'show', '--json'])))).toMatchObject({
      workspaceId: one,
    })
  })

  test('a similar name is suggested, with the error code and status 4', async () => {
    const { wb } = createSandbox()
    await stdoutOf(wb(['workspaces', 'create', 'demo']))
    expect(await wb(['kb', 'list', '-w', 'demoo'])).toEqual({
      status: 4,
      stdout: '',
      stderr:
        '  ✗ No workspace is named "demoo" (workspace_not_found)\n    did you mean demo?\n    wb workspaces list\n',
    })
  })

  test('an error of the runtime is printed with its code, request ID and exit status', async () => {
    const { wb, serve } = createSandbox()
    await serve()
    await stdoutOf(wb(['workspaces', 'create', 'demo']))
    const conflict = await wb(['workspaces', 'create', 'demo'])
    expect(conflict).toMatchObject({ status: 5, stdout: '' })
    expect(conflict.stderr).toMatch(
      /^ {2}✗ .*demo.* \(workspace_name_conflict, request [0-9A-Z]{26}\)\n {4}Choose another name/,
    )
    const json = await wb(['workspaces', 'create', 'demo', '--json'])
    expect(JSON.parse(json.stderr)).toMatchObject({
      error: { code: 'workspace_name_conflict', requestId: expect.any(String) },
    })
    const invalid = await wb(['workspaces', 'create', 'x', '--credential', 'token=plain'])
    expect(invalid).toMatchObject({ status: 1, stderr: expect.stringContaining('validation_error') })
  })
})

describe('lists', () => {
  test('--pages with a method other than GET is a usage error', async () => {
    const result = await createSandbox().wb([
      'api',
      'POST',
      '/api/v1/workspaces',
      '--pages',
      '-d',
      '{"name":"six"}',
    ])
    expect(result).toEqual({
      status: 2,
      stdout: '',
      stderr:
        '  ✗ --pages reads the pages of a list, so it cannot be used with POST\n    leave out --pages, or use GET\n',
    })
  })

  test('fetch all pages in a pipe, and a truncated list reports the total', { timeout: 60_000 }, async () => {
    const sandbox = createSandbox()
    const { url } = await sandbox.serve()
    for (let number = 0; number < 5; number++)
      await fetch(`${url}/api/v1/workspaces`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ name: `w${number}` }),
      })
    expect((await stdoutOf(sandbox.wb(['workspaces', 'list']))).split('\n')).toHaveLength(5)
    const cut = await sandbox.wb(['workspaces', 'list', '--limit', '2'])
    expect(cut.stdout.split('\n')).toHaveLength(3)
    expect(cut.stderr).toBe('  2 of 5\n')
    const pages = JSON.parse(
      await stdoutOf(sandbox.wb(['api', 'GET', '/api/v1/workspaces?limit=2', '--pages'])),
    ) as unknown[]
    expect(pages).toHaveLength(5)
  })
})

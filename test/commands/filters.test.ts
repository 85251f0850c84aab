import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { documents } from '../../src/contract/documents.ts'
import { filters } from '../../src/contract/filters.ts'
import { type Base, makeBase } from '../harness/resources.ts'
import {
  addWorkspaceSandbox,
  type CommandResult,
  createSandbox,
  type TestServer,
  type WorkspaceSandbox,
} from './sandbox.ts'
import { runInFakeTerminal, runInTerminal, stripSequences } from './terminal.ts'

type Json = Record<string, unknown>

const shared = createSandbox(afterAll)
let server: TestServer
beforeAll(async () => {
  server = await shared.serve()
})

/** Creates two knowledge bases with one document each, in different languages. */
async function createBases(): Promise<WorkspaceSandbox & { handbook: Base; kitchen: Base }> {
  const workspaceSandbox = await addWorkspaceSandbox(shared, server)
  const fill = async (name: string, lang: string) => {
    const base = await makeBase(workspaceSandbox, { workspaceId: workspaceSandbox.workspaceId, name })
    const metadata = { lang, year: 1960 }
    await base.ingest(`A refund of the ${name}.`, { sourceFilename: `${name}.md`, metadata })
    return base
  }
  const handbook = await fill('handbook', 'en')
  const kitchen = await fill('kitchen', 'de')
  return { ...workspaceSandbox, handbook, kitchen }
}

function json(ended: CommandResult): Json {
  expect(ended).toMatchObject({ status: 0 })
  return JSON.parse(ended.stdout) as Json
}

describe('wb filters', { timeout: 60_000 }, () => {
  test('S1-10: create, list, show, update and delete', async () => {
    const { wb } = await createBases()
    const created = await wb(['filters', 'create', 'english', '--kb', 'handbook', '--where', 'lang=en'])
    expect(created).toMatchObject({ status: 0, stderr: '  wb kb search handbook "…" --saved english\n' })
    const id = created.stdout.trim()
    const shown = json(await wb(['filters', 'show', 'english', '-k', 'handbook', '--json']))
    expect(shown).toMatchObject({ knowledgeFilterId: id, name: 'english', filter: { lang: 'en' } })
    const line = [id, 'english', '{"lang":"en"}', '', shown.updatedAt].join('\t')
    expect((await wb(['filters', 'list', 'handbook'])).stdout).toBe(`${line}\n`)
    const changed = await wb([
      'filters',
      'update',
      id,
      '--kb',
      'handbook',
      '--where',
      'year=1960',
      '--where',
      'lang=en',
      '--where',
      'lang=de',
      '--json',
    ])
    const year = { year: { $in: [1960, '1960'] } }
    expect(json(changed)).toMatchObject({ filter: { $and: [year, { lang: { $in: ['en', 'de'] } }] } })
    const unasked = await wb(['filters', 'delete', 'english', '--kb', 'handbook'])
    expect(unasked).toEqual({
      status: 2,
      stdout: '',
      stderr: '  ✗ This deletes filter english of handbook\n    add --yes to skip the confirmation\n',
    })
    const deleted = await wb(['filters', 'delete', 'english', '--kb', 'handbook', '--yes'])
    expect(deleted).toMatchObject({ status: 0, stderr: '  ✓ deleted filter english of handbook\n' })
    expect(await wb(['filters', 'list', 'handbook'])).toMatchObject({
      status: 0,
      stdout: '',
      stderr: expect.stringContaining('wb filters create english --kb handbook --where lang=en'),
    })
  })

  test('reports missing or invalid arguments before it creates anything', async () => {
    const { wb } = await createBases()
    const create = ['filters', 'create', 'f', '--kb', 'handbook']
    for (const [args, status, message] of [
      [create, 2, '--filter or --where is missing'],
      [[...create, '--filter', '[]'], 2, '--filter is not a JSON object: []'],
      [[...create, '--where', 'lang'], 2, '--where "lang": an operator is missing after "lang" (column 5)'],
      [[...create, '--filter', '{"a":{"$near":1}}'], 1, "filter.a: unknown operator '$near'"],
      [['filters', 'update', 'f', '--kb', 'handbook'], 2, 'no change was requested'],
      [['filters', 'show', 'f', '--kb', 'handbook'], 4, 'knowledge_filter_not_found'],
    ] as const) {
      const { status: ended, stderr } = await wb([...args])
      expect({ ended, stderr: stderr.toLowerCase() }).toEqual({
        ended: status,
        stderr: expect.stringContaining(message.toLowerCase()),
      })
    }
    expect((await wb(['filters', 'list', 'handbook', '--json'])).stdout).toBe('[]\n')
  })

  test('prompts for the condition in a terminal, and for the name before deletion', async () => {
    const sandbox = await createBases()
    const created = await runInTerminal(sandbox, ['filters', 'create', 'english', '-k', 'handbook'], {
      answer: text => (text.includes('Condition') ? '{"lang":"en"}\r' : undefined),
    })
    expect(created.status).toBe(0)
    expect(stripSequences(created.text)).toContain('✓ saved filter english of handbook')
    const declined = await runInTerminal(sandbox, ['filters', 'delete', 'english', '-k', 'handbook'], {
      answer: text => (text.includes('to confirm') ? 'engl\r' : undefined),
    })
    expect(declined.status).toBe(2)
    const deleted = await runInTerminal(sandbox, ['filters', 'delete', 'english', '-k', 'handbook'], {
      answer: text => (text.includes('to confirm') ? 'english\r' : undefined),
    })
    expect(deleted.status).toBe(0)
    const { items } = await sandbox.call(filters.list, { params: sandbox.handbook.params, query: {} })
    expect(items).toEqual([])
  })
})

describe('wb kb search', { timeout: 60_000 }, () => {
  test('S1-10: --all searches every knowledge base and shows its name, and a citation opens the document', async () => {
    const sandbox = await createBases()
    const { stdout } = await sandbox.wb(['kb', 'search', '--all', 'refund', '--no-wait'])
    const rows = stdout.trimEnd().split('\n')
    expect(
      rows
        .map(row => row.split('\t'))
        .map(cells => [cells[4], cells.at(-1)])
        .sort(),
    ).toEqual([
      ['handbook.md', 'handbook'],
      ['kitchen.md', 'kitchen'],
    ])
    const first = rows[0]!.split('\t')
    expect(json(await sandbox.wb(['documents', 'show', '1', '--json']))).toMatchObject({
      documentId: first[2],
    })
    const hits = json(await sandbox.wb(['kb', 'search', '--all', 'refund', '--json'])) as unknown as Json[]
    expect(hits.map(hit => typeof hit.knowledgeBaseId)).toEqual(['string', 'string'])
    const screen = await runInFakeTerminal(sandbox, ['kb', 'search', '--all', 'refund'])
    expect(stripSequences(screen.text)).toMatch(/ kitchen · kitchen\.md · chunk 0/)
    expect(stripSequences(screen.text)).not.toContain('also in')
    for (const { params } of [sandbox.handbook, sandbox.kitchen])
      await sandbox.call(documents.ingest, { params, body: { text: 'A refund of refunds.' } })
    const repeated = await runInFakeTerminal(sandbox, ['kb', 'search', '--all', 'refund of refunds'])
    expect(stripSequences(repeated.text).match(/^ +also in (?:handbook|kitchen)\r?$/gm)).toHaveLength(1)
  })

  test('--saved and --where restrict the results, and an empty result suggests which filter to remove', async () => {
    const { wb, call, handbook } = await createBases()
    const body = { name: 'german', filter: { lang: 'de' } }
    await call(filters.create, { params: handbook.params, body })
    const search = (...args: string[]) => wb(['kb', 'search', 'handbook', 'refund', ...args])
    expect((await search('--where', 'lang=en', '--where', 'year=1960')).stdout).toContain('handbook.md')
    expect(await search('--saved', 'german')).toMatchObject({
      status: 0,
      stdout: '',
      stderr: '  no results in handbook (1 document)\n  try it without --saved\n',
    })
    expect(await wb(['kb', 'search', '--all', 'refund', '--where', 'lang=fr'])).toMatchObject({
      status: 0,
      stdout: '',
      stderr: '  no results in 2 knowledge bases\n  try it without --where\n',
    })
    const several = await wb(['kb', 'search', '--all', 'refund', '--saved', 'german'])
    expect(several).toMatchObject({ status: 2, stderr: expect.stringContaining('needs a knowledge base') })
  })
})

test('wb kb adoptable lists collections, and rejects attaching one that is in use or missing', {
  timeout: 60_000,
}, async () => {
  const alone = createSandbox()
  await alone.wb(['kb', 'create', 'handbook'])
  expect((await alone.wb(['kb', 'adoptable'])).stdout.split('\n')[0]).toBe(
    ['handbook', '128', 'cosine', 'workbase workbase-lsa', 'yes', 'no', 'yes'].join('\t'),
  )
  const { wb } = await createBases()
  const held = await wb(['kb', 'create', 'handbook', '--attach'])
  expect(held).toMatchObject({ status: 5, stderr: expect.stringContaining('collection_name_taken') })
  const absent = await wb(['kb', 'create', 'other', '--attach'])
  expect(absent).toMatchObject({ status: 4, stderr: expect.stringContaining('collection_not_found') })
})

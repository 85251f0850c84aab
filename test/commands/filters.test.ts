import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { filters } from '../../src/contract/filters.ts'
import { type Base, makeBase } from '../harness/place.ts'
import { inFakeTerminal, inTerminal, withoutSequences } from './terminal.ts'
import { type Ended, place, type Room, roomAt, type Served } from './wb.ts'

type Json = Record<string, unknown>

const shared = place(afterAll)
let server: Served
beforeAll(async () => {
  server = await shared.serve()
})

/** Two knowledge bases with a document each, in languages of their own. */
async function furnished(): Promise<Room & { handbook: Base }> {
  const room = await roomAt(shared, server)
  const fill = async (name: string, lang: string) => {
    const base = await makeBase(room, { workspaceId: room.workspaceId, name })
    const metadata = { lang, year: 1960 }
    await base.ingest(`A refund of the ${name}.`, { sourceFilename: `${name}.md`, metadata })
    return base
  }
  const handbook = await fill('handbook', 'en')
  await fill('kitchen', 'de')
  return { ...room, handbook }
}

function json(ended: Ended): Json {
  expect(ended).toMatchObject({ status: 0 })
  return JSON.parse(ended.stdout) as Json
}

describe('wb filters', { timeout: 60_000 }, () => {
  test('S1-10: create, list, show, update and delete', async () => {
    const { wb } = await furnished()
    const made = await wb(['filters', 'create', 'english', '--kb', 'handbook', '--where', 'lang=en'])
    expect(made).toMatchObject({ status: 0, stderr: '  wb kb search handbook "…" --saved english\n' })
    const id = made.stdout.trim()
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

  test('what is missing or cannot be read is told before anything is made', async () => {
    const { wb } = await furnished()
    const create = ['filters', 'create', 'f', '--kb', 'handbook']
    for (const [args, status, message] of [
      [create, 2, '--filter or --where is missing'],
      [[...create, '--filter', '[]'], 2, '--filter is not a JSON object: []'],
      [[...create, '--where', 'lang'], 2, '--where "lang" is not KEY=VALUE'],
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

  test('in a terminal the condition is asked for, and the name before it is deleted', async () => {
    const here = await furnished()
    const made = await inTerminal(here, ['filters', 'create', 'english', '-k', 'handbook'], {
      answer: text => (text.includes('Condition') ? '{"lang":"en"}\r' : undefined),
    })
    expect(made.status).toBe(0)
    expect(withoutSequences(made.text)).toContain('✓ saved filter english of handbook')
    const kept = await inTerminal(here, ['filters', 'delete', 'english', '-k', 'handbook'], {
      answer: text => (text.includes('to confirm') ? 'engl\r' : undefined),
    })
    expect(kept.status).toBe(2)
    const gone = await inTerminal(here, ['filters', 'delete', 'english', '-k', 'handbook'], {
      answer: text => (text.includes('to confirm') ? 'english\r' : undefined),
    })
    expect(gone.status).toBe(0)
    const { items } = await here.call(filters.list, { params: here.handbook.params, query: {} })
    expect(items).toEqual([])
  })
})

describe('wb kb search', { timeout: 60_000 }, () => {
  test('S1-10: --all finds in every knowledge base and says where, and a citation leads to the document', async () => {
    const here = await furnished()
    const { stdout } = await here.wb(['kb', 'search', '--all', 'refund', '--no-wait'])
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
    expect(json(await here.wb(['documents', 'show', '1', '--json']))).toMatchObject({ documentId: first[2] })
    const hits = json(await here.wb(['kb', 'search', '--all', 'refund', '--json'])) as unknown as Json[]
    expect(hits.map(hit => typeof hit.knowledgeBaseId)).toEqual(['string', 'string'])
    const screen = await inFakeTerminal(here, ['kb', 'search', '--all', 'refund'])
    expect(withoutSequences(screen.text)).toMatch(/ kitchen · kitchen\.md · chunk 0/)
  })

  test('--saved and --where leave out, and nothing found says what to leave out', async () => {
    const { wb, call, handbook } = await furnished()
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

test('wb kb adoptable lists collections; one that is in use, or is not there, cannot be attached', {
  timeout: 60_000,
}, async () => {
  const alone = place()
  await alone.wb(['kb', 'create', 'handbook'])
  expect((await alone.wb(['kb', 'adoptable'])).stdout.split('\n')[0]).toBe(
    ['handbook', '128', 'cosine', 'workbase workbase-lsa', 'yes', 'no', 'yes'].join('\t'),
  )
  const { wb } = await furnished()
  const held = await wb(['kb', 'create', 'handbook', '--attach'])
  expect(held).toMatchObject({ status: 5, stderr: expect.stringContaining('collection_name_taken') })
  const absent = await wb(['kb', 'create', 'other', '--attach'])
  expect(absent).toMatchObject({ status: 4, stderr: expect.stringContaining('collection_not_found') })
})

import { beforeAll, describe, expect, test } from 'vitest'
import { ingest, makeKnowledgeBase, makeMockSpace, makePlace, makeWorkspace } from './fixtures.ts'
import { type Row, useServer } from './harness.ts'

const wire = useServer()

interface Listing {
  readonly list: string
  readonly id: string
}

/** Two lists of each kind with several items, created before the tests. */
const listings: Record<string, Listing> = {}
const kinds = [
  'workspaces',
  'chunking-services',
  'embedding-services',
  'agents',
  'conversations',
  'knowledge-bases',
  'documents',
]

beforeAll(async () => {
  const workspace = await makeWorkspace(wire)
  const other = await makeWorkspace(wire)
  await makeWorkspace(wire)
  const kb = await makeKnowledgeBase(wire, workspace)
  const otherKb = await makeKnowledgeBase(wire, workspace)
  await makeKnowledgeBase(wire, workspace)
  for (const home of [workspace, other]) {
    await makeKnowledgeBase(wire, home)
    await makeKnowledgeBase(wire, home)
    for (let index = 0; index < 3; index++) await makeMockSpace(wire, home, 3)
    for (let index = 0; index < 3; index++) await wire.make(`${home}/agents`, { name: 'agent' }, 'agentId')
  }
  for (const home of [kb, otherKb])
    for (let index = 0; index < 4; index++) await ingest(wire, home, { text: `Passage ${index}.` })
  const [agent, otherAgent] = (await wire.items(`${workspace}/agents`)).map(({ agentId }) => {
    return `${workspace}/agents/${agentId}/conversations`
  }) as [string, string]
  for (const home of [agent, otherAgent])
    for (let index = 0; index < 3; index++) await wire.make(home, {}, 'conversationId')
  Object.assign(listings, {
    agents: { list: `${workspace}/agents`, id: 'agentId' },
    conversations: { list: agent, id: 'conversationId' },
    'other agents': { list: `${other}/agents`, id: 'agentId' },
    'other conversations': { list: otherAgent, id: 'conversationId' },
    'all conversations': { list: `${workspace}/conversations`, id: 'conversationId' },
    workspaces: { list: '/api/v1/workspaces', id: 'workspaceId' },
    'chunking-services': { list: `${workspace}/chunking-services`, id: 'chunkingServiceId' },
    'embedding-services': { list: `${workspace}/embedding-services`, id: 'embeddingServiceId' },
    'knowledge-bases': { list: `${workspace}/knowledge-bases`, id: 'knowledgeBaseId' },
    documents: { list: `${kb}/documents`, id: 'documentId' },
    'other knowledge-bases': { list: `${other}/knowledge-bases`, id: 'knowledgeBaseId' },
    'other documents': { list: `${otherKb}/documents`, id: 'documentId' },
  })
})

async function page(list: string, query: string): Promise<{ items: Row[]; nextCursor: string | null }> {
  return (await wire.get(`${list}?${query}`)) as unknown as { items: Row[]; nextCursor: string | null }
}

async function cursorOf(kind: string): Promise<string> {
  const { nextCursor } = await page(listings[kind]!.list, 'limit=1')
  expect(nextCursor).toMatch(/^[\w-]{1,512}$/)
  return nextCursor!
}

describe.each(kinds)('the list of %s', kind => {
  test('returns every item once, in order, in pages of one', async () => {
    const { list, id } = listings[kind]!
    const whole = (await page(list, 'limit=200')).items.map(item => item[id])
    expect(whole.length).toBeGreaterThan(2)
    const walked: unknown[] = []
    let cursor: string | null = null
    do {
      const { items, nextCursor }: { items: Row[]; nextCursor: string | null } = await page(
        list,
        `limit=1${cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`}`,
      )
      expect(items).toHaveLength(1)
      walked.push(items[0]![id])
      cursor = nextCursor
    } while (cursor !== null && walked.length <= whole.length)
    expect(walked).toEqual(whole)
  })

  test.each(['0', '-1', '201', '1e9', 'abc', '', '1.5', 'NaN', 'Infinity'])(
    'S7.3-13: rejects limit=%s by name',
    async limit => {
      await wire.refused(
        `GET ${listings[kind]!.list}?limit=${limit}`,
        {},
        400,
        'validation_error',
        /^limit: /,
      )
    },
  )

  test('accepts limit=1 and limit=200, and rejects an empty cursor', async () => {
    await page(listings[kind]!.list, 'limit=1')
    await page(listings[kind]!.list, 'limit=200')
    const reply = await wire.send(`GET ${listings[kind]!.list}?cursor=`)
    expect(reply.status).toBe(400)
    expect((reply.body as { error: Row }).error.code).toMatch(/^(validation_error|invalid_cursor)$/)
  })

  test('S7.3-invalid_cursor: rejects malformed, truncated, modified and too long cursors', async () => {
    const cursor = await cursorOf(kind)
    const bad = [
      'x',
      '{}',
      base64url('{}'),
      base64url('null'),
      base64url('{"offset":0}'),
      base64url('{"offset":-1}'),
      base64url('{"k":"2026-01-01T00:00:00.000Z","id":"x"}'),
      cursor.slice(0, -4),
      cursor.slice(4),
      `${cursor}AAAA`,
      `${cursor}%20`,
      'A'.repeat(513),
      cursor + 'A'.repeat(513 - cursor.length),
      ...[0, 0.25, 0.5, 0.75].map(part => tampered(cursor, Math.floor(cursor.length * part))),
    ]
    for (const value of bad)
      await wire.refused(`GET ${listings[kind]!.list}?cursor=${value}`, {}, 400, 'invalid_cursor')
  })

  test('S7.3-invalid_cursor: rejects a cursor of another list', async () => {
    const cursor = await cursorOf(kind)
    for (const [name, { list }] of Object.entries(listings))
      if (name !== kind) await wire.refused(`GET ${list}?limit=1&cursor=${cursor}`, {}, 400, 'invalid_cursor')
  })
})

test('a cursor points to the last row of its page, so a deletion before it shifts nothing', async () => {
  const { list } = listings.documents!
  const first = await page(list, 'limit=2')
  const whole = await page(list, 'limit=200')
  await wire.exchange(`DELETE ${list}/${whole.items[0]!.documentId}`, undefined, 204, undefined)
  const second = await page(list, `limit=1&cursor=${first.nextCursor}`)
  expect(second.items[0]!.documentId).toBe(whole.items[2]!.documentId)
  await wire.exchange(`DELETE ${list}/${whole.items[1]!.documentId}`, undefined, 204, undefined)
  const again = await page(list, `limit=1&cursor=${first.nextCursor}`)
  expect(again.items).toEqual(second.items)
})

test('S7.3-invalid_cursor: a cursor of chunks is valid for one document only', async () => {
  const { kb } = await makePlace(wire, { kind: 'mock' })
  const list = `${kb}/documents`
  const chunker = { maxChars: 10, minChars: 0, overlapChars: 0 }
  const [one, two] = [
    await ingest(wire, kb, { text: 'aaaa bbbb cccc dddd eeee', chunker }),
    await ingest(wire, kb, { text: 'ffff gggg hhhh iiii jjjj', chunker }),
  ]
  const cursor = (await wire.send(`GET ${list}/${one}/chunks?limit=1`)).headers['x-next-cursor']
  expect(cursor).toMatch(/^[\w-]{1,512}$/)
  for (const bad of [cursor!.slice(0, -4), tampered(cursor!, 3), 'x', 'A'.repeat(513)])
    await wire.refused(`GET ${list}/${one}/chunks?cursor=${bad}`, {}, 400, 'invalid_cursor')
  await wire.refused(`GET ${list}/${two}/chunks?cursor=${cursor}`, {}, 400, 'invalid_cursor')
  await wire.refused(`GET ${list}?cursor=${cursor}`, {}, 400, 'invalid_cursor')
})

function base64url(text: string): string {
  return Buffer.from(text).toString('base64url')
}

/** Returns the cursor with another character at one position. */
function tampered(cursor: string, at: number): string {
  const other = cursor[at] === 'm' ? 'Z' : 'm'
  return cursor.slice(0, at) + other + cursor.slice(at + 1)
}

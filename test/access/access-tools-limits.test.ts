import { beforeEach, describe, expect, test } from 'vitest'
import { limits } from '../../src/contract/limits.ts'
import type { RowStore } from '../../src/storage/rows.ts'
import type { JsonObject } from './principal-requests.ts'
import { openRestrictedWorkspace, type RestrictedWorkspace } from './restricted-workspace.ts'
import { countTurns, disconnectWhen, slowTimer } from './turns.ts'

let place: RestrictedWorkspace
/** Total lengths of the rows that each read of the store returned. */
let charsRead: number[]

beforeEach(async () => {
  charsRead = []
  place = await openRestrictedWorkspace({ rows: withChars })
})

/** Returns the store, and measures what is read from it. */
function withChars(store: RowStore): RowStore {
  return {
    ...store,
    async list(table, query) {
      const rows = await store.list(table, query)
      charsRead.push(rows.reduce((sum, { text }) => sum + text.length, 0))
      return rows
    },
  }
}

async function createDocument(fields: JsonObject): Promise<string> {
  const { status, text, body } = await place.operator(`POST ${place.base}/documents`, fields)
  expect(status, text).toBe(201)
  return String(body.documentId)
}

async function tool(name: string, body: JsonObject, query = '') {
  const { knowledgeBaseId } = place
  const answer = await place.operator(`POST ${place.workspace}/policy/${name}${query}`, {
    knowledgeBaseId,
    ...body,
  })
  expect(answer.status, answer.text.slice(0, 200)).toBe(200)
  const page = answer.body as Record<string, unknown> & { items: JsonObject[]; nextCursor: string | null }
  return Object.assign(page, { chars: answer.text.length })
}

const readers = (count: number, chars = 5) =>
  Array.from({ length: count }, (_, n) => `p${n}`.padEnd(chars, 'x'))

/** Returns a policy of `count` conditions that no document satisfies. */
const longPolicy = (count: number) => Array(count).fill("m = '1'").join(' OR ')

const comparison = { policyDsl: "m = '1'" }

describe('a comparison of policies', () => {
  test('security: lets other requests run between the principals of one document', async () => {
    await createDocument({ visibleTo: readers(150) })
    slowTimer()
    expect(await countTurns(tool('diff', comparison, '?limit=200'))).toBeGreaterThan(30)
  })

  test('security: ends when the caller disconnects', async () => {
    await createDocument({ visibleTo: readers(150) })
    const { wb, workspace, knowledgeBaseId } = place
    const request = new Request(`http://localhost${workspace}/policy/diff?limit=200`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ knowledgeBaseId, ...comparison }),
    })
    const readings = slowTimer()
    await disconnectWhen(
      () => readings() >= 60,
      signal => wb.runtime.fetch(new Request(request, { signal }), 'operator'),
    )
    expect(readings()).toBeLessThan(150)
  })

  test('security: examines fewer principals per page if the policies are long', async () => {
    await createDocument({ visibleTo: readers(60) })
    const body = { policyDsl: longPolicy(350) }
    const first = await tool('diff', body, '?limit=200')
    expect(first.items.length).toBeGreaterThan(10)
    expect(first.items.length).toBeLessThan(60)
    const rest = await tool('diff', body, `?limit=200&cursor=${first.nextCursor}`)
    expect(new Set([...first.items, ...rest.items].map(item => item.principalId))).toEqual(
      new Set(readers(60)),
    )
    expect(rest.nextCursor).toBeNull()
  })

  test('security: ends a page early if it lists too many documents', async () => {
    const names = readers(200, 120)
    for (let n = 0; n < 30; n++) await createDocument({ visibleTo: names })
    const found: unknown[] = []
    let query = '?limit=200'
    for (let pages = 0; ; pages++) {
      const { items, nextCursor, chars } = await tool('diff', { ...comparison, documentsListed: 100 }, query)
      expect(chars).toBeLessThan(3_000_000)
      for (const item of items) expect(item).toMatchObject({ loses: { total: 30 }, gains: { total: 0 } })
      found.push(...items.map(item => item.principalId))
      if (nextCursor === null) {
        expect(pages).toBeGreaterThan(0)
        break
      }
      query = `?limit=200&cursor=${nextCursor}`
    }
    expect(found).toEqual([...names].sort())
  })
})

test('security: many comparisons at once let other requests run between any two of them', async () => {
  await createDocument({ visibleTo: readers(150) })
  slowTimer()
  const one = await countTurns(tool('diff', comparison, '?limit=200'))
  const ten = await countTurns(
    Promise.all(Array.from({ length: 10 }, () => tool('diff', comparison, '?limit=200'))),
  )
  expect(ten).toBeGreaterThan(5 * one)
})

test('security: a list of viewers lets other requests run between principals', async () => {
  const documentId = await createDocument({ visibleTo: readers(300) })
  slowTimer()
  expect(await countTurns(tool('viewers', { documentId }, '?limit=200'))).toBeGreaterThan(30)
})

test('security: a list of documents reads a limited size at a time, and a page ends early', async () => {
  const count = 64
  const metadata = { m: 'x'.repeat(60_000) }
  for (let n = 0; n < count; n++) await createDocument({ metadata, visibleTo: ['ada', ...readers(900, 250)] })
  for (const principalId of ['ada', 'bob']) {
    const first = await tool('documents', { principalId }, '?limit=200')
    const rest = await tool('documents', { principalId }, `?limit=200&cursor=${first.nextCursor}`)
    expect(first.nextCursor).not.toBeNull()
    expect(rest.nextCursor).toBeNull()
    expect(first.items.length + rest.items.length).toBe(principalId === 'ada' ? count : 0)
  }
  expect(Math.max(...charsRead)).toBeLessThan(2_500_000)
})

test('security: the length of an explanation does not depend on the size of the document', async () => {
  const documentId = await createDocument({
    metadata: { m: 'x'.repeat(60_000) },
    visibleTo: readers(500, 250),
    sourceFilename: 'f'.repeat(4_096),
  })
  const policyDsl = `'p' = ANY(visible_to) OR ${longPolicy(200)}`
  const answer = await tool('explain', { principalId: 'ada', documentId, policyDsl })
  expect(answer.chars).toBeLessThan(60_000)
  expect(answer).toMatchObject({
    reasonsTotal: 201,
    reasons: { length: limits.policyReasonsMax },
    document: { visibleToTotal: 500, visibleTo: { length: 20 } },
  })
  const [list, text] = answer.reasons as { values: JsonObject[] }[]
  expect(text!.values).toEqual([{ name: 'm', value: 'x'.repeat(200), cut: true, missing: false }])
  expect(list!.values).toMatchObject([{ name: 'visible_to', value: { length: 20 }, cut: true }])
})

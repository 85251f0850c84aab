import { beforeAll, describe, expect, test } from 'vitest'
import { limits } from '../../src/contract/limits.ts'
import { ingest as ingestAs, openRestrictedWorkspace } from '../access/restricted-workspace.ts'
import { ingest, makeKnowledgeBase, makePlace, type Place } from './fixtures.ts'
import { type Row, useServer } from './harness.ts'

const wire = useServer()

const passages = 200
/** Together, the passages are longer than an answer, because each has a copy of the metadata. */
const metadata = { note: 'x'.repeat(60_000) }
const chunker = { maxChars: 32, minChars: 0, overlapChars: 0 }
/** Number of passages that fit into an answer, with the one that exceeds its limit. */
const fitting = Math.ceil(limits.answerChars / metadata.note.length)

/** Returns a text whose passages have different scores for the question `needle`. */
function textOf(count: number): string {
  const lines = Array.from({ length: count }, (_, at) => `needle ${'a '.repeat(at % 12)}${at}.`)
  return lines.map(line => line.padEnd(chunker.maxChars)).join('')
}

const long = { text: textOf(passages), metadata, chunker }

let place: Place
let documentId: string

beforeAll(async () => {
  place = await makePlace(wire, {}, { semantic: false })
  documentId = await ingest(wire, place.kb, long)
})

async function search(path: string, body: object) {
  const reply = await wire.send(`POST ${path}/search`, {
    json: { text: 'needle', lexicalWeight: 1, ...body },
  })
  expect(reply.status, reply.text.slice(0, 300)).toBe(200)
  const hits = reply.body as (Row & { id: string; score: number })[]
  return { hits, ids: hits.map(({ id }) => id), ignored: reply.headers['x-workbase-ignored'], reply }
}

describe('a search', () => {
  test('returns the best hits that fit, and names topK as ignored', async () => {
    const all = await search(place.kb, { topK: passages })
    expect(all.ignored).toBe('topK')
    expect(all.ids.length).toBeLessThanOrEqual(fitting)
    expect(all.ids.length).toBeGreaterThan(0.9 * fitting)
    expect(all.reply.text.length).toBeLessThan(1.1 * limits.answerChars)
    const few = await search(place.kb, { topK: 100 })
    expect(few.ignored).toBeUndefined()
    expect(all.ids.slice(0, 100)).toEqual(few.ids)
  })

  test('in several knowledge bases returns the best hits that fit', async () => {
    const other = await makeKnowledgeBase(wire, place.workspace, { semantic: false })
    // The last character differs, so that it is not the same document.
    await ingest(wire, other, { ...long, text: `${textOf(passages)}.` })
    const all = await search(place.workspace, { topK: 2 * passages })
    expect(all.ignored).toBe('topK')
    expect(all.ids.length).toBeLessThanOrEqual(fitting)
    expect(new Set(all.hits.map(hit => hit.knowledgeBaseId)).size).toBe(2)
    const few = await search(place.workspace, { topK: 50 })
    expect(few.ignored).toBeUndefined()
    expect(few.ids).toEqual(all.ids.slice(0, 50))
    await wire.send(`DELETE ${other}`)
  })

  test('explains fewer hits if the question is long', async () => {
    const { kb } = await makePlace(wire, {}, { semantic: false })
    const topK = 300
    await ingest(wire, kb, { text: textOf(topK), chunker })
    const text = `needle ${Array.from({ length: 600 }, (_, at) => `word${at}`).join(' ')}`
    const explained = await search(kb, { text, topK, explain: true })
    expect(explained.ignored).toBe('topK')
    expect(explained.hits.length).toBeGreaterThan(1)
    expect(explained.hits[0]).toMatchObject({ explanation: { words: expect.any(Array) } })
    expect(explained.reply.text.length).toBeLessThan(1.1 * limits.answerChars)
    expect((await search(kb, { text, topK })).hits).toHaveLength(topK)
  })

  test('ends at the same hit if there are long passages that the caller may not see [security rule 4]', async () => {
    const { base, operator, as } = await openRestrictedWorkspace()
    await ingestAs(operator, base, { ...long, visibleTo: ['bob'] })
    const asBob = async () => {
      const body = { text: 'needle', lexicalWeight: 1, topK: passages }
      const reply = await as('bob')(`POST ${base}/search`, body)
      return (reply.body as unknown as { id: string }[]).map(({ id }) => id)
    }
    const before = await asBob()
    expect(before.length).toBeLessThan(passages)
    await ingestAs(operator, base, { ...long, text: `${long.text}more`, visibleTo: ['alice'] })
    expect(await asBob()).toEqual(before)
  })
})

test('pages of long chunks end early, and their cursors return every chunk once', async () => {
  const sizes: number[] = []
  const indexes: unknown[] = []
  let query = ''
  do {
    const reply = await wire.send(`GET ${place.kb}/documents/${documentId}/chunks?limit=1000${query}`)
    const page = reply.body as Row[]
    expect(reply.text.length).toBeLessThan(1.1 * limits.answerChars)
    sizes.push(page.length)
    indexes.push(...page.map(({ chunkIndex }) => chunkIndex))
    const cursor = reply.headers['x-next-cursor']
    query = cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''
  } while (query && sizes.length < passages)
  expect(sizes).toHaveLength(2)
  expect(indexes).toEqual(Array.from({ length: passages }, (_, at) => at))
})

test('why-not finds the best of many long passages', async () => {
  const body = { text: 'needle', documentId, topK: passages, lexicalWeight: 1 }
  const found = await wire.send(`POST ${place.kb}/search/why-not`, { json: body })
  expect(found.body).toMatchObject({ stage: 'found', rank: 1, passage: { chunkIndex: expect.any(Number) } })
  const filtered = { ...body, filter: { note: 'y' } }
  expect((await wire.send(`POST ${place.kb}/search/why-not`, { json: filtered })).body).toMatchObject({
    stage: 'filter',
  })
})

import { expect, test } from 'vitest'
import { kb } from '../../src/contract/knowledge.ts'
import type { Send } from '../access/principal-requests.ts'
import { missingId, openRestrictedWorkspace } from '../access/restricted-workspace.ts'
import { fakeSentenceModel } from '../fakes/sentence-model.ts'
import { type Base, makeBase } from '../harness/resources.ts'
import { open, type TestRuntime } from '../harness/runtime.ts'

async function openBase() {
  const wb = await open({ sentenceModel: fakeSentenceModel() })
  const base = await makeBase(wb)
  const ingest = async (text: string, metadata = {}) =>
    (await base.ingest(text, { metadata })).document.documentId
  const best = await ingest('Revoke a key, and revoke its keys, to revoke a key.', { lang: 'en' })
  const weak = await ingest('A long text about apples that ripen in autumn, which also mentions a key.')
  return { wb, base, best, weak, ingest }
}

function whyNot(wb: TestRuntime, { params }: Base, documentId: string, body = {}) {
  return wb.call(kb.whyNot, { params, body: { text: 'revoke key', documentId, ...body } })
}

test('a document below topK has its rank, the scores to beat, and the topK that includes it', async () => {
  const { wb, base, best, weak } = await openBase()
  await wb.settle()
  const answer = await whyNot(wb, base, weak, { topK: 1 })
  expect(answer).toMatchObject({
    stage: 'topK',
    rank: 2,
    passage: { id: `${weak}:0`, chunkIndex: 0 },
    beatenBy: [{ rank: 1, documentId: best, score: answer.cutoffScore }],
  })
  expect(answer.score).toBeLessThan(answer.cutoffScore!)
  const [lexical] = answer.lists
  expect(lexical).toMatchObject({ name: 'lexical', rank: 2 })
  expect(lexical!.score).toBeLessThan(lexical!.cutoffScore!)
  expect(answer.words).toMatchObject([
    { word: 'revoke', score: 0 },
    { word: 'key', score: expect.any(Number) },
  ])
  expect(answer.remedies).toEqual([
    { action: 'raiseTopK', topK: 2 },
    { action: 'useWords', words: ['revoke'] },
  ])
  expect(await whyNot(wb, base, weak, { topK: 2 })).toMatchObject({ stage: 'found', rank: 2, remedies: [] })
})

test('says that the filter excludes the document', async () => {
  const { wb, base, weak } = await openBase()
  expect(await whyNot(wb, base, weak, { filter: { lang: 'en' } })).toMatchObject({
    stage: 'filter',
    lists: [],
    remedies: [{ action: 'removeFilter' }],
  })
})

test('says that no passage has the phrase', async () => {
  const { wb, base, weak } = await openBase()
  const answer = await whyNot(wb, base, weak, { text: '"revoke a key"' })
  expect(answer).toMatchObject({ stage: 'phrase', rank: null })
  expect(answer.remedies[0]).toEqual({ action: 'removePhrase' })
})

test('a document outside the candidates has its scores, and the topK that includes it', async () => {
  const { wb, base, weak, ingest } = await openBase()
  for (let count = 0; count < 101; count++) await ingest(`Revoke a key ${count}.`)
  const answer = await whyNot(wb, base, weak, { lexicalWeight: 1 })
  expect(answer).toMatchObject({ stage: 'candidates', rank: null, lists: [{ name: 'lexical', rank: 103 }] })
  expect(answer.remedies[0]).toEqual({ action: 'raiseTopK', topK: 103 })
})

test('says that a document has no passages, or that sentence vectors are missing', async () => {
  const { wb, base, weak } = await openBase()
  const { body } = await wb.send(`POST ${base.path}/documents`, {})
  expect(await whyNot(wb, base, String(body.documentId))).toMatchObject({
    stage: 'ingest',
    status: 'pending',
    remedies: [{ action: 'wait' }],
  })
  const { remedies } = await whyNot(wb, base, weak, { text: 'withdraw a key', topK: 1 })
  expect(remedies).toContainEqual({ action: 'waitForVectors' })
})

test('sentence vectors are missing only if the search would use them', async () => {
  const { wb, base, ingest } = await openBase()
  await wb.settle()
  const added = await ingest('A gardener has a key.')
  const remediesOf = async (body: object) =>
    (await whyNot(wb, base, added, { text: 'withdraw a key', topK: 1, ...body })).remedies.map(
      ({ action }) => action,
    )
  expect(await remediesOf({})).toContain('waitForVectors')
  expect(await remediesOf({ lexicalWeight: 1 })).not.toContain('waitForVectors')
  expect(await remediesOf({ text: 'revoke a key' })).not.toContain('waitForVectors')
  await wb.settle()
  expect(await remediesOf({})).not.toContain('waitForVectors')
})

test('a hidden document is not found, like a missing one; a caller who manages access learns that it is hidden', async () => {
  const { workspace, base, operator, as } = await openRestrictedWorkspace()
  const text = 'Revoke a key.'
  const made = await operator(`POST ${base}/ingest`, { text, visibleTo: ['alice'] })
  const { documentId } = made.body.document as { documentId: string }
  const ask = (send: Send, id: string) =>
    send(`POST ${base}/search/why-not`, { text: 'revoke key', documentId: id })
  expect((await ask(as('alice'), documentId)).body).toMatchObject({ stage: 'found', rank: 1 })
  const [hidden, missing] = [await ask(as('bob'), documentId), await ask(as('bob'), missingId)]
  expect([hidden.status, missing.status]).toEqual([404, 404])
  const withoutIds = ({ body }: typeof hidden, id: string) => {
    const { requestId: _, ...error } = body.error as { requestId?: string }
    return JSON.stringify(error).replaceAll(id, 'ID')
  }
  expect(withoutIds(hidden, documentId)).toBe(withoutIds(missing, missingId))

  const key = { label: 'admin', role: 'admin', principalId: 'root' }
  const { plaintext } = (await operator(`POST ${workspace}/api-keys`, key)).body
  const viewing = { authorization: `Bearer ${plaintext}`, 'x-view-as-principal': 'bob' }
  const admin: Send = (line, json) => as('root')(line, json, viewing)
  expect((await ask(admin, documentId)).body).toMatchObject({
    stage: 'visibility',
    status: null,
    passage: null,
    remedies: [{ action: 'grantAccess' }],
  })
  expect((await ask(admin, missingId)).status).toBe(404)
})

test('finds the best passage of a long document', async () => {
  const { wb, base } = await openBase()
  const text = `${'Apples ripen in autumn. '.repeat(1_200)}A badger digs.`
  const chunker = { maxChars: 24, minChars: 1, overlapChars: 0 }
  const { document } = await base.ingest(text, { chunker })
  const answer = await whyNot(wb, base, document.documentId, { text: 'badger', lexicalWeight: 1 })
  expect(answer).toMatchObject({ stage: 'found', rank: 1 })
  expect(answer.passage!.chunkIndex).toBeGreaterThan(1_000)
})

test('names the stage that moved a document below topK, and grouping as a remedy', async () => {
  const { wb, base, weak, ingest } = await openBase()
  const alike = await ingest('Revoke a key, and revoke its keys, to revoke a key now.', { type: 'note' })
  const diverse = await whyNot(wb, base, alike, { topK: 2, diversity: 1, lexicalWeight: 1 })
  expect(diverse).toMatchObject({ stage: 'diversity', rank: 3 })
  expect(diverse.remedies.slice(0, 2)).toEqual([
    { action: 'removeDiversity' },
    { action: 'raiseTopK', topK: 3 },
  ])
  const boosts = [{ filter: { type: 'note' }, factor: 0.1 }]
  const boosted = await whyNot(wb, base, alike, { topK: 2, boosts, lexicalWeight: 1 })
  expect(boosted).toMatchObject({ stage: 'boosts', rank: 3, remedies: [{ action: 'removeBoosts' }, {}] })
  const chunker = { maxChars: 30, minChars: 1, overlapChars: 0 }
  await base.ingest('Revoke the key at once.\n\n'.repeat(3), { chunker })
  const plain = { topK: 4, lexicalWeight: 1 }
  const crowded = await whyNot(wb, base, weak, plain)
  expect(crowded.stage).toBe('topK')
  expect(crowded.remedies).toContainEqual({ action: 'group' })
  expect((await whyNot(wb, base, weak, { ...plain, groupBy: 'document' })).stage).toBe('found')
})

test('suggests a topK above the number of candidates only if it finds the document', async () => {
  const { wb, base, ingest } = await openBase()
  const ids: string[] = []
  for (let count = 0; count < 200; count++)
    ids.push(
      await ingest(
        count % 2 === 0
          ? `A key of house ${count}. ${'Apples ripen. '.repeat(count % 9)}`
          : `Withdraw ${count} tokens. ${'Revoke. '.repeat(count % 5)}`,
      ),
    )
  await wb.settle()
  let suggested = 0
  for (const id of ids.slice(0, 40)) {
    const body = { text: 'revoke the key of a house', topK: 5, lexicalWeight: 0.5 }
    const { rank, remedies } = await whyNot(wb, base, id, body)
    const topK = remedies.find(({ action }) => action === 'raiseTopK')?.topK
    if (topK === undefined || (rank ?? Number.POSITIVE_INFINITY) <= 100) continue
    suggested++
    expect(await whyNot(wb, base, id, { ...body, topK })).toMatchObject({ stage: 'found' })
  }
  expect(suggested).toBeGreaterThan(0)
}, 60_000)

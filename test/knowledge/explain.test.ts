import { expect, test } from 'vitest'
import { kb, type SearchHit } from '../../src/contract/knowledge.ts'
import { fakeSentenceModel } from '../fakes/sentence-model.ts'
import { makeBase } from '../harness/resources.ts'
import { open } from '../harness/runtime.ts'

const texts = [
  'Revoke a key when somebody leaves the team.',
  'Throw the ball to the dog.',
  'Apples ripen in autumn.',
  'The pump needs oil every month.',
]

async function openBase() {
  const wb = await open({
    sentenceModel: fakeSentenceModel(['revoke', 'throw', 'discard'], ['key', 'token', 'credential']),
  })
  const base = await makeBase(wb)
  for (const text of texts) await base.ingest(text)
  await wb.settle()
  return { wb, base }
}

const listsOf = ({ explanation }: SearchHit) =>
  Object.fromEntries(explanation!.lists.map(list => [list.name, list]))

const sumOf = (numbers: readonly number[]) => numbers.reduce((sum, number) => sum + number, 0)

test('the contributions of the lists add up to the score, and their weights to 1', async () => {
  const { base } = await openBase()
  const hits = await base.search('throw away a token', { explain: true })
  expect(hits.length).toBeGreaterThan(1)
  for (const hit of hits) {
    const { lists, fusedScore } = hit.explanation!
    expect(lists.map(({ name }) => name)).toEqual(['lexical', 'vector', 'sentences'])
    expect(sumOf(lists.map(({ weight }) => weight))).toBeCloseTo(1, 9)
    expect(sumOf(lists.map(({ contribution }) => contribution))).toBeCloseTo(hit.score, 9)
    expect(fusedScore).toBeCloseTo(hit.score, 9)
    for (const { weight, scaledScore, contribution } of lists)
      expect(contribution).toBeCloseTo(weight * scaledScore!, 9)
  }
  expect(listsOf(hits[0]!)).toMatchObject({ lexical: { rank: null, score: null }, sentences: { rank: 1 } })
})

test('explains the weights by coverage, or by the weight of the request', async () => {
  const { base } = await openBase()
  const [byMeaning] = await base.search('throw away a token', { explain: true })
  expect(byMeaning!.explanation!.weighting).toMatchObject({ requested: false, coverage: expect.any(Number) })
  const [byWords] = await base.search('revoke key', { explain: true })
  expect(byWords!.explanation!.weighting).toMatchObject({ coverage: 1 })
  expect(listsOf(byWords!).sentences).toBeUndefined()
  const [requested] = await base.search('revoke key', { explain: true, lexicalWeight: 0.4 })
  expect(requested!.explanation!.weighting).toMatchObject({
    lexicalWeight: 0.4,
    requested: true,
    coverage: null,
  })
})

test('explains the lexical score word by word', async () => {
  const { base } = await openBase()
  const [hit] = await base.search('revoke keys appels', { explain: true, lexicalWeight: 1, topK: 1 })
  const { words, lists, weighting, filtered } = hit!.explanation!
  expect(words).toMatchObject([
    { word: 'revoke', match: 'word', passages: 1 },
    { word: 'keys', match: 'word', terms: ['kei'], passages: 1 },
    { word: 'appels', match: 'similar', terms: ['appl'], passages: 1, score: 0 },
  ])
  expect(sumOf(words.map(({ score }) => score))).toBeCloseTo(hit!.score, 9)
  expect(lists).toMatchObject([{ name: 'lexical', weight: 1, rank: 1, score: hit!.score, scaledScore: null }])
  expect([weighting, filtered]).toEqual([null, false])
})

test('a search by vectors explains only them, and reranking shows the rank before it', async () => {
  const { base } = await openBase()
  const [hit] = await base.search('revoke key', { explain: true, hybrid: false })
  expect(hit!.explanation).toMatchObject({ lists: [{ name: 'vector', weight: 1, rank: 1 }], words: [] })
  expect(hit!.explanation!.rerank).toBeNull()
  const hits = await base.search('revoke key', { explain: true, hybrid: false, rerank: true })
  expect(hits.map(({ explanation }) => explanation!.rerank!.to)).toEqual(hits.map((_, index) => index + 1))
})

test('a search of several knowledge bases explains the weight of each', async () => {
  const { wb, base } = await openBase()
  const { workspaceId } = base.params
  const other = await makeBase(wb, { workspaceId })
  await other.ingest('The key opens the front door.')
  const hits = await wb.call(kb.searchMany, {
    params: { workspaceId },
    body: { text: 'revoke key', explain: true },
  })
  for (const { score, explanation } of hits)
    expect(explanation!.knowledgeBaseWeight! * explanation!.fusedScore).toBeCloseTo(score, 9)
  expect(new Set(hits.map(({ knowledgeBaseId }) => knowledgeBaseId)).size).toBe(2)
})

import { describe, expect, test } from 'vitest'
import { kb, type SearchHit } from '../../src/contract/knowledge.ts'
import { records } from '../../src/contract/records.ts'
import { ingestSentences, sentence } from '../harness/fitted-spaces.ts'
import { type Base, baseIn, makeBase, makeMockService, makeWorkspace } from '../harness/resources.ts'
import { open, type TestRuntime } from '../harness/runtime.ts'

const question = 'why does the rotor flutter under resonance'
const lexicalOnly = { lexicalWeight: 1 }
const vectorOnly = { hybrid: false }

/** A knowledge base with given vectors, so no model is fitted and no feedback applies. */
async function mockBase(wb: TestRuntime, count: number): Promise<Base> {
  const { workspaceId } = await makeWorkspace(wb)
  const { embeddingServiceId } = await makeMockService(wb, workspaceId, { embeddingDimension: 32 })
  const base = await makeBase(wb, { workspaceId, embeddingServiceId })
  await ingestSentences(base, 0, count)
  return base
}

async function fittedBase(wb: TestRuntime, count: number): Promise<Base> {
  const base = await makeBase(wb)
  await ingestSentences(base, 0, count)
  await wb.settle()
  return base
}

function scores(hits: readonly SearchHit[]): Map<string, number> {
  return new Map(hits.map(({ id, score }) => [id, score]))
}

/** Scales scores to 0 to 1, where `floor` and less is 0. */
function scaled(hits: readonly SearchHit[], floor: number): Map<string, number> {
  const most = Math.max(...hits.map(({ score }) => score))
  return new Map(hits.map(({ id, score }) => [id, Math.max(0, (score - floor) / (most - floor))]))
}

describe('search modes', () => {
  test.each([0, 0.25, 0.5, 0.9])(
    'a hybrid score is (1-w) times the vector score plus w times the lexical score, w = %d',
    async weight => {
      const base = await mockBase(await open(), 40)
      const nearest = await base.search(question, vectorOnly)
      const byVector = scaled(nearest, Math.max(0, nearest.at(-1)!.score))
      const byWords = scaled(await base.search(question, lexicalOnly), 0)
      const hybrid = await base.search(question, { hybrid: true, lexicalWeight: weight })
      if (weight > 0) expect(hybrid).toHaveLength(40)
      for (const { id, score } of weight === 0 ? [] : hybrid)
        expect(score).toBeCloseTo((1 - weight) * byVector.get(id)! + weight * (byWords.get(id) ?? 0), 10)
      if (weight === 0) expect(hybrid).toEqual(await base.search(question, vectorOnly))
    },
  )

  test('search is hybrid with weight 0.5 by default', async () => {
    const base = await mockBase(await open(), 40)
    const expected = await base.search(question, { hybrid: true, lexicalWeight: 0.5 })
    expect(await base.search(question)).toEqual(expected)
  })

  test('the lexical weight is 0.8 with a placeholder of the built-in embedder, and 0.5 when it is ready', async () => {
    const wb = await open()
    const base = await makeBase(wb)
    await ingestSentences(base, 0, 30)
    expect(await base.search(question)).toEqual(await base.search(question, { lexicalWeight: 0.8 }))
    await wb.settle()
    expect(await base.search(question)).toEqual(await base.search(question, { lexicalWeight: 0.5 }))
    expect(await base.search(question)).not.toEqual(await base.search(question, { lexicalWeight: 0.8 }))
  })

  test('lexical search returns passages with a matching word, vector search returns all; PATCH lexical changes the default', async () => {
    const wb = await open()
    const base = await mockBase(wb, 40)
    const withRotor = Array.from({ length: 40 }, (_, n) => sentence(n)).filter(text => text.includes('rotor'))
    const found = await base.search('rotor', lexicalOnly)
    expect(found.map(({ payload }) => payload!.chunkText).sort()).toEqual(withRotor.sort())
    expect(await base.search('rotor', vectorOnly)).toHaveLength(40)
    const lexical = { enabled: false, analyzer: null, options: {} }
    await wb.call(kb.update, { params: base.params, body: { lexical } })
    expect(await base.search('rotor')).toEqual(await base.search('rotor', vectorOnly))
  })
})

describe('filters', () => {
  test.each([
    ['a mock space', mockBase],
    ['a fitted space', fittedBase],
  ])('are applied before topK: one of 500 is found, in %s', { timeout: 60_000 }, async (_, make) => {
    const wb = await open()
    const base = await make(wb, 500)
    const { document } = await base.ingest('Soup of carrots.', { metadata: { only: true } })
    for (const fields of [{}, vectorOnly, { lexicalWeight: 0.9 }]) {
      const found = await base.search(question, { ...fields, topK: 1, filter: { only: true } })
      expect(found.map(({ payload }) => payload!.documentId)).toEqual([document.documentId])
    }
    const found = await base.search('carrots rotor', { ...lexicalOnly, topK: 1, filter: { only: true } })
    expect(found).toHaveLength(1)
    expect(await base.search(question, { filter: { only: false } })).toEqual([])
  })

  test('limit the passages that are used for feedback', async () => {
    const seen: unknown[] = []
    const wb = await open({
      content: store => ({
        ...store,
        async read(key, numbers, options) {
          const views = await store.read(key, numbers, options)
          if (options.vectors) seen.push(...views.map(({ payload }) => payload.team))
          return views
        },
      }),
    })
    const base = await makeBase(wb)
    for (let n = 0; n < 40; n++)
      await base.ingest(sentence(n), { metadata: { team: n % 8 === 0 ? 'few' : 'many' } })
    await wb.settle()
    const found = await base.search(question, { filter: { team: 'few' } })
    expect(found.map(({ payload }) => payload!.team)).toEqual(Array(5).fill('few'))
    expect(seen).toEqual(['few', 'few', 'few'])
  })
})

describe('rerank', () => {
  test('on request combines the ranks of the hits with their lexical ranks', async () => {
    const base = await mockBase(await open(), 40)
    const nearest = await base.search(question, { ...vectorOnly, topK: 5 })
    const again = await base.search(question, { ...vectorOnly, topK: 5, rerank: true })
    const lexical = scores(await base.search(question, lexicalOnly))
    const byWords = nearest.map(({ id }) => id).filter(id => lexical.has(id))
    byWords.sort((a, b) => lexical.get(b)! - lexical.get(a)!)
    const reciprocal = (rank: number) => (rank < 0 ? 0 : 1 / (rank + 2))
    const worth = ({ id }: SearchHit, at: number) =>
      0.8 * reciprocal(at) + 0.2 * reciprocal(byWords.indexOf(id))
    const expected = nearest
      .map((hit, at) => ({ id: hit.id, worth: worth(hit, at) }))
      .sort((a, b) => b.worth - a.worth)
    expect(again.map(({ id }) => id)).toEqual(expected.map(({ id }) => id))
    expect(again.map(({ id }) => id)).not.toEqual(nearest.map(({ id }) => id))
    expect(again.map(({ score }) => score)).toEqual(nearest.map(({ score }) => score))
  })

  test('by a service that cannot be called is named as ignored; false and vectors do not request it', async () => {
    const wb = await open()
    const base = await mockBase(wb, 12)
    const before = await base.search(question)
    const service = { name: 'reranker', provider: 'unknown', modelName: 'm' }
    const services = `POST /api/v1/workspaces/${base.params.workspaceId}/reranking-services`
    const rerankingServiceId = String((await wb.send(services, service)).body.rerankingServiceId)
    await wb.call(kb.update, { params: base.params, body: { rerankingServiceId } })
    const ask = (json: object) => wb.send(`POST ${base.path}/search`, { topK: 1_000, ...json })
    for (const rerank of [undefined, true]) {
      const response = await ask({ text: question, rerank })
      expect(response.headers.get('x-workbase-ignored')).toBe('rerank')
      expect(response.body).toEqual(before)
    }
    for (const json of [{ text: question, rerank: false }, { vector: Array(32).fill(1) }])
      expect((await ask(json)).headers.get('x-workbase-ignored')).toBeNull()
  })
})

describe('the space of the built-in embedder', () => {
  test('S7.3-vector_collection_not_allowed: accepts no query vector in any state, and returns none', async () => {
    const wb = await open()
    const base = await makeBase(wb)
    await ingestSentences(base, 0, 12)
    const vector = Array(128).fill(0.1)
    for (const state of ['placeholder', 'ready']) {
      expect((await base.show()).embedder!.state).toBe(state)
      const search = await wb.send(`POST ${base.path}/search`, { vector })
      expect(search).toMatchObject({
        status: 400,
        body: { error: { code: 'vector_collection_not_allowed' } },
      })
      const upsert = await wb.send(`POST ${base.path}/records`, { records: [{ id: 'r', vector }] })
      expect(upsert).toMatchObject({
        status: 400,
        body: { error: { code: 'vector_collection_not_allowed' } },
      })
      const shown = await wb.send(`POST ${base.path}/search`, { text: 'rotor', includeEmbeddings: true })
      expect(shown.headers.get('x-workbase-ignored')).toBe('includeEmbeddings')
      expect(shown.text).not.toContain('"vector"')
      await wb.settle()
    }
  })

  test('S7.3-dimension_mismatch: does not apply to another provider, whose query vectors need its dimension', async () => {
    const wb = await open()
    const base = await mockBase(wb, 3)
    for (const length of [31, 33]) {
      const vector = Array(length).fill(0.1)
      await expect(wb.call(kb.search, { params: base.params, body: { vector } })).rejects.toMatchObject({
        code: 'dimension_mismatch',
      })
    }
    const [hit] = await base.search('rotor', { includeEmbeddings: true })
    expect(hit!.vector).toHaveLength(32)
  })

  test.each([
    [{ hybrid: true }, /^hybrid: requires text$/],
    [{ rerank: true }, /^rerank: requires text$/],
    [{ filter: { $none: 1 } }, /\$none/],
  ])(
    'rejects the arguments %j before a wrong vector length [S7.3-validation_error]',
    async (fields, message) => {
      const wb = await open()
      const base = await mockBase(wb, 3)
      for (const length of [31, 32]) {
        const body = { vector: Array(length).fill(0.1), ...fields }
        await expect(wb.call(kb.search, { params: base.params, body })).rejects.toMatchObject({
          code: 'validation_error',
          message: expect.stringMatching(message),
        })
      }
    },
  )
})

describe('scores', () => {
  test('S1-07: do not depend on other knowledge bases', async () => {
    const wb = await open()
    const base = await fittedBase(wb, 30)
    const ask = () => Promise.all([{}, vectorOnly, lexicalOnly].map(fields => base.search(question, fields)))
    const before = await ask()
    const beside = await makeBase(wb, { workspaceId: base.params.workspaceId })
    await ingestSentences(beside, 0, 60)
    for (let n = 0; n < 20; n++) await beside.ingest(`Rotor rotor rotor resonance ${n}.`)
    expect(await ask()).toEqual(before)
    await wb.settle()
    expect(await ask()).toEqual(before)
    await beside.delete()
    expect(await ask()).toEqual(before)
  })

  test('that are equal are ordered by age, in every mode and process', async () => {
    const wb = await open()
    const base = await mockBase(wb, 5)
    const ids = Array.from({ length: 30 }, (_, n) => `same-${(n * 7) % 30}`)
    const body = { records: ids.map(id => ({ id, text: 'The kite is equal.' })) }
    await wb.call(records.upsert, { params: base.params, body })
    const other = await open({ dataDir: wb.dataDir })
    const there = baseIn(other, { ...base.params, name: base.name })
    for (const fields of [{}, vectorOnly, lexicalOnly, { rerank: true }]) {
      const same = (await base.search('equal kite', { ...fields, topK: 30 })).map(({ id }) => id)
      expect(same).toEqual(ids)
      expect((await there.search('equal kite', { ...fields, topK: 30 })).map(({ id }) => id)).toEqual(same)
      const cut = await base.search('equal kite', { ...fields, topK: 7 })
      expect(cut.map(({ id }) => id)).toEqual(ids.slice(0, 7))
    }
  })
})

describe('hits', () => {
  const modes = [{}, vectorOnly, lexicalOnly, { rerank: true }, { filter: { kind: 'bird' } }]
  const birds = ['nest', 'migrate', 'swim', 'breed', 'moult'].map(
    verb => `The penguins ${verb} near the colony on the coast.`,
  )

  async function baseWithBirds(wb: TestRuntime): Promise<Base> {
    const base = await makeBase(wb)
    await ingestSentences(base, 0, 20)
    for (const text of birds) await base.ingest(text, { metadata: { kind: 'bird' } })
    await wb.settle()
    return base
  }

  test('of a repeated search are identical, in every mode and process', async () => {
    const wb = await open()
    const base = await baseWithBirds(wb)
    const there = baseIn(await open({ dataDir: wb.dataDir }), { ...base.params, name: base.name })
    for (const fields of modes) {
      const hits = await base.search('penguins of the colony', fields)
      expect(hits.length).toBeGreaterThan(0)
      expect(await base.search('penguins of the colony', fields)).toEqual(hits)
      expect(await there.search('penguins of the colony', fields)).toEqual(hits)
    }
  })

  test('stay the relevant ones when irrelevant passages are added, in every mode', async () => {
    const wb = await open()
    const base = await baseWithBirds(wb)
    for (const added of [0, 1, 40]) {
      await ingestSentences(base, 20, 20 + added)
      await wb.settle()
      for (const fields of modes) {
        const hits = await base.search('penguins of the colony', { ...fields, topK: birds.length })
        expect(hits.map(({ payload }) => payload!.chunkText).sort()).toEqual(birds.toSorted())
      }
    }
  })
})

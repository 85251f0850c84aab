import { describe, expect, test } from 'vitest'
import { anyNumber, anyText, exactly, near } from './exactly.ts'
import { ingest, makePlace, makeVectorPlace } from './fixtures.ts'
import { type Row, useServer } from './harness.ts'

const wire = useServer()

interface Hit extends Row {
  readonly id: string
  readonly score: number
  readonly coverage?: number
  readonly payload: Row
}

async function hits(kb: string, json: object): Promise<Hit[]> {
  const reply = await wire.send(`POST ${kb}/search`, { json })
  expect(reply.status, reply.text).toBe(200)
  return reply.body as Hit[]
}

describe('vector search', () => {
  const records = [
    { id: 'same', vector: [1, 0, 0] },
    { id: 'near', vector: [0.6, 0.8, 0] },
    { id: 'twice', vector: [0, 2, 0] },
    { id: 'behind', vector: [-1, 0, 0] },
  ]

  test.each([
    ['cosine', { same: 1, near: 0.6, twice: 0, behind: -1 }],
    ['dot', { same: 1, near: 0.6, twice: 0, behind: -1 }],
    ['euclidean', { same: 1, near: 1 / (1 + Math.sqrt(0.8)), twice: 1 / (1 + Math.sqrt(5)), behind: 1 / 3 }],
  ])('%s returns scores, best first', async (metric, expected) => {
    const { kb } = await makeVectorPlace(wire, 3, metric)
    await wire.exchange(`POST ${kb}/records`, { records }, 200, { upserted: 4 })
    const found = await hits(kb, { vector: [1, 0, 0] })
    const scores = Object.fromEntries(found.map(hit => [hit.id, hit.score]))
    for (const [id, score] of Object.entries(expected)) expect(scores[id], id).toBeCloseTo(score, 5)
    expect(found.map(hit => hit.score)).toEqual(found.map(hit => hit.score).sort((a, b) => b - a))
  })

  test('dot depends on the length of vectors', async () => {
    const { kb } = await makeVectorPlace(wire, 3, 'dot')
    await wire.exchange(`POST ${kb}/records`, { records }, 200, { upserted: 4 })
    expect((await hits(kb, { vector: [0, 3, 0] }))[0]).toMatchObject({ id: 'twice', score: 6 })
  })

  test('topK limits the hits and is 10 by default; a hit has id, score and payload, and vectors on request', async () => {
    const { kb } = await makeVectorPlace(wire)
    const many = Array.from({ length: 12 }, (_, index) => ({
      id: `r${index}`,
      vector: [1, index, 0],
      payload: { index },
    }))
    await wire.exchange(`POST ${kb}/records`, { records: many }, 200, { upserted: 12 })
    expect(await hits(kb, { vector: [1, 0, 0] })).toHaveLength(10)
    expect(await hits(kb, { vector: [1, 0, 0], topK: 1000 })).toHaveLength(12)
    await wire.exchange(`POST ${kb}/search`, { vector: [1, 0, 0], topK: 1 }, 200, [
      { id: 'r0', score: near(1), payload: { index: 0 } },
    ])
    await wire.exchange(`POST ${kb}/search`, { vector: [1, 0, 0], topK: 1, includeEmbeddings: true }, 200, [
      { id: 'r0', score: near(1), payload: { index: 0 }, vector: [1, 0, 0] },
    ])
  })

  test('a zero vector has hits with a cosine score of 0', async () => {
    const { kb } = await makeVectorPlace(wire)
    await wire.exchange(`POST ${kb}/records`, { records }, 200, { upserted: 4 })
    for (const hit of await hits(kb, { vector: [0, 0, 0] })) expect(hit.score).toBeCloseTo(0, 6)
  })

  test('an empty knowledge base returns an empty array', async () => {
    const { kb } = await makeVectorPlace(wire)
    await wire.exchange(`POST ${kb}/search`, { vector: [1, 0, 0] }, 200, [])
    await wire.exchange(`POST ${(await makePlace(wire)).kb}/search`, { text: 'anything' }, 200, [])
  })

  test('S7.3-dimension_mismatch: rejects a query vector of another dimension', async () => {
    const { kb } = await makeVectorPlace(wire)
    for (const vector of [
      [1, 0],
      [1, 0, 0, 0],
    ])
      await wire.refused(`POST ${kb}/search`, { json: { vector } }, 400, 'dimension_mismatch', /^vector: /)
  })

  test('a knowledge base with lexical search accepts a query with only a vector', async () => {
    const { kb } = await makeVectorPlace(wire)
    expect((await wire.get(kb)).lexical).toMatchObject({ enabled: true })
    await wire.exchange(`POST ${kb}/records`, { records }, 200, { upserted: 4 })
    expect(await hits(kb, { vector: [1, 0, 0] })).toHaveLength(4)
  })
})

describe('text search', () => {
  test('a hit has the chunk, its reserved keys and the metadata of its document', async () => {
    const { kb, knowledgeBaseId } = await makePlace(wire)
    const text = 'Flutter of a heated wing at high speed.'
    const documentId = await ingest(wire, kb, { text, metadata: { title: 'Flutter' } })
    const [hit] = await hits(kb, { text: 'heated wing flutter' })
    exactly(hit, {
      id: `${documentId}:0`,
      score: anyNumber,
      payload: {
        knowledgeBaseId,
        documentId,
        chunkIndex: 0,
        chunkText: text,
        'chunker.id': anyText,
        title: 'Flutter',
      },
    })
  })

  test('lexicalWeight 1 ranks by words only and omits passages without a matching word', async () => {
    const { kb } = await makePlace(wire)
    const best = await ingest(wire, kb, { text: 'Boundary layer transition on a swept wing.' })
    const second = await ingest(wire, kb, { text: 'The wing of a bird.' })
    await ingest(wire, kb, { text: 'Heat conduction in composite slabs.' })
    const found = await hits(kb, { text: 'swept wing boundary layer', lexicalWeight: 1 })
    expect(found.map(hit => hit.payload.documentId)).toEqual([best, second])
    expect(found[0]!.score).toBeGreaterThan(found[1]!.score)
  })

  test('hybrid false ranks by vectors only; hybrid true is the default with lexical search', async () => {
    const { kb } = await makePlace(wire)
    await ingest(wire, kb, { text: 'Boundary layer transition on a swept wing.' })
    await ingest(wire, kb, { text: 'Heat conduction in composite slabs.' })
    expect((await hits(kb, { text: 'swept wing', hybrid: false })).length).toBeGreaterThan(0)
    expect(await hits(kb, { text: 'swept wing' })).toEqual(
      await hits(kb, { text: 'swept wing', hybrid: true }),
    )
  })

  test('includeCoverage adds the share of the question that a hit contains, independent of other hits', async () => {
    for (const kind of ['local', 'mock']) {
      const lexical = { enabled: true, analyzer: null, options: {} }
      const { kb } = await makePlace(wire, { kind }, { lexical })
      const all = await ingest(wire, kb, { text: 'Boundary layers on a wing.', metadata: { title: 'Swept' } })
      const some = await ingest(wire, kb, { text: 'The wing of a bird.' })
      const none = await ingest(wire, kb, { text: 'Heat conduction in slabs.' })
      const text = kind === 'mock' ? 'swept wing' : 'the swept wing and its boundary layer'
      const covered = async (json: object) => {
        const found = await hits(kb, { text, includeCoverage: true, ...json })
        return new Map(found.map(hit => [hit.payload.documentId, hit.coverage]))
      }
      const shares = await covered({})
      expect(shares.get(all)).toBe(1)
      expect(shares.get(some)! > 0 && shares.get(some)! < 0.5).toBe(true)
      expect(shares.get(none)).toBe(0)
      expect((await covered({ topK: 1, hybrid: false })).get(all) ?? 1).toBe(1)
      expect(await covered({ filter: { documentId: some } })).toEqual(new Map([[some, shares.get(some)]]))
      for (const hit of await hits(kb, { text })) expect(hit).not.toHaveProperty('coverage')
      const absent = await hits(kb, { text: 'zeppelins', hybrid: false, includeCoverage: true })
      expect(absent.map(({ coverage }) => coverage)).toEqual([0, 0, 0])
    }
  })

  test('includeCoverage requires text; with a vector, the header names the field as ignored', async () => {
    const { kb } = await makeVectorPlace(wire)
    await wire.exchange(`POST ${kb}/records`, { records: [{ id: 'a', vector: [1, 0, 0] }] }, 200, {
      upserted: 1,
    })
    const reply = await wire.send(`POST ${kb}/search`, { json: { vector: [1, 0, 0], includeCoverage: true } })
    expect(reply.headers['x-workbase-ignored']).toBe('includeCoverage')
    for (const hit of reply.body as Hit[]) expect(hit).not.toHaveProperty('coverage')
  })

  test('an explicit rerank sorts hits by words and vectors, also on mock', async () => {
    for (const kind of ['local', 'mock']) {
      const lexical = { enabled: true, analyzer: null, options: {} }
      const { kb } = await makePlace(wire, { kind }, { lexical })
      const best = await ingest(wire, kb, { text: 'Boundary layer transition on a swept wing.' })
      await ingest(wire, kb, { text: 'The tail of a kite.' })
      expect((await hits(kb, { text: 'swept wing', rerank: true }))[0]!.payload.documentId).toBe(best)
    }
  })

  test('includeEmbeddings returns no vector of the built-in embedder, and the header names the field', async () => {
    const { kb } = await makePlace(wire)
    await ingest(wire, kb, { text: 'A passage.' })
    const reply = await wire.send(`POST ${kb}/search`, { json: { text: 'passage', includeEmbeddings: true } })
    expect(reply.headers['x-workbase-ignored']).toBe('includeEmbeddings')
    expect(reply.body).toHaveLength(1)
    expect((reply.body as Hit[])[0]).not.toHaveProperty('vector')
  })

  test('S7.3-vector_collection_not_allowed: rejects a vector query in the space of the built-in embedder', async () => {
    const { kb } = await makePlace(wire)
    const json = { vector: [1, ...Array(127).fill(0)] }
    await wire.refused(`POST ${kb}/search`, { json }, 400, 'vector_collection_not_allowed')
  })

  test('the mock provider is deterministic', async () => {
    const { kb } = await makePlace(wire, { kind: 'mock' })
    await ingest(wire, kb, { text: 'one passage' })
    await ingest(wire, kb, { text: 'quite another' })
    const found = await hits(kb, { text: 'one passage' })
    expect(found[0]!.payload.chunkText).toBe('one passage')
    expect(found[0]!.score).toBeCloseTo(1, 5)
    expect(await hits(kb, { text: 'one passage' })).toEqual(found)
  })
})

describe('invalid searches', () => {
  test('S7.3-validation_error: rejects both or neither of text and vector, with a message without a path', async () => {
    const { kb } = await makeVectorPlace(wire)
    for (const json of [{ query: 'heated wing', topK: 3 }, {}, { text: 'a', vector: [1, 0, 0] }])
      await wire.refused(`POST ${kb}/search`, { json }, 400, 'validation_error', /^[^:]*$/)
  })

  test.each([
    ['text', { text: '' }],
    ['text', { text: 5 }],
    ['vector', { vector: [] }],
    ['vector', { vector: 'a' }],
    ['vector', { vector: [1, '0', 0] }],
    ['topK', { text: 'a', topK: '5' }],
    ['topK', { text: 'a', topK: 1.5 }],
    ['filter', { text: 'a', filter: [] }],
    ['filter', { text: 'a', filter: 'x' }],
    ['includeEmbeddings', { text: 'a', includeEmbeddings: 1 }],
    ['hybrid', { text: 'a', hybrid: 'yes' }],
    ['lexicalWeight', { text: 'a', lexicalWeight: 1.1 }],
    ['lexicalWeight', { text: 'a', lexicalWeight: -0.1 }],
    ['rerank', { text: 'a', rerank: 'no' }],
  ])('S7.3-13: rejects %s by name', async (field, json) => {
    const { kb } = await makeVectorPlace(wire)
    await wire.refused(
      `POST ${kb}/search`,
      { json },
      400,
      'validation_error',
      new RegExp(`^${field}(\\.\\d+)?: `),
    )
  })

  test('explicit hybrid or rerank requires text', async () => {
    const { kb } = await makeVectorPlace(wire)
    const vector = [1, 0, 0]
    await wire.refused(`POST ${kb}/search`, { json: { vector, hybrid: true } }, 400, 'validation_error')
    await wire.refused(`POST ${kb}/search`, { json: { vector, rerank: true } }, 400, 'validation_error')
  })
})

describe('filters', () => {
  const records = [
    {
      id: 'a',
      vector: [1, 0, 0],
      payload: { team: 'wing', year: 1958, tags: ['hot', 'fast'], 'a.b': 'dotted' },
    },
    { id: 'b', vector: [1, 0.1, 0], payload: { team: 'tail', year: 1960, tags: ['hot'] } },
    { id: 'c', vector: [1, 0.2, 0], payload: { team: 'wing', year: 1962, checked: true, gone: null } },
    { id: 'd', vector: [1, 0.3, 0], payload: { year: '1962', a: { b: 'nested' } } },
  ]

  test('each form of filter is applied before topK', async () => {
    const { kb } = await makeVectorPlace(wire)
    await wire.exchange(`POST ${kb}/records`, { records }, 200, { upserted: 4 })
    const cases: [filter: object, ids: string][] = [
      [{}, 'abcd'],
      [{ team: 'wing' }, 'ac'],
      [{ team: { $eq: 'wing' } }, 'ac'],
      [{ team: { $ne: 'wing' } }, 'bd'],
      [{ tags: 'fast' }, 'a'],
      [{ tags: { $in: ['fast', 'cold'] } }, 'a'],
      [{ tags: { $nin: ['fast'] } }, 'bcd'],
      [{ tags: { $all: ['hot', 'fast'] } }, 'a'],
      [{ team: { $in: ['tail', 'nose'] } }, 'b'],
      [{ year: { $lt: 1960 } }, 'a'],
      [{ year: { $lte: 1960 } }, 'ab'],
      [{ year: { $gt: 1961, $lt: 1963 }, team: 'wing' }, 'c'],
      [{ year: { $gte: 1960, $lt: 1962 } }, 'b'],
      [{ year: '1962' }, 'd'],
      [{ team: { $gte: 'u' } }, 'ac'],
      [{ checked: true }, 'c'],
      [{ gone: null }, 'c'],
      [{ 'a.b': 'dotted' }, 'a'],
      [{ team: 'wing', year: 1962 }, 'c'],
      [{ $and: [{ team: 'wing' }, { year: { $lt: 1960 } }] }, 'a'],
      [{ $or: [{ team: 'tail' }, { checked: true }] }, 'bc'],
      [{ $not: { team: 'wing' } }, 'bd'],
      [{ missing: 'x' }, ''],
      [{ missing: { $ne: 'x' } }, 'abcd'],
    ]
    for (const [filter, ids] of cases) {
      const found = await hits(kb, { vector: [1, 0, 0], filter })
      expect(
        found
          .map(hit => hit.id)
          .sort()
          .join(''),
        JSON.stringify(filter),
      ).toBe(ids)
    }
    expect(await hits(kb, { vector: [1, 0, 0], topK: 1, filter: { year: '1962' } })).toMatchObject([
      { id: 'd' },
    ])
  })

  test('values that are not both numbers are compared as text', async () => {
    const { kb } = await makeVectorPlace(wire)
    await wire.exchange(`POST ${kb}/records`, { records }, 200, { upserted: 4 })
    const cases: [filter: object, ids: string][] = [
      [{ year: { $gt: 1960 } }, 'cd'],
      [{ year: { $lt: '1961' } }, 'ab'],
    ]
    for (const [filter, ids] of cases) {
      const found = await hits(kb, { vector: [1, 0, 0], filter })
      expect(
        found
          .map(hit => hit.id)
          .sort()
          .join(''),
        JSON.stringify(filter),
      ).toBe(ids)
    }
  })

  test('metadata filters apply to text search', async () => {
    const { kb } = await makePlace(wire)
    await ingest(wire, kb, { text: 'A wing in wind.', metadata: { year: 1958 } })
    const later = await ingest(wire, kb, { text: 'A wing in rain.', metadata: { year: 1962 } })
    const found = await hits(kb, { text: 'wing', filter: { year: { $gt: 1960 } } })
    expect(found.map(hit => hit.payload.documentId)).toEqual([later])
  })

  test.each([
    { year: { $near: 5 } },
    { $nor: [{ a: 1 }] },
    { $and: { a: 1 } },
    { $or: 'x' },
    { $not: [1] },
    { year: { $in: 5 } },
  ])('S7.3-validation_error S7.3-13: rejects the filter %j by name', async filter => {
    const { kb } = await makeVectorPlace(wire)
    await wire.refused(
      `POST ${kb}/search`,
      { json: { vector: [1, 0, 0], filter } },
      400,
      'validation_error',
      /^filter/,
    )
  })
})

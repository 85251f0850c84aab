import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { documents } from '../../src/contract/documents.ts'
import { kb, type SearchHit } from '../../src/contract/knowledge.ts'
import { limits } from '../../src/contract/limits.ts'
import { chunkingServices } from '../../src/contract/services.ts'
import { maximalMarginalRelevance } from '../../src/knowledge/search/diversity.ts'
import { fakeSentenceModel } from '../fakes/sentence-model.ts'
import { makeBase } from '../harness/resources.ts'
import { open } from '../harness/runtime.ts'

const day = 86_400_000

const idsOf = (hits: readonly SearchHit[]) => hits.map(({ id }) => id)
const documentsOf = (hits: readonly SearchHit[]) => hits.map(({ payload }) => String(payload!.documentId))
const textOf = (hit: SearchHit | undefined) => String(hit?.payload?.chunkText)

async function openBase(options: Parameters<typeof open>[0] = {}) {
  const wb = await open(options)
  return { wb, base: await makeBase(wb) }
}

describe('diversity', () => {
  const alike = ['Revoke a key at once.', 'Revoke a key at once, please.', 'Revoke a key at once, now.']
  const other = 'Before leaving, revoke the key of the printer room.'

  test.each([
    ['the words', undefined],
    ['sentence vectors', fakeSentenceModel(['at', 'once'], ['printer', 'room'])],
  ])('moves down results that resemble a better one by %s', async (_, sentenceModel) => {
    const { wb, base } = await openBase({ ...(sentenceModel && { sentenceModel }) })
    for (const text of [...alike, other]) await base.ingest(text)
    await wb.settle()
    const search = (fields: object) => base.search('revoke key at once', { lexicalWeight: 1, ...fields })
    const plain = await search({})
    expect(textOf(plain.at(-1))).toBe(other)
    expect(idsOf(await search({ diversity: 0 }))).toEqual(idsOf(plain))
    const diverse = await search({ diversity: 0.9, topK: 2, explain: true })
    expect(diverse.map(textOf)).toEqual([textOf(plain[0]), other])
    expect(diverse[0]!.explanation!.diversity).toEqual({ similarity: null, from: 1, to: 1 })
    expect(diverse[1]!.explanation!.diversity).toMatchObject({ from: 4, to: 2 })
    expect(diverse[1]!.score).toBe(plain[3]!.score)
  })

  test('keeps all items, the best first, and their order if it is 0', () => {
    const anyScores = fc.array(fc.float({ noNaN: true, noDefaultInfinity: true }), {
      minLength: 1,
      maxLength: 40,
    })
    fc.assert(
      fc.property(
        anyScores,
        fc.float({ min: 0, max: 1, noNaN: true }),
        fc.func(fc.float({ min: 0, max: 1, noNaN: true })),
        (scores, diversity, similarityOf) => {
          const sorted = [...scores].sort((a, b) => b - a)
          const order = maximalMarginalRelevance(sorted, diversity, (a, b) =>
            similarityOf(Math.min(a, b), Math.max(a, b)),
          )
          const indexes = order.map(({ index }) => index)
          expect(indexes[0]).toBe(0)
          expect([...indexes].sort((a, b) => a - b)).toEqual(sorted.map((_, index) => index))
          const unchanged = maximalMarginalRelevance(sorted, 0, similarityOf).map(({ index }) => index)
          expect(unchanged).toEqual(sorted.map((_, index) => index))
        },
      ),
    )
  })
})

describe('grouping', () => {
  const lines = (count: number, text: (at: number) => string) =>
    Array.from({ length: count }, (_, at) => `${text(at)}\n\n`).join('')
  const chunker = { maxChars: 40, minChars: 1, overlapChars: 0 }

  test('returns at most perGroup passages of a document, and fills the results from further candidates', async () => {
    const { base } = await openBase()
    // Each of the first two documents has more chunks than the lists of the first attempt.
    for (const name of ['first', 'second'])
      await base.ingest(
        lines(130, at => `turbine turbine ${name} ${at}`),
        { chunker },
      )
    for (const name of ['third', 'fourth', 'fifth'])
      await base.ingest(`A long text about gardens that mentions a turbine once, ${name}.`)
    for (const mode of [{ lexicalWeight: 1 }, {}, { rerank: true }, { hybrid: false }]) {
      const search = (fields: object) => base.search('turbine', { ...mode, ...fields })
      const grouped = await search({ groupBy: 'document', topK: 5, explain: true })
      expect(new Set(documentsOf(grouped)).size).toBe(5)
      const pairs = documentsOf(await search({ groupBy: 'document', perGroup: 2, topK: 7 }))
      expect([pairs.length, new Set(pairs).size]).toEqual([7, 5])
      // Further candidates have the scores that they have in a complete ranking.
      const all = new Map((await search({})).map(hit => [hit.id, hit.score]))
      if ('lexicalWeight' in mode)
        for (const { id, score } of grouped) expect(score).toBeCloseTo(all.get(id)!, 9)
    }
    const [best, next] = await base.search('turbine', {
      lexicalWeight: 1,
      groupBy: 'document',
      topK: 2,
      explain: true,
    })
    expect(best!.explanation!.group).toMatchObject({ from: 1, to: 1, omitted: expect.any(Number) })
    expect(next!.explanation!.group!.from).toBeGreaterThan(2)
  })

  test('works in a search of several knowledge bases, and counts records without a document separately', async () => {
    const { wb, base } = await openBase()
    const { workspaceId } = base.params
    const second = await makeBase(wb, { workspaceId })
    await base.ingest(
      lines(120, at => `turbine ${at}`),
      { chunker },
    )
    await second.ingest(
      lines(3, at => `a turbine, number ${at}`),
      { chunker },
    )
    const hits = await wb.call(kb.searchMany, {
      params: { workspaceId },
      body: { text: 'turbine', groupBy: 'document' },
    })
    expect(hits.map(({ knowledgeBaseId }) => knowledgeBaseId).sort()).toEqual(
      [base, second].map(({ params }) => params.knowledgeBaseId).sort(),
    )
    await wb.send(`POST ${second.path}/records`, {
      records: [
        { id: 'a', text: 'turbine' },
        { id: 'b', text: 'turbine' },
      ],
    })
    const grouped = idsOf(await second.search('turbine', { groupBy: 'document' }))
    expect(grouped).toHaveLength(3)
    expect(grouped).toEqual(expect.arrayContaining(['a', 'b']))
  })
})

describe('neighbors', () => {
  const chunker = { maxChars: 30, minChars: 1, overlapChars: 8 }

  test('joins the chunks around the best one, and merges results among them', async () => {
    const { base } = await openBase()
    const sentences = ['zero', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine']
    const text = sentences.map(word => `Here is the word ${word}.`).join('\n\n')
    const { document } = await base.ingest(text, { chunker: { ...chunker, overlapChars: 0 } })
    const [hit, ...others] = await base.search('four', { lexicalWeight: 1, neighbors: 1, explain: true })
    expect(others).toEqual([])
    expect(hit).toMatchObject({ id: `${document.documentId}:4`, chunks: { first: 3, last: 5 } })
    expect(textOf(hit).trim()).toBe(
      text.slice(text.indexOf('Here is the word three'), text.indexOf('Here is the word six')).trim(),
    )
    expect(hit!.payload!.chunkIndex).toBe(4)
    const [merged, ...rest] = await base.search('four five', {
      lexicalWeight: 1,
      neighbors: 1,
      explain: true,
    })
    expect(rest).toEqual([])
    expect(merged).toMatchObject({ explanation: { neighbors: { merged: 1 } } })
    expect(merged!.chunks!.last - merged!.chunks!.first).toBe(2)
    const near = await base.search('four six', { lexicalWeight: 1, neighbors: 1 })
    expect(near.map(({ chunks }) => chunks).sort((a, b) => a!.first - b!.first)).toEqual(
      near[0]!.payload!.chunkIndex === 4
        ? [
            { first: 3, last: 5 },
            { first: 6, last: 7 },
          ]
        : [
            { first: 3, last: 4 },
            { first: 5, last: 7 },
          ],
    )
    const far = await base.search('one eight', { lexicalWeight: 1, neighbors: 2 })
    expect(far.map(({ chunks }) => chunks).sort((a, b) => a!.first - b!.first)).toEqual([
      { first: 0, last: 3 },
      { first: 6, last: 9 },
    ])
    expect((await base.search('four', { lexicalWeight: 1 }))[0]).not.toHaveProperty('chunks')
  })

  test.each(['recursive', 'sentence'] as const)(
    'a passage of a %s chunker is a slice of the text of its document, and no chunk is in two',
    async strategy => {
      const { wb, base: first } = await openBase()
      const { workspaceId } = first.params
      const engine = strategy === 'sentence' ? 'workbase' : 'langchain_ts'
      const { chunkingServiceId } = await wb.call(chunkingServices.create, {
        params: { workspaceId },
        body: { name: strategy, engine, strategy },
      })
      const base = await makeBase(wb, { workspaceId, chunkingServiceId })
      // The sentence chunker removes white space between chunks.
      const shown = (text: string) => (strategy === 'sentence' ? text.replaceAll(/\s+/g, ' ').trim() : text)
      let count = 0
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.constantFrom('pump', 'oil', 'pump pump', 'a\n\nb', '. ', '- - - ', '\n', 'é🙂'), {
            minLength: 5,
            maxLength: 200,
          }),
          fc.integer({ min: 20, max: 60 }),
          fc.integer({ min: 0, max: 19 }),
          fc.integer({ min: 1, max: limits.neighborsMax }),
          async (words, maxChars, overlapChars, neighbors) => {
            const text = `${words.join(' ')} pump ${count++}`
            const { document } = await base.ingest(text, { chunker: { maxChars, minChars: 1, overlapChars } })
            const search = (fields: object) =>
              base.search('pump', {
                lexicalWeight: 1,
                filter: { documentId: document.documentId },
                ...fields,
              })
            const joined: number[] = []
            for (const hit of await search({ neighbors })) {
              const { first, last } = hit.chunks!
              expect(last - first).toBeLessThanOrEqual(2 * neighbors)
              for (let index = first; index <= last; index++) joined.push(index)
              expect(shown(text)).toContain(shown(textOf(hit)))
            }
            expect(new Set(joined).size).toBe(joined.length)
            for (const { payload } of await search({})) expect(joined).toContain(payload!.chunkIndex)
          },
        ),
        { numRuns: 40 },
      )
    },
  )

  test('leaves out a neighbor that would make the passage too long', async () => {
    const { base } = await openBase()
    const text = `needle\n\n${'x'.repeat(9_000)}\n\n${'y'.repeat(9_000)}`
    await base.ingest(text, { chunker: { maxChars: 9_002, minChars: 1, overlapChars: 0 } })
    const [hit] = await base.search('needle', { lexicalWeight: 1, neighbors: 3 })
    expect(hit!.chunks).toEqual({ first: 0, last: 1 })
    expect(textOf(hit).length).toBeLessThanOrEqual(limits.joinedTextChars)
  })

  test('keeps results that a chunk outside of the filter separates', async () => {
    const { base } = await openBase()
    const text = Array.from({ length: 10 }, (_, at) => `The pump ${at} needs oil.`).join('\n\n')
    await base.ingest(text, { chunker: { ...chunker, overlapChars: 0 } })
    const indexes = [0, 1, 4, 5, 8]
    const filter = { chunkIndex: { $in: indexes } }
    const hits = await base.search('pump', { lexicalWeight: 1, neighbors: 3, filter })
    const joined = hits.flatMap(({ chunks }) =>
      indexes.filter(at => at >= chunks!.first && at <= chunks!.last),
    )
    expect(joined.sort((a, b) => a - b)).toEqual(indexes)
  })

  test('fills the results although results are merged', async () => {
    const { base } = await openBase()
    const text = Array.from({ length: 60 }, (_, at) => `The pump ${at} needs oil.`).join('\n\n')
    await base.ingest(text, { chunker: { ...chunker, overlapChars: 0 } })
    expect(await base.search('pump', { lexicalWeight: 1, neighbors: 3, topK: 6 })).toHaveLength(6)
  })
})

describe('boosts', () => {
  test('multiply the scores of passages that match a condition', async () => {
    const { base } = await openBase()
    await base.ingest('How to oil the pump.', { metadata: { type: 'note' } })
    await base.ingest('How to oil the old pump well.', { metadata: { type: 'manual' } })
    const search = (fields: object) => base.search('oil pump', { lexicalWeight: 1, explain: true, ...fields })
    const plain = await search({})
    expect(plain.map(({ payload }) => payload!.type)).toEqual(['note', 'manual'])
    const boosted = await search({ boosts: [{ filter: { type: 'manual' }, factor: 4 }] })
    expect(boosted.map(({ payload }) => payload!.type)).toEqual(['manual', 'note'])
    expect(boosted[0]!.score).toBeCloseTo(plain[1]!.score * 4, 9)
    expect(boosted.map(({ explanation }) => explanation!.boost)).toEqual([
      { factor: 4, from: 2, to: 1 },
      { factor: 1, from: 1, to: 2 },
    ])
    const lowered = await search({ boosts: [{ filter: { type: 'note' }, factor: 0.1 }] })
    expect(idsOf(lowered)).toEqual(idsOf(boosted))
  })

  test('halve the effect of recency with each half-life, by the time of the ingest or a metadata field', async () => {
    const { wb, base } = await openBase()
    const at = (days: number) => new Date(Date.now() - days * day).toISOString()
    const add = async (text: string, days: number) => {
      const { document } = await base.ingest(text, { metadata: { published: at(days) } })
      await wb.send(`PATCH ${base.path}/documents/${document.documentId}`, { ingestedAt: at(days) })
      return document.documentId
    }
    const old = await add('Oil the pump.', 20)
    const recent = await add('Oil the pump each month, and clean it.', 10)
    for (const field of [undefined, 'ingestedAt', 'published']) {
      const boosts = [{ recency: { halfLifeDays: 10, ...(field && { field }) }, factor: 3 }]
      const hits = await base.search('oil pump', { lexicalWeight: 1, boosts, explain: true })
      const factors = new Map(hits.map(hit => [hit.payload!.documentId, hit.explanation!.boost!.factor]))
      expect(factors.get(recent)).toBeCloseTo(1 + 2 / 2, 1)
      expect(factors.get(old)).toBeCloseTo(1 + 2 / 4, 1)
    }
    const boosts = [{ recency: { halfLifeDays: 10, field: 'missing' }, factor: 3 }]
    const [hit] = await base.search('oil pump', { boosts, explain: true })
    expect(hit!.explanation!.boost!.factor).toBe(1)
  })

  test('apply to the merged results of several knowledge bases', async () => {
    const { wb, base } = await openBase()
    const { workspaceId } = base.params
    const second = await makeBase(wb, { workspaceId })
    await base.ingest('Oil the pump.')
    await second.ingest('A long text about gardens, which has oil for a pump.', {
      metadata: { type: 'manual' },
    })
    const search = async (body: object) =>
      (await wb.call(kb.searchMany, { params: { workspaceId }, body: { text: 'oil pump', ...body } })).map(
        ({ knowledgeBaseId }) => knowledgeBaseId,
      )
    const boosts = [{ filter: { type: 'manual' }, factor: 10 }]
    expect((await search({ boosts }))[0]).toBe(second.params.knowledgeBaseId)
    expect((await search({ boosts: [{ ...boosts[0]!, factor: 0.1 }] }))[0]).toBe(base.params.knowledgeBaseId)
  })
})

test('documents with the same ID in two knowledge bases stay apart', async () => {
  const { wb, base } = await openBase()
  const { workspaceId } = base.params
  const second = await makeBase(wb, { workspaceId })
  const documentId = '7d2f1a5e-93b0-4c55-8a53-d3e1f0a4b6c2'
  const chunker = { maxChars: 20, minChars: 1, overlapChars: 0 }
  for (const [each, name] of [
    [base, 'pump'],
    [second, 'valve'],
  ] as const)
    await each.ingest(`Oil the ${name}.\n\nClean it later.`, { documentId, chunker })
  const search = (fields: object) =>
    wb.call(kb.searchMany, { params: { workspaceId }, body: { text: 'oil', lexicalWeight: 1, ...fields } })
  expect(await search({ groupBy: 'document' })).toHaveLength(2)
  const joined = await search({ neighbors: 1, topK: 2 })
  expect(
    joined
      .map(textOf)
      .map(text => text.replace(/\s+/g, ' '))
      .sort(),
  ).toEqual(['Oil the pump. Clean it later.', 'Oil the valve. Clean it later.'])
  await wb.call(documents.update, {
    params: { ...second.params, documentId },
    body: { ingestedAt: new Date(0).toISOString() },
  })
  const recency = { halfLifeDays: 1 }
  const [best] = await search({ boosts: [{ recency, factor: 10 }], explain: true })
  expect(best!.knowledgeBaseId).toBe(base.params.knowledgeBaseId)
  expect(best!.explanation!.boost!.factor).toBeCloseTo(10, 1)
})

test('a search without these options has no fields of them', async () => {
  const { base } = await openBase()
  await base.ingest('Oil the pump.')
  const [hit] = await base.search('oil pump', { explain: true })
  for (const name of ['boost', 'diversity', 'group', 'neighbors'])
    expect(hit!.explanation).not.toHaveProperty(name)
  expect(hit).not.toHaveProperty('chunks')
})

test.each<[object, string]>([
  [{ perGroup: 2 }, 'perGroup: requires groupBy'],
  [{ boosts: [{ factor: 2 }] }, 'boosts.0: send exactly one of filter and recency'],
  [{ boosts: [{ factor: 2, filter: { year: { $near: 1 } } }] }, 'boosts.0.filter.year: unknown operator'],
])('rejects %j with the name of the field', async (fields, message) => {
  const { wb, base } = await openBase()
  const { status, body } = await wb.send(`POST ${base.path}/search`, { text: 'pump', ...fields })
  expect(status).toBe(400)
  expect(body.error).toMatchObject({ code: 'validation_error', message: expect.stringContaining(message) })
})

test('rejects boosts that have too many conditions together', async () => {
  const { wb, base } = await openBase()
  const boosts = [40, 60].map(values => ({ filter: { type: { $in: Array(values).fill('a') } }, factor: 2 }))
  const { status, body } = await wb.send(`POST ${base.path}/search`, { text: 'pump', boosts })
  expect(status).toBe(400)
  expect(body.error).toMatchObject({
    message: `boosts.1.filter.type.$in: the filter has more than ${limits.boostNodes} nodes`,
  })
})

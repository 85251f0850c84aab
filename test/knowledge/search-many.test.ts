import { describe, expect, test } from 'vitest'
import { filters } from '../../src/contract/filters.ts'
import { type KnowledgeBaseHit, kb } from '../../src/contract/knowledge.ts'
import { limits } from '../../src/contract/limits.ts'
import type { Outbound } from '../../src/models/outbound.ts'
import type { ContentStore } from '../../src/storage/content.ts'
import { type Base, makeBase, makeMockService, makeWorkspace } from '../harness/resources.ts'
import { open, type TestResponse, type TestRuntime } from '../harness/runtime.ts'

const unknownId = '9b1c1a52-6f0e-4c0e-9d53-2f3a4b5c6d7e'

interface Place {
  readonly workspaceId: string
  base(fields?: object): Promise<Base>
  send(json: object): Promise<TestResponse>
  /** Searches one knowledge base with its own route. */
  alone(base: Base): Promise<TestResponse>
  /** Returns the texts of the hits, best first. */
  found(json: object): Promise<unknown[]>
  hits(json: object): Promise<KnowledgeBaseHit[]>
}

async function place(wb: TestRuntime, kind: 'local' | 'mock' = 'local'): Promise<Place> {
  const { workspaceId } = await makeWorkspace(wb, { kind })
  const params = { workspaceId }
  return {
    workspaceId,
    base: fields => makeBase(wb, { workspaceId, ...fields }),
    send: json => wb.send(`POST /api/v1/workspaces/${workspaceId}/search`, json),
    alone: base => wb.send(`POST ${base.path}/search`, { text: 'gliders' }),
    found: async json => {
      const hits = await wb.call(kb.searchMany, { params, body: json as { text: string } })
      return hits.map(hit => hit.payload?.chunkText)
    },
    hits: json => wb.call(kb.searchMany, { params, body: json as { text: string } }),
  }
}

function idOf({ params }: Base): string {
  return params.knowledgeBaseId
}

function refused(code: string, message: RegExp) {
  return { body: { error: { code, message: expect.stringMatching(message) } } }
}

describe('search in several knowledge bases', () => {
  test('searches the given knowledge bases or all, and each hit names its knowledge base', async () => {
    const here = await place(await open())
    const [one, two, three] = [await here.base(), await here.base(), await here.base()]
    for (const base of [one, two, three]) await base.ingest(`Gliders in ${base.name}.`)
    const ids = async (json: object) =>
      (await here.hits({ text: 'gliders', ...json })).map(hit => hit.knowledgeBaseId).sort()
    expect(await ids({})).toEqual([idOf(one), idOf(two), idOf(three)].sort())
    const named = { knowledgeBaseIds: [idOf(three), idOf(one), idOf(three)] }
    expect(await ids(named)).toEqual([idOf(one), idOf(three)].sort())
    const [hit] = await here.hits({ text: 'gliders', topK: 1, knowledgeBaseIds: [idOf(two)] })
    const [alone] = await two.search('gliders')
    expect(hit).toEqual({ ...alone, knowledgeBaseId: idOf(two) })
  })

  test('ranks a relevant knowledge base above an irrelevant one', async () => {
    const here = await place(await open())
    const [sky, kitchen] = [await here.base(), await here.base()]
    const flutter = 'The rotor of the autogyro began to flutter under resonance at full speed.'
    await sky.ingest(flutter)
    for (const name of ['tail', 'wing', 'nose']) await sky.ingest(`The ${name} of the autogyro.`)
    const soup = 'Stir the soup at full heat.'
    for (const text of [soup, 'Bake the bread.', 'Salt the water.']) await kitchen.ingest(text)
    const found = await here.found({ text: 'why did the rotor flutter at full speed', topK: 10 })
    expect(found[0]).toBe(flutter)
    const lexical = await here.found({ text: 'rotor flutter full speed', lexicalWeight: 1 })
    expect([lexical[0], lexical.at(-1)]).toEqual([flutter, soup])
  })

  test('ranks a passage with the whole question above a partial match in a larger knowledge base', async () => {
    const here = await place(await open())
    const [large, small] = [await here.base(), await here.base()]
    for (let n = 0; n < 60; n++) await large.ingest(`Step ${n}: bake the bread in the oven at full heat.`)
    await large.ingest('Refunds of gliders.')
    await large.ingest('The head of the tail wing approves the flight.')
    const whole = 'Refunds take 14 days. The head of finance approves refunds of more than 500 euros.'
    for (const text of [whole, 'Keys are rotated.', 'The boundary layer.']) await small.ingest(text)
    for (const mode of [{}, { lexicalWeight: 1 }]) {
      const found = await here.found({ text: 'who of finance approves refunds', topK: 3, ...mode })
      expect(found[0]).toBe(whole)
    }
  })

  test('keeps the order within each knowledge base, sorts by score, and applies topK to all hits', async () => {
    const here = await place(await open())
    const bases = [await here.base(), await here.base()]
    for (const [at, base] of bases.entries())
      for (let n = 0; n < 12; n++) await base.ingest(`Run ${n} of tunnel ${at}: ${'flow '.repeat(n + 1)}.`)
    for (const mode of [{}, { hybrid: false }, { lexicalWeight: 1 }, { rerank: true, topK: 24 }]) {
      const hits = await here.hits({ text: 'flow in the tunnel', topK: 7, ...mode })
      if (!('topK' in mode)) expect(hits).toHaveLength(7)
      expect(hits.map(({ score }) => score)).toEqual(hits.map(({ score }) => score).sort((a, b) => b - a))
      for (const base of bases) {
        const own = (await base.search('flow in the tunnel', { topK: 24, ...mode })).map(({ id }) => id)
        const merged = hits.filter(hit => hit.knowledgeBaseId === idOf(base)).map(({ id }) => id)
        if (!('rerank' in mode)) expect(merged).toEqual(own.slice(0, merged.length))
        else expect(merged).toEqual(own)
      }
    }
  })

  test('orders equal scores by the order of the knowledge bases', async () => {
    const wb = await open()
    const here = await place(wb)
    const { embeddingServiceId } = await makeMockService(wb, here.workspaceId)
    const bases = [await here.base({ embeddingServiceId }), await here.base({ embeddingServiceId })]
    const best = { id: 'best', vector: [1, 0, 0] }
    for (const [at, base] of bases.entries()) {
      const records = [{ id: `equal ${at}`, vector: [0, 1, 0] }, ...(at === 1 ? [best] : [])]
      expect((await wb.send(`POST ${base.path}/records`, { records })).status).toBe(200)
    }
    const hits = await here.hits({ vector: [1, 0, 0] })
    expect(hits.map(({ id }) => id)).toEqual(['best', 'equal 0', 'equal 1'])
  })

  test('compares vectors of one model by their similarity', async () => {
    const wb = await open()
    const here = await place(wb)
    const { embeddingServiceId } = await makeMockService(wb, here.workspaceId)
    const bases = [await here.base({ embeddingServiceId }), await here.base({ embeddingServiceId })]
    const vectors = [
      [
        [1, 0, 0],
        [0, 1, 0],
      ],
      [
        [0.8, 0.6, 0],
        [-1, 0, 0],
      ],
    ]
    for (const [at, base] of bases.entries()) {
      const records = vectors[at]!.map((vector, n) => ({ id: `${at}${n}`, vector }))
      expect((await wb.send(`POST ${base.path}/records`, { records })).status).toBe(200)
    }
    const hits = await here.hits({ vector: [1, 0, 0] })
    expect(hits.map(({ id }) => id)).toEqual(['00', '10', '01', '11'])
    for (const [at, score] of [1, 0.8, 0, -1].entries()) expect(hits[at]!.score).toBeCloseTo(score, 5)
  })

  test('embeds a question once for all knowledge bases with the same service', async () => {
    let asked = 0
    const outbound: Outbound = async (_url, { body }) => {
      asked++
      const { input } = JSON.parse(body!) as { input: string[] }
      const data = input.map((_, index) => ({ index, embedding: [1, 0, 0] }))
      return new Response(JSON.stringify({ data }))
    }
    const wb = await open({ outbound, environment: { OPENAI_API_KEY: 'sk-test' } })
    const here = await place(wb)
    const { embeddingServiceId } = await makeMockService(wb, here.workspaceId, {
      provider: 'openai',
      modelName: 'm',
      credentialRef: 'env:OPENAI_API_KEY',
    })
    for (let n = 0; n < 6; n++) await here.base({ embeddingServiceId })
    expect(await here.hits({ text: 'anything' })).toEqual([])
    expect(asked).toBe(1)
  })

  test('returns nothing for an empty workspace and for empty knowledge bases', async () => {
    const here = await place(await open())
    expect(await here.send({ text: 'anything' })).toMatchObject({ status: 200, text: '[]' })
    await here.base()
    await here.base()
    expect(await here.send({ text: 'anything' })).toMatchObject({ status: 200, text: '[]' })
  })

  test('shows the vectors of provided embedders only', async () => {
    const wb = await open()
    const here = await place(wb)
    const { embeddingServiceId } = await makeMockService(wb, here.workspaceId)
    const [provided, fitted] = [await here.base({ embeddingServiceId }), await here.base()]
    for (const base of [provided, fitted]) await base.ingest(`A passage about gliders in ${base.name}.`)
    const hits = await wb.call(kb.searchMany, {
      params: { workspaceId: here.workspaceId },
      body: { text: 'gliders', includeEmbeddings: true, lexicalWeight: 1 },
    })
    const shown = hits.filter(hit => hit.vector !== undefined).map(hit => hit.knowledgeBaseId)
    expect([hits.length, shown]).toEqual([2, [idOf(provided)]])
  })

  test('names each ignored field once', async () => {
    const here = await place(await open())
    for (const base of [await here.base(), await here.base()]) await base.ingest('A passage.')
    const { headers } = await here.send({ text: 'passage', includeEmbeddings: true, colour: 'red' })
    expect(headers.get('x-workbase-ignored')?.split(/,\s*/).sort()).toEqual(['colour', 'includeEmbeddings'])
  })
})

describe('documents in several knowledge bases', () => {
  test('are returned once, and the hit names the other ones that were searched', async () => {
    const here = await place(await open())
    const [one, two, three] = [await here.base(), await here.base(), await here.base()]
    const text = 'Gliders land on grass.'
    const ids = new Map<string, string>()
    for (const base of [one, two, three]) {
      ids.set(idOf(base), (await base.ingest(text)).document.documentId)
      await base.ingest(`Gliders of ${base.name}.`)
    }
    const hits = await here.hits({ text: 'gliders', topK: 4 })
    expect(hits).toHaveLength(4)
    const [shared] = hits.filter(({ payload }) => payload!.chunkText === text)
    const others = [one, two, three].map(idOf).filter(id => id !== shared!.knowledgeBaseId)
    expect(shared!.alsoIn).toEqual(
      others.map(knowledgeBaseId => ({ knowledgeBaseId, documentId: ids.get(knowledgeBaseId) })),
    )
    for (const hit of hits.filter(hit => hit !== shared)) expect(hit).not.toHaveProperty('alsoIn')
    const named = [idOf(one), idOf(three)]
    const [first] = await here.hits({ text: 'land on grass', topK: 1, knowledgeBaseIds: named })
    const other = named.find(id => id !== first!.knowledgeBaseId)!
    expect(first!.alsoIn).toEqual([{ knowledgeBaseId: other, documentId: ids.get(other) }])
    expect((await here.hits({ text: 'grass', knowledgeBaseIds: [idOf(one)] }))[0]).not.toHaveProperty(
      'alsoIn',
    )
  })

  test('fill the results with other passages, however many there are', async () => {
    const here = await place(await open())
    const bases = [await here.base(), await here.base()]
    const texts = Array.from({ length: 6 }, (_, at) => `Gliders, part ${at}.`)
    for (const base of bases) for (const text of texts) await base.ingest(text)
    const found = await here.found({ text: 'gliders', topK: 5 })
    expect(new Set(found).size).toBe(5)
    expect((await here.found({ text: 'gliders', topK: 50 })).toSorted()).toEqual(texts)
  })

  test('are named even if they are cut into other chunks, and both passages are returned', async () => {
    const here = await place(await open())
    const [one, two] = [await here.base(), await here.base()]
    const text = `Gliders land on grass. ${'They glide. '.repeat(20)}`
    await one.ingest(text)
    await two.ingest(text, { chunker: { maxChars: 40, minChars: 0, overlapChars: 0 } })
    const hits = await here.hits({ text: 'gliders grass' })
    expect(new Set(hits.map(hit => hit.knowledgeBaseId))).toEqual(new Set([idOf(one), idOf(two)]))
    for (const hit of hits)
      expect(hit.alsoIn).toMatchObject([
        { knowledgeBaseId: hit.knowledgeBaseId === idOf(one) ? idOf(two) : idOf(one) },
      ])
  })

  test('do not hide an equal passage of another document', async () => {
    const here = await place(await open())
    const [one, two] = [await here.base(), await here.base()]
    const chunker = { maxChars: 30, minChars: 0, overlapChars: 0 }
    await one.ingest('Gliders land on grass.\n\nThe first edition.', { chunker })
    await two.ingest('Gliders land on grass.\n\nAnother edition.', { chunker })
    const hits = await here.hits({ text: 'gliders grass' })
    const passages = hits.filter(({ payload }) => /Gliders/.test(String(payload!.chunkText)))
    expect(passages.map(hit => hit.knowledgeBaseId).toSorted()).toEqual([idOf(one), idOf(two)].toSorted())
    for (const hit of hits) expect(hit).not.toHaveProperty('alsoIn')
  })
})

describe('invalid searches', () => {
  test('S7.3-knowledge_base_not_found S1-07: reject an unknown ID in the list, and an ID of another workspace', async () => {
    const wb = await open()
    const [here, other] = [await place(wb), await place(wb)]
    const known = idOf(await here.base())
    for (const id of [unknownId, idOf(await other.base())])
      expect(await here.send({ text: 'x', knowledgeBaseIds: [known, id] })).toMatchObject({
        status: 404,
        ...refused('knowledge_base_not_found', new RegExp(`'${id}' not found`)),
      })
  })

  test('S7.3-workspace_not_found: reject an unknown workspace, even with an empty list', async () => {
    const wb = await open()
    const answer = await wb.send(`POST /api/v1/workspaces/${unknownId}/search`, { text: 'x' })
    expect(answer).toMatchObject({ status: 404, body: { error: { code: 'workspace_not_found' } } })
  })

  test('S7.3-validation_error: reject an empty list and too many knowledge bases, named or not', async () => {
    const here = await place(await open())
    const ids = await Promise.all(
      Array.from({ length: limits.knowledgeBasesPerSearch + 1 }, async () => idOf(await here.base())),
    )
    const tooMany = { status: 400, ...refused('validation_error', /^knowledgeBaseIds: /) }
    expect(await here.send({ text: 'x' })).toMatchObject(tooMany)
    expect(await here.send({ text: 'x', knowledgeBaseIds: ids })).toMatchObject(tooMany)
    expect(await here.send({ text: 'x', knowledgeBaseIds: [] })).toMatchObject(tooMany)
    expect(await here.send({ text: 'x', knowledgeBaseIds: ids.slice(1) })).toMatchObject({ status: 200 })
  })

  test('allow a saved filter only with a single knowledge base', async () => {
    const wb = await open()
    const here = await place(wb)
    const base = await here.base()
    await base.ingest('Gliders.', { metadata: { lang: 'en' } })
    await base.ingest('Gliders too.', { metadata: { lang: 'de' } })
    const body = { name: 'English', filter: { lang: 'en' } }
    const { knowledgeFilterId } = await wb.call(filters.create, { params: base.params, body })
    expect(await here.found({ text: 'gliders', knowledgeFilterId })).toEqual(['Gliders.'])
    await here.base()
    expect(await here.send({ text: 'gliders', knowledgeFilterId })).toMatchObject({
      status: 400,
      ...refused('validation_error', /^knowledgeFilterId: .*knowledgeBaseIds/),
    })
  })

  test('S7.3-dimension_mismatch S7.3-vector_collection_not_allowed: reject a raw vector that does not fit every knowledge base, and name the one that does not match', async () => {
    const wb = await open()
    const here = await place(wb)
    const three = await makeMockService(wb, here.workspaceId)
    const four = await makeMockService(wb, here.workspaceId, { embeddingDimension: 4 })
    await here.base({ embeddingServiceId: three.embeddingServiceId })
    await here.base({ name: 'wider', embeddingServiceId: four.embeddingServiceId })
    expect(await here.send({ vector: [1, 0, 0] })).toMatchObject({
      status: 400,
      ...refused('dimension_mismatch', /^vector: .*'wider'/),
    })
    const fitted = await here.base({ name: 'fitted' })
    const builtIn = { vector: [1, 0, 0], knowledgeBaseIds: [idOf(fitted)] }
    expect(await here.send(builtIn)).toMatchObject({
      status: 400,
      ...refused('vector_collection_not_allowed', /^vector: .*'fitted'/),
    })
  })

  test('S7.3-collection_unavailable: fail with the name of a knowledge base that cannot be searched', async () => {
    let isGone = false
    const losing = (store: ContentStore): ContentStore => ({
      ...store,
      collection: async key => (isGone && key.name === 'lost' ? undefined : store.collection(key)),
    })
    const here = await place(await open({ content: losing }))
    await (await here.base()).ingest('Still here.')
    await here.base({ name: 'lost' })
    isGone = true
    expect(await here.send({ text: 'here' })).toMatchObject({
      status: 503,
      ...refused('collection_unavailable', /'lost'/),
    })
  })
})

describe('a knowledge base that is deleted during a search', () => {
  /** A workspace whose knowledge base `doomed` is deleted when its collection or its vectors are read. */
  async function doomed(moment: 'collection' | 'nearest') {
    let strike: (() => Promise<unknown>) | undefined
    const once = async (isDoomed: boolean) => {
      if (!isDoomed) return
      const go = strike
      strike = undefined
      await go?.()
    }
    const here = await place(
      await open({
        content: store => ({
          ...store,
          async collection(key) {
            await once(moment === 'collection' && key.name === 'doomed')
            return store.collection(key)
          },
          async nearest(key, query) {
            await once(moment === 'nearest' && key.name === 'doomed')
            return store.nearest(key, query)
          },
        }),
      }),
    )
    const stays = await here.base()
    const goes = await here.base({ name: 'doomed' })
    for (const base of [stays, goes]) await base.ingest('Gliders.')
    strike = () => goes.delete()
    return { here, stays, goes }
  }

  test.each(['collection', 'nearest'] as const)(
    'is omitted from a search of all knowledge bases (%s)',
    async moment => {
      const { here, stays } = await doomed(moment)
      const found = await here.hits({ text: 'gliders' })
      expect(found.map(({ knowledgeBaseId }) => knowledgeBaseId)).toEqual([idOf(stays)])
    },
  )

  test.each(['collection', 'nearest'] as const)(
    'S7.3-knowledge_base_not_found: is not found if the search names it (%s)',
    async moment => {
      const { here, stays, goes } = await doomed(moment)
      const named = { text: 'gliders', knowledgeBaseIds: [idOf(stays), idOf(goes)] }
      expect(await here.send(named)).toMatchObject({
        status: 404,
        ...refused('knowledge_base_not_found', /./),
      })
    },
  )

  test.each(['collection', 'nearest'] as const)(
    'S7.3-knowledge_base_not_found: is not found if it is searched alone (%s)',
    async moment => {
      const { here, goes } = await doomed(moment)
      expect(await here.alone(goes)).toMatchObject({
        status: 404,
        ...refused('knowledge_base_not_found', /./),
      })
    },
  )

  test('does not fail concurrent searches', async () => {
    const wb = await open()
    const here = await place(wb)
    const stays = await here.base()
    for (let round = 0; round < 5; round++) {
      const goes = await here.base()
      for (const base of [stays, goes]) await base.ingest(`Gliders of round ${round}.`)
      const all = () => here.send({ text: 'gliders' })
      const searches = Array.from({ length: 20 }, (_, n) => (n % 2 ? here.alone(goes) : all()))
      const [, ...answers] = await Promise.all([goes.delete(), ...searches])
      for (const [n, { status, text }] of answers.entries())
        expect(n % 2 ? [200, 404] : [200], text).toContain(status)
    }
    expect(wb.loggedProblems).toEqual([])
  })
})

test('S1-11: searches at most four knowledge bases at the same time', async () => {
  let running = 0
  let most = 0
  const counted = (store: ContentStore): ContentStore => ({
    ...store,
    async nearest(...query) {
      most = Math.max(most, ++running)
      await new Promise(resolve => setTimeout(resolve, 5))
      return store.nearest(...query).finally(() => running--)
    },
  })
  const here = await place(await open({ content: counted }))
  for (let n = 0; n < 10; n++) await here.base()
  await here.hits({ text: 'anything' })
  expect(most).toBe(4)
})

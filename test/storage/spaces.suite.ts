import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { ContentWrite, RecordVector, SpaceKey, VectorSpaces } from '../../src/storage/content.ts'
import { all, createCollection, idsOf, key, record, recordWithText, upsert } from './content-data.ts'
import type { Context } from './lexical.suite.ts'

const ok = { ok: true }
const lasting = 60_000
const owner = 'one'
const sentences = { ...key, space: 'sentences' }
const createSpace = { op: 'createSpace', ...sentences, dimension: 3, metric: 'dot' } satisfies ContentWrite
const unavailable = { code: 'collection_unavailable' }
const up = (length = 1) => Float32Array.of(0, 0, length)

/** Tests for named vector spaces; a store without them passes. */
export function spacesSuite(context: () => Context): void {
  function spacesTest(title: string, run: (spaces: VectorSpaces, context: Context) => Promise<void>): void {
    test(title, async () => {
      const { spaces } = context().content
      if (spaces) await run(spaces, context())
      else expect(spaces).toBeUndefined()
    })
  }

  const scores = async (of: SpaceKey, vector = up(), generation?: number) => {
    const { content } = context()
    const hits = await content.nearest(of, { vector, limit: 99, visibility: all, generation })
    const ids = await idsOf(content, hits)
    return Object.fromEntries(hits.map(({ score }, at) => [ids[at]!, score]))
  }

  /** Stages a vector for each record without one in a generation. Returns the IDs of these records. */
  async function stageAll(spaces: VectorSpaces, generation: number, vector = up(), of = sentences) {
    const left = await spaces.unstaged(of, generation, 99)
    const vectors = left.map(({ record: number }): RecordVector => ({ record: number, vector }))
    expect(await spaces.lease(of, owner, lasting)).toBe(true)
    expect(await spaces.stage(of, { generation, owner }, vectors)).toBe(true)
    return idsOf(context().content, left)
  }

  /** Stages a vector for each record in the next generation, and makes it the current one. */
  async function fill(
    spaces: VectorSpaces,
    generation: number,
    vector = up(),
    of = sentences,
  ): Promise<void> {
    await stageAll(spaces, generation, vector, of)
    expect(await spaces.swap(of, { generation, owner })).toBe(true)
  }

  spacesTest('a new space has its own dimension and metric, and no vectors', async (spaces, context) => {
    const { write, content } = context
    await write(upsert(recordWithText('a', 'apple'), record('no text')))
    expect(await write(createSpace)).toEqual(ok)
    expect(await content.collection(sentences)).toMatchObject({
      dimension: 3,
      metric: 'dot',
      fitted: false,
      generation: 0,
      records: 2,
    })
    expect(await content.collection(key)).toMatchObject({ dimension: 2, metric: 'cosine' })
    expect(await content.collection({ ...key, space: 'default' })).toEqual(await content.collection(key))
    expect((await spaces.unstaged(sentences, 1, 1)).map(({ text }) => text)).toEqual(['apple'])
    expect((await spaces.unstaged(sentences, 1, 9)).map(({ text }) => text)).toEqual(['apple', ''])
    expect(await write(createSpace)).toEqual({ ok: false, at: 0, reason: 'exists' })
    expect(await write({ ...createSpace, space: 'default' })).toEqual({ ok: false, at: 0, reason: 'exists' })
    expect(await write({ ...createSpace, name: 'gone' })).toEqual({ ok: false, at: 0, reason: 'absent' })
  })

  spacesTest('a space is searched only after its first swap', async (spaces, { write }) => {
    await write(createSpace, upsert(record('a')))
    await expect(scores(sentences)).rejects.toMatchObject({
      ...unavailable,
      message: "vector space 'sentences' of collection 'c' is not complete yet",
    })
    await spaces.lease(sentences, owner, lasting)
    expect(await spaces.stage(sentences, { generation: 0, owner }, [])).toBe(false)
    await stageAll(spaces, 1, up(2))
    await expect(scores(sentences)).rejects.toMatchObject(unavailable)
    expect(await spaces.swap(sentences, { generation: 1, owner })).toBe(true)
    expect(await scores(sentences)).toEqual({ a: 2 })
    expect(await scores(key, Float32Array.of(1, 0))).toEqual({ a: 1 })
    expect(await write(upsert(record('b')))).toEqual(ok)
    await expect(scores(sentences, Float32Array.of(1, 0))).rejects.toMatchObject({
      code: 'dimension_mismatch',
    })
  })

  spacesTest('a space of an empty collection can be swapped', async (spaces, { write }) => {
    await write(createSpace)
    await fill(spaces, 1)
    expect(await scores(sentences)).toEqual({})
    await write(upsert(record('a')))
    expect(await stageAll(spaces, 1)).toEqual(['a'])
    expect(await scores(sentences)).toEqual({ a: 1 })
  })

  spacesTest('a searchable space is searched while it lacks vectors', async (spaces, { content, write }) => {
    await write(upsert(record('a'), record('b')), { ...createSpace, isSearchable: true })
    expect(await scores(sentences)).toEqual({})
    expect(await spaces.unfilled('sentences')).toEqual([{ ...key, records: 2, vectors: 0 }])
    const [a] = await spaces.unstaged(sentences, 1, 9)
    await spaces.lease(sentences, owner, lasting)
    await spaces.stage(sentences, { generation: 1, owner }, [{ record: a!.record, vector: up() }])
    expect(await scores(sentences)).toEqual({ a: 1 })
    expect(await content.collection(sentences)).toMatchObject({ generation: 1, records: 2, vectors: 1 })
    await spaces.release(sentences, owner)
    expect(await scores(sentences)).toEqual({ a: 1 })
    expect(await stageAll(spaces, 1)).toEqual(['b'])
    expect(await spaces.unfilled('sentences')).toEqual([])
    expect(await spaces.unfilled('other')).toEqual([{ ...key, records: 2, vectors: 0 }])
  })

  /** Returns the vectors that records without one in the current generation got from others, by ID. */
  async function carried(spaces: VectorSpaces) {
    const left = await spaces.unstaged(sentences, 1, 99)
    const ids = await idsOf(context().content, left)
    return Object.fromEntries(left.map(({ vector }, at) => [ids[at]!, vector]))
  }

  spacesTest('a record that replaces one with the same text gets its vector', async (spaces, { write }) => {
    await write(
      upsert(
        recordWithText('a', 'apple', { documentId: 'd' }),
        recordWithText('b', 'pear', { documentId: 'd' }),
        recordWithText('c', 'plum', { title: 'Fruit' }),
      ),
      { ...createSpace, isSearchable: true },
    )
    await stageAll(spaces, 1, up(2))
    const changed = [
      recordWithText('new a', 'apple', { documentId: 'e' }),
      recordWithText('new b', 'peach', { documentId: 'e' }),
      recordWithText('c', 'plum', { title: 'Fruit', payload: { lang: 'en' } }),
    ]
    await write({ op: 'deleteDocument', ...key, documentId: 'd' }, upsert(...changed))
    expect(await scores(sentences)).toEqual({})
    expect(await carried(spaces)).toEqual({ 'new a': up(2), 'new b': undefined, c: up(2) })
    // Also if they are replaced again before their vectors are staged.
    await write(upsert(recordWithText('new a', 'apple'), recordWithText('c', 'plum')))
    expect(await carried(spaces)).toEqual({ 'new a': up(2), 'new b': undefined, c: undefined })
    await stageAll(spaces, 1, up(3))
    expect(await carried(spaces)).toEqual({})
    expect(await scores(sentences)).toEqual({ 'new a': 3, 'new b': 3, c: 3 })
  })

  spacesTest(
    'a record gets no vector of one that still exists, or was deleted before',
    async (spaces, { write }) => {
      await write(upsert(recordWithText('a', 'apple'), recordWithText('b', 'pear')), {
        ...createSpace,
        isSearchable: true,
      })
      await stageAll(spaces, 1)
      await write({ op: 'deleteRecord', ...key, id: 'b' })
      await write(upsert(recordWithText('c', 'apple'), recordWithText('d', 'pear')))
      expect(await carried(spaces)).toEqual({ c: undefined, d: undefined })
    },
  )

  spacesTest(
    'a deleted or dropped space, and a deleted record, keep no vectors',
    async (spaces, { write }) => {
      const replace = () => write(upsert(recordWithText('a', 'apple')))
      await write(upsert(recordWithText('a', 'apple')), { ...createSpace, isSearchable: true })
      await stageAll(spaces, 1)
      await replace()
      await write({ op: 'deleteRecord', ...key, id: 'a' })
      await replace()
      expect(await carried(spaces)).toEqual({ a: undefined })
      await stageAll(spaces, 1)
      await replace()
      await write({ op: 'dropSpace', ...sentences }, { ...createSpace, isSearchable: true })
      expect(await carried(spaces)).toEqual({ a: undefined })
      await stageAll(spaces, 1)
      await replace()
      await write({ op: 'dropCollection', ...key })
      await write(createCollection(), upsert(recordWithText('a', 'apple')), {
        ...createSpace,
        isSearchable: true,
      })
      expect(await carried(spaces)).toEqual({ a: undefined })
    },
  )

  spacesTest('reads the vectors of a space, which later records do not have yet', async (spaces, context) => {
    const { content, write } = context
    await write(createSpace, upsert(record('a')))
    const [a] = await content.nearest(key, { vector: Float32Array.of(1, 0), limit: 1, visibility: all })
    const read = (of: SpaceKey, records: number[]) =>
      content.read(of, records, { vectors: true, visibility: all })
    await expect(read(sentences, [a!.record])).rejects.toMatchObject(unavailable)
    await fill(spaces, 1, up(2))
    await write(upsert(record('b')))
    const numbers = (
      await content.nearest(key, { vector: Float32Array.of(1, 0), limit: 9, visibility: all })
    ).map(hit => hit.record)
    const views = await read(sentences, numbers)
    expect(new Map(views.map(({ id, vector }) => [id, vector]))).toEqual(
      new Map([
        ['a', up(2)],
        ['b', undefined],
      ]),
    )
    expect((await read(key, numbers)).map(({ vector }) => vector?.length)).toEqual([2, 2])
  })

  spacesTest('a space that does not exist is reported by its name', async (spaces, { content }) => {
    const missing = {
      ...unavailable,
      message: "vector space 'sentences' of collection 'c' does not exist",
    }
    expect(await content.collection(sentences)).toBeUndefined()
    await expect(scores(sentences)).rejects.toMatchObject(missing)
    await expect(spaces.unstaged(sentences, 1, 9)).rejects.toMatchObject(missing)
    expect(await spaces.lease(sentences, owner, lasting)).toBe(false)
    expect(await spaces.stage(sentences, { generation: 1, owner }, [])).toBe(false)
    expect(await spaces.swap(sentences, { generation: 1, owner })).toBe(false)
    await spaces.release(sentences, owner)
  })

  spacesTest('later records get vectors in the current generation', async (spaces, context) => {
    const { write, content } = context
    await write(createSpace, upsert(record('a'), record('b')))
    await fill(spaces, 1)
    await write(upsert(record('c'), record('d'), record('e')))
    expect(await scores(sentences)).toEqual({ a: 1, b: 1 })
    const [c, d, e] = await spaces.unstaged(sentences, 1, 9)
    const before = await content.collection(key)
    const put = (...vectors: RecordVector[]) => spaces.stage(sentences, { generation: 1, owner }, vectors)
    expect(await put({ record: c!.record, vector: up(3) }, { record: d!.record, vector: up(4) })).toBe(true)
    expect(await scores(sentences)).toEqual({ a: 1, b: 1, c: 3, d: 4 })
    expect((await content.collection(key))!.version).toBeGreaterThan(before!.version)
    expect(await put({ record: d!.record, vector: up(9) }, { record: 999_999, vector: up(9) })).toBe(true)
    expect(await scores(sentences)).toEqual({ a: 1, b: 1, c: 3, d: 4 })
    expect(await spaces.unstaged(sentences, 1, 9)).toEqual([e])
    const { bytes } = await content.stats(key)
    expect(bytes.vectors).toBe(4 * (5 * 2 + 4 * 3))
  })

  spacesTest('a record that was skipped gets a vector in the next generation', async (spaces, { write }) => {
    await write(createSpace)
    await fill(spaces, 1)
    await write(upsert(record('skipped'), record('a')))
    const [skipped, a] = await spaces.unstaged(sentences, 1, 9)
    const put = (record: number) =>
      spaces.stage(sentences, { generation: 1, owner }, [{ record, vector: up() }])
    await put(a!.record)
    expect(await spaces.unstaged(sentences, 1, 9)).toEqual([])
    await write({ op: 'deleteRecord', ...key, id: 'a' }, upsert(record('b')))
    expect((await spaces.unstaged(sentences, 1, 9)).map(({ record: number }) => number)).not.toContain(
      skipped!.record,
    )
    expect(await put(skipped!.record)).toBe(true)
    expect(await scores(sentences)).toEqual({})
    await fill(spaces, 2)
    expect(await scores(sentences)).toEqual({ skipped: 1, b: 1 })
  })

  spacesTest('the default space gets vectors of new records from upsert only', async (spaces, { write }) => {
    await write(upsert(record('a')))
    const [a] = await spaces.unstaged(key, 1, 9)
    await spaces.lease(key, owner, lasting)
    const vectors = [{ record: a!.record, vector: Float32Array.of(0, 1) }]
    expect(await spaces.stage(key, { generation: 0, owner }, vectors)).toBe(false)
    expect(await spaces.unstaged(key, 0, 9)).toEqual([])
  })

  spacesTest(
    'a default space that is not fitted is indexed again without a model',
    async (spaces, context) => {
      const { write, content } = context
      await write({ op: 'dropCollection', ...key }, createCollection({ fitted: false }), upsert(record('a')))
      const east = Float32Array.of(1, 0)
      await fill(spaces, 1, Float32Array.of(0, 1), { ...key, space: 'default' })
      expect(await scores(key, east)).toEqual({ a: 0 })
      expect(await content.collection(key)).toMatchObject({ generation: 1 })
      expect(await write(upsert(record('b')))).toEqual({ ok: false, at: 0, reason: 'stale' })
      expect(await write({ ...upsert(record('b')), generation: 1 } as ContentWrite)).toEqual(ok)
      expect(await scores(key, east, 1)).toEqual({ a: 0, b: 1 })
      const [, a] = await content.nearest(key, { vector: east, limit: 2, visibility: all })
      const [view] = await content.read(key, [a!.record], { vectors: true, visibility: all })
      expect(view).toMatchObject({ id: 'a', vector: Float32Array.of(0, 1) })
    },
  )

  spacesTest(
    'replaced and deleted records lose their vectors in all generations',
    async (spaces, context) => {
      const { write } = context
      await write(
        createSpace,
        upsert(record('a'), record('b', { documentId: 'd' }), record('c'), record('kept')),
      )
      await fill(spaces, 1)
      await stageAll(spaces, 2, up(2))
      await write(
        { op: 'deleteRecord', ...key, id: 'a' },
        { op: 'deleteDocument', ...key, documentId: 'd' },
        upsert(record('c')),
      )
      expect(await scores(sentences)).toEqual({ kept: 1 })
      expect(await spaces.swap(sentences, { generation: 2, owner })).toBe(false)
      expect(await stageAll(spaces, 2, up(3))).toEqual(['c'])
      expect(await spaces.swap(sentences, { generation: 2, owner })).toBe(true)
      expect(await scores(sentences)).toEqual({ kept: 2, c: 3 })
      expect(await scores(key, Float32Array.of(1, 0))).toEqual({ kept: 1, c: 1 })
    },
  )

  spacesTest('a swap replaces all vectors of a space at once', async (spaces, { write, content }) => {
    await write(createSpace, upsert(record('a'), record('b')))
    await fill(spaces, 1)
    await write(upsert(record('c')))
    await stageAll(spaces, 2, up(2))
    expect(await scores(sentences, up(), 1)).toEqual({ a: 1, b: 1 })
    await write(upsert(record('d')))
    expect(await spaces.swap(sentences, { generation: 2, owner })).toBe(false)
    expect(await content.collection(sentences)).toMatchObject({ generation: 1 })
    expect(await stageAll(spaces, 2, up(2))).toEqual(['d'])
    expect(await spaces.swap(sentences, { generation: 2, owner: 'other' })).toBe(false)
    expect(await spaces.swap(sentences, { generation: 2, owner })).toBe(true)
    expect(await scores(sentences, up(), 2)).toEqual({ a: 2, b: 2, c: 2, d: 2 })
    await expect(scores(sentences, up(), 1)).rejects.toMatchObject({ ...unavailable, facts: { stale: true } })
    expect(await content.collection(key)).toMatchObject({ generation: 0 })
  })

  spacesTest('each space has its own lease', async (spaces, { write }) => {
    const other = { ...key, space: 'other' }
    await write(createSpace, { ...createSpace, space: 'other' }, upsert(record('a')))
    await stageAll(spaces, 1)
    expect(await spaces.lease(sentences, 'two', lasting)).toBe(false)
    expect(await spaces.lease(other, 'two', lasting)).toBe(true)
    const [a] = await spaces.unstaged(other, 1, 9)
    const vectors = [{ record: a!.record, vector: up() }]
    expect(await spaces.stage(other, { generation: 1, owner: 'two' }, vectors)).toBe(true)
    expect(await spaces.stage(sentences, { generation: 1, owner: 'two' }, vectors)).toBe(false)
    await spaces.release(sentences, 'two')
    await spaces.release(other, 'two')
    expect(await spaces.unstaged(other, 1, 9)).toEqual([a])
    expect(await spaces.unstaged(sentences, 1, 9)).toEqual([])
    await spaces.lease(sentences, owner, -1)
    expect(await spaces.lease(sentences, 'two', lasting)).toBe(true)
    expect(await spaces.unstaged(sentences, 1, 9)).toEqual([a])
    expect(await spaces.swap(sentences, { generation: 1, owner })).toBe(false)
  })

  spacesTest('rejects vectors that do not fit into the space', async (spaces, { write }) => {
    await write(createSpace, upsert(record('a'), record('b')))
    await spaces.lease(sentences, owner, lasting)
    const [a, b] = await spaces.unstaged(sentences, 1, 9)
    const stage = (vector: Float32Array) =>
      spaces.stage(sentences, { generation: 1, owner }, [
        { record: a!.record, vector: up() },
        { record: b!.record, vector },
      ])
    await expect(stage(Float32Array.of(1, 0))).rejects.toMatchObject({ code: 'dimension_mismatch' })
    await expect(stage(up(Number.NaN))).rejects.toThrow('not finite')
    expect(await spaces.unstaged(sentences, 1, 9)).toEqual([a, b])
  })

  spacesTest('a dropped space leaves the records and the other spaces', async (spaces, context) => {
    const { write, content } = context
    await write(createSpace, upsert(record('a')))
    await fill(spaces, 1)
    await stageAll(spaces, 2)
    expect(await write({ op: 'dropSpace', ...sentences })).toEqual(ok)
    expect(await write({ op: 'dropSpace', ...sentences })).toEqual(ok)
    expect(await write({ op: 'dropSpace', ...sentences, name: 'gone' })).toEqual(ok)
    await expect(scores(sentences)).rejects.toMatchObject(unavailable)
    expect(await scores(key, Float32Array.of(1, 0))).toEqual({ a: 1 })
    expect(await write(createSpace, upsert(record('b')))).toEqual(ok)
    expect(await content.collection(sentences)).toMatchObject({ generation: 0 })
    await fill(spaces, 1, up(5))
    expect(await scores(sentences)).toEqual({ a: 5, b: 5 })
    await expect(write({ op: 'dropSpace', ...key, space: 'default' })).rejects.toThrow('cannot be dropped')
    await write({ op: 'dropCollection', ...key }, createCollection())
    expect(await content.collection(sentences)).toBeUndefined()
  })

  spacesTest(
    'a complete space replaces the default space, with a later generation',
    async (spaces, context) => {
      const { write, content } = context
      const next = { ...key, space: 'next' }
      const promote = { op: 'promoteSpace', ...next } satisfies ContentWrite
      await write(createSpace, upsert(record('a'), record('b')))
      await fill(spaces, 1)
      const { generation } = (await content.collection(key))!
      expect(await write(promote)).toEqual({ ok: false, at: 0, reason: 'absent' })
      await write({ ...createSpace, ...next, isSearchable: true })
      expect(await write(promote)).toEqual({ ok: false, at: 0, reason: 'stale' })
      await stageAll(spaces, 1, up(5), next)
      await write(upsert(record('c')))
      expect(await write(promote)).toEqual({ ok: false, at: 0, reason: 'stale' })
      await stageAll(spaces, 1, up(7), next)
      const late = { ...upsert(record('d')), generation } as ContentWrite
      expect(await write(promote, late)).toEqual({ ok: false, at: 1, reason: 'stale' })
      expect(await content.collection(key)).toMatchObject({ dimension: 2, generation })
      expect(await write(promote)).toEqual(ok)
      expect(await content.collection(next)).toBeUndefined()
      expect(await content.collection(key)).toMatchObject({
        dimension: 3,
        metric: 'dot',
        fitted: false,
        generation: generation + 1,
        records: 3,
        vectors: 3,
      })
      expect(await scores(key)).toEqual({ a: 5, b: 5, c: 7 })
      await expect(scores(key, up(), generation)).rejects.toMatchObject(unavailable)
      expect(await write(late)).toEqual({ ok: false, at: 0, reason: 'stale' })
      expect(await scores(sentences)).toEqual({ a: 1, b: 1 })
      const added = { ...record('d'), vector: up(9) }
      expect(await write({ op: 'upsert', ...key, generation: generation + 1, records: [added] })).toEqual(ok)
      await write({ op: 'deleteRecord', ...key, id: 'a' })
      expect(await scores(key)).toEqual({ b: 5, c: 7, d: 9 })
      await expect(write({ ...promote, space: 'default' })).rejects.toThrow('already the default')
    },
  )

  spacesTest('creating and dropping a space are part of a transaction', async (_, { write, content }) => {
    const stale = { ...upsert(record('a')), generation: 7 } as ContentWrite
    expect(await write(createSpace, stale)).toEqual({ ok: false, at: 1, reason: 'stale' })
    expect(await content.collection(sentences)).toBeUndefined()
    expect(await write(createSpace)).toEqual(ok)
    expect(await write({ op: 'dropSpace', ...sentences }, stale)).toEqual({
      ok: false,
      at: 1,
      reason: 'stale',
    })
    expect(await content.collection(sentences)).toMatchObject({ generation: 0 })
  })

  spacesTest('searches always find the vectors that were stored', async (spaces, { write }) => {
    const id = fc.constantFrom('a', 'b', 'c', 'd')
    const step = fc.oneof(
      fc.record({ kind: fc.constant('upsert' as const), ids: fc.uniqueArray(id, { minLength: 1 }) }),
      fc.record({ kind: fc.constant('delete' as const), id }),
      fc.constantFrom({ kind: 'fill' as const }, { kind: 'swap' as const }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async steps => {
        await write({ op: 'dropCollection', ...key }, createCollection({ lexical: false }), createSpace)
        await fill(spaces, 1)
        const records = new Set<string>()
        const expected = new Map<string, number>()
        let [generation, length] = [1, 0]
        for (const each of steps) {
          length++
          if (each.kind === 'upsert') {
            await write(upsert(...each.ids.map(one => record(one))))
            for (const one of each.ids) {
              records.add(one)
              expected.delete(one)
            }
          } else if (each.kind === 'delete') {
            await write({ op: 'deleteRecord', ...key, id: each.id })
            records.delete(each.id)
            expected.delete(each.id)
          } else if (each.kind === 'fill') {
            for (const one of await stageAll(spaces, generation, up(length))) expected.set(one, length)
          } else {
            await fill(spaces, ++generation, up(length))
            for (const one of records) expected.set(one, length)
          }
          expect(await scores(sentences, up(), generation)).toEqual(Object.fromEntries(expected))
        }
      }),
      { numRuns: 12 },
    )
  })
}

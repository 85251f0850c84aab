import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { ContentRecord, ContentStore, ContentWrite, Metric } from '../../src/storage/content.ts'
import { type Filter, matchesFilter } from '../../src/storage/filter.ts'
import type { RowStore, Write } from '../../src/storage/rows.ts'
import { requireFittedSpaces, requireLexical, requireListing } from '../../src/storage/store-features.ts'
import { tables } from '../../src/storage/tables.ts'
import type { Visibility } from '../../src/storage/visibility.ts'
import {
  all,
  createCollection,
  idsOf,
  key,
  only,
  record,
  recordWithText,
  similarity,
  upsert,
} from './content-data.ts'
import { fittedSuite } from './fitted.suite.ts'
import { lexicalSuite } from './lexical.suite.ts'
import { spacesSuite } from './spaces.suite.ts'

export interface OpenContent {
  readonly rows: RowStore
  readonly content: ContentStore
  close(): Promise<void>
}

const setting = (name: string): Write => ({ op: 'insert', table: tables.settings, row: { name, value: '' } })
const ok = { ok: true }

/** Tests for every content store, including its optional features. */
export function contentSuite(driver: string, open: () => Promise<OpenContent>): void {
  describe(`content: ${driver}`, () => {
    let store: OpenContent
    let content: ContentStore

    beforeEach(async () => {
      store = await open()
      content = store.content
      expect(await content.write([createCollection()], [])).toEqual(ok)
    })
    afterEach(() => store.close())

    const write = (...changes: ContentWrite[]) => content.write(changes, [])
    const nearest = (vector: number[], filter?: Filter, limit = 10) =>
      content.nearest(key, { vector: Float32Array.from(vector), limit, visibility: all, filter })
    const stored = async () => idsOf(content, await nearest([1, 1], undefined, 1_000))

    test('S1-11: returns a collection as it was created', async () => {
      expect(await content.collection(key)).toEqual({
        id: expect.any(Number),
        ...key,
        dimension: 2,
        metric: 'cosine',
        lexical: true,
        fitted: true,
        generation: 0,
        version: 0,
        records: 0,
        vectors: 0,
        vectorsThrough: 0,
        fittedRecords: 0,
        isModelOutdated: false,
      })
      expect(await write(createCollection())).toEqual({ ok: false, at: 0, reason: 'exists' })
      expect(await content.collection({ ...key, name: 'C' })).toBeUndefined()
    })

    test('statistics follow every insertion, replacement and deletion', async () => {
      const sizes = async () => {
        const { records, bytes } = await content.stats(key)
        return [records, bytes.text, bytes.payload, bytes.vectors]
      }
      expect(await content.stats(key)).toMatchObject({ records: 0, changedAt: null })
      expect(await sizes()).toEqual([0, 0, 0, 0])
      await write(
        upsert(
          recordWithText('a', 'Größe', { title: 'T', documentId: 'd', payload: { x: 1 } }),
          recordWithText('b', 'four', { documentId: 'e' }),
        ),
      )
      expect(await sizes()).toEqual([2, 12, 9, 16])
      await write(upsert(recordWithText('a', 'ab', { documentId: 'd', payload: { x: 10 } })))
      expect(await sizes()).toEqual([2, 6, 10, 16])
      await write({ op: 'deleteDocument', ...key, documentId: 'd' })
      expect(await sizes()).toEqual([1, 4, 2, 8])
      await write({ op: 'deleteRecord', ...key, id: 'b' })
      expect(await sizes()).toEqual([0, 0, 0, 0])
      expect((await content.stats(key)).changedAt).toBeGreaterThan(0)
      await expect(content.stats({ ...key, name: 'missing' })).rejects.toMatchObject({
        code: 'collection_unavailable',
      })
    })

    test('S1-07: collections with one name in two workspaces are independent', async () => {
      const other = { workspaceId: 'other', name: key.name }
      await write(
        { ...createCollection(), ...other } as ContentWrite,
        { ...upsert(record('a')), ...other } as ContentWrite,
      )
      expect(await stored()).toEqual([])
      const [hit] = await content.nearest(other, { vector: Float32Array.of(1, 0), limit: 1, visibility: all })
      expect(await content.read(key, [hit!.record], { vectors: false, visibility: all })).toEqual([])
      await write({ op: 'dropCollection', ...other })
      expect(await content.collection(key)).toBeDefined()
    })

    test('a dropped collection deletes its records and frees its name', async () => {
      await write(upsert(recordWithText('a', 'apple')))
      expect(await write({ op: 'dropCollection', ...key }, { op: 'dropCollection', ...key })).toEqual(ok)
      expect(await content.collection(key)).toBeUndefined()
      await expect(nearest([1, 0])).rejects.toMatchObject({ code: 'collection_unavailable' })
      expect(await write(createCollection({ dimension: 3 }))).toEqual(ok)
      expect(await nearest([1, 0, 0])).toEqual([])
    })

    test('records written and dropped in one unit leave no rows', async () => {
      const outcomes = await Promise.all([
        write(upsert(recordWithText('a', 'apple'))),
        write({ op: 'dropCollection', ...key }),
        write(createCollection()),
        write(upsert(recordWithText('b', 'apple'))),
      ])
      expect(outcomes).toEqual([ok, ok, ok, ok])
      expect(await stored()).toEqual(['b'])
    })

    test('an upsert replaces by ID, assigns a new number, and updates the count', async () => {
      await write(upsert(record('a'), record('b')))
      const [before] = await nearest([1, 0])
      await write(upsert(record('a', { payload: { new: true } })))
      const views = await content.read(
        key,
        (await nearest([1, 0])).map(hit => hit.record),
        { vectors: true, visibility: all },
      )
      expect(views.map(({ id }) => id)).toEqual(['b', 'a'])
      expect(views[1]).toEqual({
        ...record('a'),
        record: views[1]!.record,
        payload: { new: true },
        title: undefined,
        context: null,
      })
      expect(views[1]!.record).toBeGreaterThan(before!.record)
      expect(await content.read(key, [before!.record], { vectors: false, visibility: all })).toEqual([])
      expect(await content.collection(key)).toMatchObject({ records: 2 })
    })

    test('an upsert with a repeated ID stores the last record', async () => {
      await write(upsert(record('a', { payload: { n: 1 } }), record('b'), record('a', { payload: { n: 2 } })))
      const hits = await nearest([1, 0])
      const views = await content.read(
        key,
        hits.map(hit => hit.record),
        { vectors: false, visibility: all },
      )
      expect(views.map(({ id, payload }) => [id, payload.n])).toEqual([
        ['b', undefined],
        ['a', 2],
      ])
      expect(await content.collection(key)).toMatchObject({ records: 2 })
    })

    test('deleteDocuments deletes only documents of one knowledge base', async () => {
      const ofBase = (id: string, knowledgeBaseId: string, documentId: string | null = 'd') =>
        recordWithText(id, 'apple', { documentId, payload: { knowledgeBaseId } })
      await write(
        upsert(
          ofBase('a', 'k'),
          ofBase('b', 'k'),
          ofBase('c', 'other'),
          ofBase('e', 'k', null),
          recordWithText('f', 'apple'),
        ),
      )
      expect(await write({ op: 'deleteDocuments', ...key, knowledgeBaseId: 'k' })).toEqual(ok)
      expect((await stored()).sort()).toEqual(['c', 'e', 'f'])
      expect(await content.collection(key)).toMatchObject({ records: 3 })
      const found = await content.lexical?.search(key, {
        text: 'apple',
        limit: 10,
        statistics: 'collection',
        visibility: all,
      })
      if (found) expect(found).toHaveLength(3)
      expect(await write({ op: 'deleteDocuments', ...key, name: 'nobody', knowledgeBaseId: 'k' })).toEqual(ok)
    })

    test('lists the collections of a workspace by name, if the store supports it', async () => {
      if (!content.collections) return
      await write(
        { ...createCollection(), name: 'a' } as ContentWrite,
        { ...createCollection(), workspaceId: 'x' } as ContentWrite,
      )
      const listed = await content.collections(key.workspaceId)
      expect(listed.map(({ name }) => name)).toEqual(['a', key.name])
      expect(listed[1]).toEqual(await content.collection(key))
      expect(await content.collections('nobody')).toEqual([])
    })

    test('every change of content increments the version', async () => {
      const versions: number[] = []
      const changes: ContentWrite[] = [
        upsert(record('a', { documentId: 'd' })),
        upsert(record('a', { documentId: 'd' })),
        { op: 'deleteRecord', ...key, id: 'a' },
      ]
      for (const change of changes) {
        await write(change)
        versions.push((await content.collection(key))!.version)
      }
      expect(versions).toEqual([...new Set(versions)].sort((a, b) => a - b))
    })

    test('a record belongs to a document or to none, and requireOwners rejects another owner', async () => {
      await write(upsert(record('chunk', { documentId: 'd' }), record('own')))
      const owners = [
        { id: 'own', documentId: null, exists: true, isVisible: true },
        { id: 'chunk', documentId: 'd', exists: true, isVisible: true },
        { id: 'absent', documentId: null, exists: false, isVisible: true },
      ]
      const ids = owners.map(({ id }) => id)
      expect(await content.owners(key, ids, all)).toEqual(owners)
      expect(await content.owners({ ...key, name: 'nobody' }, ['chunk'], all)).toEqual([
        { id: 'chunk', documentId: null, exists: false, isVisible: true },
      ])
      const require = (more: object) =>
        write({ op: 'requireOwners', ...key, owners, visibility: all, ...more } as ContentWrite)
      expect(await require({})).toEqual(ok)
      expect(await require({ name: 'nobody' })).toEqual({ ok: false, at: 0, reason: 'absent' })
      for (const owner of [
        { id: 'own', documentId: 'd', exists: true, isVisible: true },
        { id: 'own', documentId: null, exists: true, isVisible: false },
        { id: 'own', documentId: null, exists: false, isVisible: true },
        { id: 'chunk', documentId: 'e', exists: true, isVisible: true },
        { id: 'chunk', documentId: null, exists: true, isVisible: true },
        { id: 'absent', documentId: 'd', exists: false, isVisible: true },
        { id: 'absent', documentId: null, exists: true, isVisible: true },
      ])
        expect(await require({ owners: [...owners, owner] })).toEqual({ ok: false, at: 0, reason: 'stale' })
    })

    test('requireRecords rejects a record that was replaced or deleted', async () => {
      await write(upsert(record('a'), record('b')))
      const records = (await nearest([1, 0])).map(hit => hit.record)
      const requireRecords = { op: 'requireRecords', ...key, records } as const
      expect(await write(requireRecords)).toEqual(ok)
      expect(await write({ ...requireRecords, name: 'nobody' })).toEqual({
        ok: false,
        at: 0,
        reason: 'absent',
      })
      await write(upsert(record('b')))
      expect(await write(requireRecords)).toEqual({ ok: false, at: 0, reason: 'stale' })
    })

    test('rejects vectors of another space and of an unknown collection', async () => {
      expect(await write({ ...upsert(record('a')), generation: 1 } as ContentWrite)).toEqual({
        ok: false,
        at: 0,
        reason: 'stale',
      })
      expect(await write({ ...upsert(record('a')), name: 'nobody' } as ContentWrite)).toEqual({
        ok: false,
        at: 0,
        reason: 'absent',
      })
      expect(await stored()).toEqual([])
    })

    test('S7.3-dimension_mismatch: a vector of another length fails only its own unit', async () => {
      const [good, bad] = await Promise.allSettled([
        write(upsert(record('a'))),
        write(upsert(record('b'), record('c', { vector: Float32Array.of(1, 2, 3) }))),
      ])
      expect(good).toEqual({ status: 'fulfilled', value: ok })
      expect(bad).toMatchObject({ status: 'rejected', reason: { code: 'dimension_mismatch' } })
      expect(await stored()).toEqual(['a'])
      await expect(nearest([1, 0, 0])).rejects.toMatchObject({ code: 'dimension_mismatch' })
    })

    test.each([Number.NaN, Number.POSITIVE_INFINITY])(
      'rejects a vector with %s as a defect and does not store it',
      async number => {
        await expect(write(upsert(record('a', { vector: Float32Array.of(1, number) })))).rejects.toThrow(
          /finite/,
        )
        expect(await stored()).toEqual([])
      },
    )

    test('rows and content are written together or not at all', async () => {
      const stale = { ...upsert(record('b')), generation: 7 } as ContentWrite
      expect(await content.write([upsert(record('a')), stale], [setting('s')])).toEqual({
        ok: false,
        at: 2,
        reason: 'stale',
      })
      expect(await store.rows.get(tables.settings, ['s'])).toBeUndefined()
      expect(await content.write([upsert(record('a'))], [setting('s'), setting('s')])).toEqual({
        ok: false,
        at: 1,
        reason: 'exists',
      })
      expect(await stored()).toEqual([])
      expect(await content.write([upsert(record('a'))], [setting('s')])).toEqual(ok)
      expect(await store.rows.get(tables.settings, ['s'])).toBeDefined()
      expect(await stored()).toEqual(['a'])
    })

    test('100 concurrent units of rows and content succeed or fail as a whole', async () => {
      const outcomes = await Promise.all(
        Array.from({ length: 100 }, (_, n) => {
          const change = upsert(recordWithText(`r${n}`, `text ${n}`))
          return content.write(
            [n % 3 === 1 ? ({ ...change, generation: 9 } as ContentWrite) : change],
            [setting(`s${n}`)],
          )
        }),
      )
      const expected = outcomes.flatMap(({ ok: isKept }, n) => (isKept ? [`r${n}`] : []))
      expect(expected).toHaveLength(67)
      expect((await stored()).sort()).toEqual(expected.sort())
      for (const [n, outcome] of outcomes.entries())
        expect(Boolean(await store.rows.get(tables.settings, [`s${n}`]))).toBe(outcome.ok)
    })

    test('deleting a document deletes its records, and deleting a record reports if it existed', async () => {
      await write(
        upsert(
          record('a', { documentId: 'd', chunkIndex: 0 }),
          record('b', { documentId: 'd', chunkIndex: 1 }),
          record('c', { documentId: 'e', chunkIndex: 0 }),
          record('d'),
        ),
      )
      expect(await write({ op: 'deleteDocument', ...key, documentId: 'd' })).toEqual(ok)
      expect(await stored()).toEqual(['c', 'd'])
      expect(await write({ op: 'deleteDocument', ...key, documentId: 'd' })).toEqual(ok)
      expect(await write({ op: 'deleteRecord', ...key, id: 'd' })).toEqual(ok)
      expect(await write({ op: 'deleteRecord', ...key, id: 'd' })).toEqual({
        ok: false,
        at: 0,
        reason: 'absent',
      })
      expect(await stored()).toEqual(['c'])
      expect(await content.collection(key)).toMatchObject({ records: 1 })
    })

    test('reads records in the requested order and omits deleted ones', async () => {
      const vector = Float32Array.of(0.1, -3)
      const chunk = { documentId: 'd', chunkIndex: 4, context: 'Keys', text: 'text' }
      await write(upsert(record('a', { vector, ...chunk }), record('b')))
      const [b, a] = (await nearest([1, 0])).map(hit => hit.record)
      const views = await content.read(key, [a!, 999_999, b!, a!], { vectors: true, visibility: all })
      expect(views.map(({ id }) => id)).toEqual(['a', 'b', 'a'])
      expect(views[0]).toEqual({
        record: a,
        id: 'a',
        ...chunk,
        payload: {},
        vector,
      })
      const [bare] = await content.read(key, [a!], { vectors: false, visibility: all })
      expect(bare).not.toHaveProperty('vector')
    })

    test('a caller can read and find only records that are visible to the caller or to everyone', async () => {
      const seen = (id: string, visibleTo?: unknown) =>
        record(id, { documentId: 'd', payload: visibleTo === undefined ? {} : { visible_to: visibleTo } })
      await write(
        upsert(
          seen('alice', ['alice']),
          seen('both', ['alice', 'bob']),
          seen('everyone', ['*']),
          seen('nobody'),
          seen('null', null),
          seen('text', 'alice'),
          seen('object', { a: 'alice' }),
          seen('quoted', ["alice' OR 1"]),
        ),
      )
      const found = async (...principals: string[]) => {
        const query = { vector: Float32Array.of(1, 0), limit: 10, visibility: only(...principals) }
        return idsOf(content, await content.nearest(key, query))
      }
      expect(await found('alice')).toEqual(['alice', 'both', 'everyone'])
      expect(await found('bob', 'carol')).toEqual(['both', 'everyone'])
      expect(await found()).toEqual(['everyone'])
      expect(await found("alice' OR 1")).toEqual(['everyone', 'quoted'])
      const numbers = (await nearest([1, 0])).map(hit => hit.record)
      const views = await content.read(key, numbers, { vectors: true, visibility: only('bob') })
      expect(views.map(({ id }) => id)).toEqual(['both', 'everyone'])
      const listed = await content.listing?.listByDocument(key, {
        documentId: 'd',
        limit: 9,
        visibility: only('bob'),
      })
      if (listed) expect(listed.map(({ id }) => id)).toEqual(['both', 'everyone'])
      const owners = await content.owners(key, ['both', 'alice', 'absent'], only('bob'))
      expect(owners.map(({ isVisible }) => isVisible)).toEqual([true, false, true])
      const requireOwners = { op: 'requireOwners', ...key, owners, visibility: only('alice') } as const
      expect(await write(requireOwners)).toEqual({ ok: false, at: 0, reason: 'stale' })
    })

    test('reads end after the visible record that exceeds the limit of characters', async () => {
      const long = (id: string, visibleTo: string, chars: number) =>
        record(id, { documentId: 'd', payload: { visible_to: [visibleTo], note: 'x'.repeat(chars) } })
      await write(
        upsert(long('a', 'bob', 400), long('b', 'alice', 9_000), long('c', '*', 700), long('d', '*', 9)),
      )
      const hits = await content.nearest(key, { vector: Float32Array.of(1, 0), limit: 9, visibility: all })
      const views = await content.read(
        key,
        hits.map(hit => hit.record),
        { vectors: false, visibility: all },
      )
      const numbers = ['a', 'b', 'c', 'd'].map(id => views.find(view => view.id === id)!.record)
      const page = { documentId: 'd', limit: 9, visibility: only('bob') }
      for (const [charsMax, expected] of [
        [0, ['a']],
        [1_000, ['a', 'c']],
        [9_000, ['a', 'c', 'd']],
      ] as const) {
        const options = { vectors: false, visibility: only('bob'), charsMax }
        expect((await content.read(key, numbers, options)).map(({ id }) => id)).toEqual(expected)
        const listed = await content.listing?.listByDocument(key, { ...page, charsMax })
        if (listed) expect(listed.map(({ id }) => id)).toEqual(expected)
      }
    })

    test('numbersByDocument returns the first visible records of a document that match a filter', async () => {
      const { listing } = content
      if (!listing) return
      const chunk = (chunkIndex: number, lang: string, visibleTo = '*') =>
        record(`d:${chunkIndex}`, {
          documentId: 'd',
          chunkIndex,
          payload: { visible_to: [visibleTo], lang },
        })
      await write(
        upsert(
          chunk(3, 'en'),
          chunk(2, 'de'),
          chunk(1, 'en', 'bob'),
          chunk(0, 'en'),
          record('e', { documentId: 'e' }),
        ),
      )
      const indexesOf = async (limit: number, visibility: Visibility, filter?: Filter) => {
        const query = { documentId: 'd', limit, visibility, filter }
        const numbers = await listing.numbersByDocument(key, query)
        const views = await content.read(key, numbers, { vectors: false, visibility: all })
        return views.map(({ chunkIndex }) => chunkIndex)
      }
      const english: Filter = { kind: 'in', key: 'lang', values: ['en'] }
      expect(await indexesOf(9, all)).toEqual([0, 1, 2, 3])
      expect(await indexesOf(2, only('alice'))).toEqual([0, 2])
      expect(await indexesOf(9, only('alice'), english)).toEqual([0, 3])
      expect(await indexesOf(9, only('bob'), english)).toEqual([0, 1, 3])
    })

    test('listDirect returns visible records without a document, in ascending order after a number', async () => {
      const { listing } = content
      if (!listing) return
      const seen = (id: string, visibleTo: string) => record(id, { payload: { visible_to: [visibleTo] } })
      await write(
        upsert(seen('b', '*'), record('chunk', { documentId: 'd' }), seen('a', 'bob'), seen('c', '*')),
      )
      const direct = (after: number, limit = 9, visibility = all) =>
        listing.listDirect(key, { after, limit, visibility })
      const views = await direct(0)
      expect(views.map(({ id }) => id)).toEqual(['b', 'a', 'c'])
      expect((await direct(views[0]!.record, 1)).map(({ id }) => id)).toEqual(['a'])
      expect((await direct(0, 2, only('alice'))).map(({ id }) => id)).toEqual(['b', 'c'])
    })

    test.each<Metric>(['cosine', 'dot', 'euclidean'])(
      'nearest returns the best records that match a filter and are visible after any changes: %s',
      async metric => {
        await fc.assert(
          fc.asyncProperty(changes, query, (steps, asked) => agrees(metric, steps, asked)),
          {
            numRuns: 25,
          },
        )
      },
    )

    async function agrees(
      metric: Metric,
      steps: readonly Step[],
      asked: {
        vector: number[]
        filter: Filter | undefined
        principals: string[] | undefined
        limit: number
      },
    ): Promise<void> {
      await write(
        { op: 'dropCollection', ...key },
        createCollection({ dimension: 3, metric, lexical: false }),
      )
      const model = new Map<string, ContentRecord>()
      const { limit, filter, principals } = asked
      const visibility = principals ? only(...principals) : all
      const search = { vector: Float32Array.from(asked.vector), limit, filter, visibility }
      const isVisible = ({ visible_to }: ContentRecord['payload']) =>
        !principals || ['*', ...principals].some(one => (visible_to as string[]).includes(one))
      for (const step of steps) {
        await write(stepOf(step, model))
        const hits = await content.nearest(key, search)
        expect(await content.nearest(key, search)).toEqual(hits)
        // The model keeps insertion order, which is the order of record numbers.
        const expected = [...model.values()]
          .filter(({ payload }) => matchesFilter(filter, payload) && isVisible(payload))
          .map(({ id, vector }) => ({ id, score: similarity(metric, search.vector, vector) }))
          .sort((a, b) => b.score - a.score)
        expect(hits.map(({ score }) => score)).toEqual(
          expected.slice(0, limit).map(({ score }) => expect.closeTo(score, 5)),
        )
        const ids = await idsOf(content, hits)
        for (const [at, id] of ids.entries()) {
          const own = expected.find(one => one.id === id)
          expect(own, `hit ${id} is not allowed`).toBeDefined()
          expect(hits[at]!.score).toBeCloseTo(own!.score, 5)
        }
        expect(new Set(ids).size).toBe(hits.length)
      }
    }

    test('distinguishes 5,000 nearly identical records', async () => {
      await write({ op: 'dropCollection', ...key }, createCollection({ dimension: 16, lexical: false }))
      const vectorAt = (n: number) =>
        Float32Array.from({ length: 16 }, (_, at) => 1 + (at === 3 ? n * 1e-6 : 0))
      for (let from = 0; from < 5_000; from += 1_000)
        await write(
          upsert(
            ...Array.from({ length: 1_000 }, (_, n) => record(`${from + n}`, { vector: vectorAt(from + n) })),
          ),
        )
      const vector = vectorAt(0)
      const hits = await content.nearest(key, { vector, limit: 1_000, visibility: all })
      const exact = Array.from({ length: 5_000 }, (_, n) => ({
        n,
        score: similarity('cosine', vector, vectorAt(n)),
      }))
        .sort((a, b) => b.score - a.score || a.n - b.n)
        .slice(0, 1_000)
      expect(hits.at(-1)!.score).toBeCloseTo(exact.at(-1)!.score, 12)
      expect(hits).toHaveLength(1_000)
    })

    test('orders equal scores by record', async () => {
      await write(upsert(...['e', 'd', 'c', 'b', 'a'].map(id => record(id))))
      expect(await idsOf(content, await nearest([1, 0], undefined, 3))).toEqual(['e', 'd', 'c'])
    })

    test('lists the chunks of a document in pages by number, and chunks without a number last', async () => {
      if (!content.listing)
        return expect(() => requireListing(content)).toThrow(expect.objectContaining({ status: 501 }))
      const chunk = (id: string, chunkIndex: number | null) =>
        record(id, { documentId: 'd', chunkIndex, text: id })
      await write(
        upsert(
          chunk('x', null),
          chunk('b', 2),
          chunk('a', 10),
          chunk('c', 0),
          chunk('w', null),
          chunk('d', 2),
        ),
        upsert(record('other', { documentId: 'e', chunkIndex: 0 }), record('none')),
      )
      const found: string[] = []
      let after: { chunkIndex: number | null; id: string } | undefined
      for (;;) {
        const page = await content.listing.listByDocument(key, {
          documentId: 'd',
          after,
          limit: 2,
          visibility: all,
        })
        found.push(...page.map(({ id }) => id))
        if (page.length < 2) break
        after = page.at(-1)
      }
      expect(found).toEqual(['c', 'b', 'd', 'a', 'w', 'x'])
    })

    test('an unsupported operation has its own error code', () => {
      const codeOf = (use: () => unknown) => {
        try {
          return use() === undefined ? 'undefined' : 'offered'
        } catch (error) {
          return (error as { code: string }).code
        }
      }
      const plain = { lexical: false }
      expect(codeOf(() => requireLexical(content, plain))).toBe('hybrid_not_supported')
      expect(codeOf(() => requireLexical(content, { lexical: true }))).toBe(
        content.lexical ? 'offered' : 'hybrid_not_supported',
      )
      expect(codeOf(() => requireListing(content))).toBe(
        content.listing ? 'offered' : 'list_records_not_supported',
      )
      expect(codeOf(() => requireFittedSpaces(content))).toBe(
        content.fitted ? 'offered' : 'driver_unavailable',
      )
    })

    test('reads of a dropped collection report it as missing', async () => {
      const gone = { ...key, name: 'gone' }
      const unavailable = { code: 'collection_unavailable' }
      const query = { vector: Float32Array.of(1, 0), limit: 1, visibility: all }
      await expect(content.nearest(gone, query)).rejects.toMatchObject(unavailable)
      await expect(content.read(gone, [1], { vectors: false, visibility: all })).rejects.toMatchObject(
        unavailable,
      )
    })

    const context = () => ({ content, write })
    lexicalSuite(context)
    fittedSuite(context)
    spacesSuite(context)
  })
}

type Step =
  | {
      readonly kind: 'upsert'
      readonly records: readonly { id: string; vector: number[]; payload: ContentRecord['payload'] }[]
    }
  | { readonly kind: 'delete'; readonly id: string }

const id = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h')
const color = fc.constantFrom('red', 'green')
const principal = fc.constantFrom('alice', 'bob')
const vector = fc.array(fc.integer({ min: -8, max: 8 }), { minLength: 3, maxLength: 3 })
const payload = fc.record({
  color,
  n: fc.nat(5),
  visible_to: fc.subarray(['alice', 'bob', '*'], { maxLength: 2 }),
})
const changes: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    fc.record({
      kind: fc.constant('upsert' as const),
      records: fc.array(fc.record({ id, vector, payload }), { minLength: 1, maxLength: 5 }),
    }),
    fc.record({ kind: fc.constant('delete' as const), id }),
  ),
  { minLength: 1, maxLength: 8 },
)
const colors = color.map((value): Filter => ({ kind: 'in', key: 'color', values: [value] }))
const range = fc
  .record({ operator: fc.constantFrom('<' as const, '>=' as const), bound: fc.nat(5) })
  .map((bounds): Filter => ({ kind: 'range', key: 'n', ...bounds }))
const filter = fc.oneof(
  colors,
  range,
  colors.map((operand): Filter => ({ kind: 'not', operand })),
  fc.tuple(colors, range).map((parts): Filter => ({ kind: 'or', parts })),
)
const query = fc.record({
  vector,
  limit: fc.integer({ min: 1, max: 6 }),
  filter: fc.option(filter, { nil: undefined }),
  principals: fc.option(fc.uniqueArray(principal, { maxLength: 2 }), { nil: undefined }),
})

/** Returns the change of a step, and applies it to the model. */
function stepOf(step: Step, model: Map<string, ContentRecord>): ContentWrite {
  if (step.kind === 'delete') {
    model.delete(step.id)
    return { op: 'deleteRecord', ...key, id: step.id }
  }
  const records = step.records.map(made =>
    record(made.id, { vector: Float32Array.from(made.vector), payload: made.payload }),
  )
  for (const made of records) {
    model.delete(made.id)
    model.set(made.id, made)
  }
  return upsert(...records)
}

import { expect, test } from 'vitest'
import type {
  ContentWrite,
  EncodedModel,
  FitResult,
  FittedSpaces,
  SpaceLease,
} from '../../src/storage/content.ts'
import { all, createCollection, idsOf, key, only, record, recordWithText, upsert } from './content-data.ts'
import type { Context } from './lexical.suite.ts'

const lasting = 60_000
const model: EncodedModel = { terms: 'apple\npear', weights: Uint8Array.of(1, 2, 255) }
const fit: SpaceLease = { generation: 1, owner: 'one' }
const [north, east] = [Float32Array.of(0, 1), Float32Array.of(1, 0)]

/** Tests for fitted spaces; a store without them passes. */
export function fittedSuite(context: () => Context): void {
  function fittedTest(title: string, run: (spaces: FittedSpaces, context: Context) => Promise<void>): void {
    test(title, async () => {
      const { fitted } = context().content
      if (fitted) await run(fitted, context())
      else expect(fitted).toBeUndefined()
    })
  }

  /** Returns a fit that has read every current passage. */
  async function fittedOn(spaces: FittedSpaces, records: number): Promise<FitResult> {
    return {
      model,
      records,
      through: (await spaces.passages(key, { after: 0, limit: 99, visibility: all })).at(-1)?.record ?? 0,
    }
  }

  /** Stages one vector for all records without a vector. */
  async function stageAll(spaces: FittedSpaces, vector = north): Promise<void> {
    await spaces.lease(key, fit.owner, lasting)
    for (;;) {
      const left = await spaces.unstaged(key, 1, 2)
      if (left.length === 0) return
      await spaces.stage(
        key,
        fit,
        left.map(({ record: number }) => ({ record: number, vector })),
      )
    }
  }

  fittedTest('a new collection has a placeholder and only unfitted records', async (spaces, { write }) => {
    expect(await spaces.model(key)).toEqual({ generation: 0, model: undefined })
    expect(await spaces.fitCounts(key, all)).toMatchObject({ unfitted: 0 })
    await write(upsert(recordWithText('a', 'apple'), recordWithText('b', 'pear')))
    expect(await spaces.fitCounts(key, all)).toEqual({ unfitted: 2, records: 2 })
    await write(upsert(recordWithText('a', 'apple')), { op: 'deleteRecord', ...key, id: 'b' })
    expect(await spaces.fitCounts(key, all)).toEqual({ unfitted: 1, records: 1 })
  })

  fittedTest('a missing collection has no counts', async spaces => {
    expect(await spaces.fittedCollections()).toEqual([key])
    expect(await spaces.fitCounts({ ...key, name: 'missing' }, all)).toBeUndefined()
  })

  fittedTest('a collection with external vectors is never due for a fit', async (spaces, context) => {
    const { write, content } = context
    await write(
      { op: 'dropCollection', ...key },
      createCollection({ fitted: false }),
      upsert(recordWithText('a', 'apple')),
    )
    expect(await content.collection(key)).toMatchObject({ fitted: false, records: 1 })
    expect(await spaces.fittedCollections()).toEqual([])
  })

  fittedTest('passages are read in pages by record number', async (spaces, { write }) => {
    await write(
      upsert(
        recordWithText('a', 'apple', { title: 'A' }),
        record('vector only'),
        recordWithText('b', 'pear'),
      ),
    )
    const [first] = await spaces.passages(key, { after: 0, limit: 1, visibility: all })
    expect(first).toEqual({ record: expect.any(Number), title: 'A', text: 'apple' })
    expect(await spaces.passages(key, { after: first!.record, limit: 9, visibility: all })).toEqual([
      { record: expect.any(Number), title: null, text: 'pear' },
    ])
  })

  fittedTest('a fit that is running when the model becomes outdated does not replace it', async spaces => {
    await spaces.lease(key, 'one', lasting)
    expect(await spaces.renew(key, 'one', lasting)).toBe(true)
    await spaces.invalidate(key)
    expect(await spaces.renew(key, 'one', lasting)).toBe(false)
    expect(await spaces.stage(key, { generation: 1, owner: 'one' }, [])).toBe(false)
    expect(await spaces.lease(key, 'two', lasting)).toBe(true)
    expect(await spaces.renew(key, 'one', lasting)).toBe(false)
  })

  fittedTest('one owner has the lease until it is released or expires', async (spaces, { write }) => {
    expect(await spaces.lease(key, 'one', lasting)).toBe(true)
    expect(await spaces.lease(key, 'two', lasting)).toBe(false)
    expect(await spaces.lease(key, 'one', lasting)).toBe(true)
    await spaces.release(key, 'two')
    expect(await spaces.lease(key, 'two', lasting)).toBe(false)
    await spaces.release(key, 'one')
    expect(await spaces.lease(key, 'two', -1)).toBe(true)
    expect(await spaces.lease(key, 'three', lasting)).toBe(true)
    expect(await spaces.lease({ ...key, name: 'nobody' }, 'one', lasting)).toBe(false)
    await write({ op: 'dropCollection', ...key }, createCollection())
    expect(await spaces.lease(key, 'four', lasting)).toBe(true)
  })

  fittedTest('a swap activates the whole new space at once', async (spaces, { write, content }) => {
    await write(
      upsert(recordWithText('a', 'apple', { vector: east }), recordWithText('b', 'pear', { vector: east })),
    )
    const near = async (vector: Float32Array, generation?: number) =>
      content.nearest(key, { vector, limit: 9, visibility: all, generation })
    expect((await near(east))[0]!.score).toBe(1)
    await stageAll(spaces)
    expect((await near(east))[0]!.score).toBe(1)
    expect(await spaces.swap(key, fit, await fittedOn(spaces, 2))).toBe(true)
    expect((await near(east, 1)).map(({ score }) => score)).toEqual([0, 0])
    expect((await near(north))[0]!.score).toBe(1)
    expect(await content.collection(key)).toMatchObject({ generation: 1, records: 2, fittedRecords: 2 })
    expect(await spaces.model(key)).toEqual({ generation: 1, model })
    expect(await spaces.fitCounts(key, all)).toMatchObject({ unfitted: 0 })
    await expect(near(east, 0)).rejects.toMatchObject({
      code: 'collection_unavailable',
      facts: { stale: true },
    })
    const stale = upsert(recordWithText('c', 'plum'))
    expect(await write(stale)).toEqual({ ok: false, at: 0, reason: 'stale' })
    expect(await write({ ...stale, generation: 1 } as ContentWrite)).toEqual({ ok: true })
    expect(await spaces.fitCounts(key, all)).toEqual({ unfitted: 1, records: 3 })
    expect(
      await idsOf(
        content,
        await content.lexical!.search(key, {
          text: 'pear',
          limit: 9,
          visibility: all,
          statistics: 'collection',
        }),
      ),
    ).toEqual(['b'])
  })

  fittedTest(
    'a swap fails while a record has no vector of the new space',
    async (spaces, { write, content }) => {
      await write(upsert(recordWithText('a', 'apple'), recordWithText('b', 'pear'), record('no text')))
      await spaces.lease(key, fit.owner, lasting)
      expect(await spaces.swap(key, fit, { model, records: 0, through: 0 })).toBe(false)
      const left = await spaces.unstaged(key, 1, 9)
      expect(left.map(({ text }) => text)).toEqual(['apple', 'pear', ''])
      const read: FitResult = { model, records: 3, through: left.at(-1)!.record }
      await stageAll(spaces)
      await write(upsert(recordWithText('late', 'plum'), recordWithText('a', 'apple again')))
      expect((await spaces.unstaged(key, 1, 9)).map(({ text }) => text)).toEqual(['plum', 'apple again'])
      expect(await spaces.swap(key, fit, read)).toBe(false)
      expect(await content.collection(key)).toMatchObject({ generation: 0 })
      await write({ op: 'deleteRecord', ...key, id: 'late' })
      await stageAll(spaces)
      expect(await spaces.swap(key, fit, read)).toBe(true)
      expect(await spaces.swap(key, fit, read)).toBe(false)
      expect(await spaces.fitCounts(key, all)).toEqual({ unfitted: 1, records: 3 })
    },
  )

  fittedTest('a record deleted after it was staged is not in the new space', async (spaces, context) => {
    const { write, content } = context
    await write(
      upsert(
        recordWithText('a', 'apple', { documentId: 'd' }),
        recordWithText('b', 'pear'),
        recordWithText('c', 'plum'),
      ),
    )
    await stageAll(spaces)
    await write({ op: 'deleteDocument', ...key, documentId: 'd' }, { op: 'deleteRecord', ...key, id: 'b' })
    expect(await spaces.swap(key, fit, await fittedOn(spaces, 3))).toBe(true)
    const hits = await content.nearest(key, { vector: north, limit: 9, visibility: all })
    expect(hits).toHaveLength(1)
    expect(await idsOf(content, hits)).toEqual(['c'])
  })

  fittedTest('a gap in the staged records is detected', async (spaces, { write }) => {
    await write(
      upsert(recordWithText('a', 'apple'), recordWithText('b', 'pear'), recordWithText('c', 'plum')),
    )
    const [, second, third] = await spaces.passages(key, { after: 0, limit: 9, visibility: all })
    await spaces.lease(key, fit.owner, lasting)
    await spaces.stage(key, fit, [
      { record: second!.record, vector: north },
      { record: third!.record, vector: north },
    ])
    expect((await spaces.unstaged(key, 1, 9)).map(({ text }) => text)).toEqual(['apple'])
  })

  fittedTest('records after the last one that the fit read are unfitted', async (spaces, { write }) => {
    await write(upsert(recordWithText('a', 'apple'), recordWithText('b', 'pear')))
    const through = (await spaces.passages(key, { after: 0, limit: 9, visibility: all })).at(-1)!.record
    await write({ op: 'deleteRecord', ...key, id: 'a' }, upsert(recordWithText('c', 'plum')))
    await stageAll(spaces)
    expect(await spaces.swap(key, fit, { model, records: 2, through })).toBe(true)
    expect(await spaces.fitCounts(key, all)).toEqual({ unfitted: 1, records: 2 })
  })

  fittedTest(
    'counts of visible records include deleted ones that the model knows',
    async (spaces, { write }) => {
      const visible = { payload: { visible_to: ['*'] } }
      const hidden = { payload: { visible_to: ['bob'] } }
      const counts = () => spaces.fitCounts(key, only())
      await write(
        upsert(
          recordWithText('a', 'apple', visible),
          recordWithText('b', 'pear', visible),
          recordWithText('c', 'plum', hidden),
        ),
      )
      expect(await counts()).toEqual({ records: 2, unfitted: 2 })
      await stageAll(spaces)
      expect(await spaces.swap(key, fit, await fittedOn(spaces, 2))).toBe(true)
      expect(await counts()).toEqual({ records: 2, unfitted: 0 })
      await write({ op: 'deleteRecord', ...key, id: 'c' }, {
        ...upsert(recordWithText('d', 'quince', hidden)),
        generation: 1,
      } as ContentWrite)
      expect(await counts()).toEqual({ records: 2, unfitted: 0 })
      await write({ op: 'deleteRecord', ...key, id: 'a' })
      expect(await counts()).toEqual({ records: 1, unfitted: 1 })
    },
  )

  fittedTest(
    'vectors staged under a lost lease are not used by another fit',
    async (spaces, { write, content }) => {
      await write(upsert(recordWithText('a', 'apple'), recordWithText('b', 'pear')))
      const [a, b] = await spaces.passages(key, { after: 0, limit: 9, visibility: all })
      const vectorFor = (passage: typeof a, vector: Float32Array) => [{ record: passage!.record, vector }]
      const [slow, quick] = [
        { generation: 1, owner: 'slow' },
        { generation: 1, owner: 'quick' },
      ]
      await spaces.lease(key, 'slow', -1)
      expect(await spaces.stage(key, slow, vectorFor(a, east))).toBe(true)
      expect(await spaces.lease(key, 'quick', lasting)).toBe(true)
      expect(await spaces.unstaged(key, 1, 9)).toHaveLength(2)
      expect(await spaces.stage(key, slow, vectorFor(b, east))).toBe(false)
      expect(await spaces.stage(key, quick, [...vectorFor(a, north), ...vectorFor(b, north)])).toBe(true)
      expect(await spaces.swap(key, slow, await fittedOn(spaces, 2))).toBe(false)
      expect(await spaces.swap(key, quick, await fittedOn(spaces, 2))).toBe(true)
      const hits = await content.nearest(key, { vector: north, limit: 9, visibility: all })
      expect(hits.map(({ score }) => score)).toEqual([1, 1])
    },
  )

  fittedTest('staging requires a lease', async (spaces, { write }) => {
    await write(upsert(recordWithText('a', 'apple')))
    const [passage] = await spaces.passages(key, { after: 0, limit: 1, visibility: all })
    expect(await spaces.stage(key, fit, [{ record: passage!.record, vector: north }])).toBe(false)
    expect(await spaces.unstaged(key, 1, 9)).toHaveLength(1)
  })

  fittedTest('releasing a lease deletes staged vectors', async (spaces, { write }) => {
    await write(upsert(recordWithText('a', 'apple')))
    await spaces.lease(key, 'one', lasting)
    await stageAll(spaces)
    await spaces.release(key, 'one')
    expect(await spaces.unstaged(key, 1, 9)).toHaveLength(1)
    await spaces.lease(key, 'one', lasting)
    expect(await spaces.swap(key, fit, await fittedOn(spaces, 1))).toBe(false)
  })

  fittedTest('a fitted space is not swapped without a model', async (spaces, { write, content }) => {
    await write(upsert(recordWithText('a', 'apple')))
    await stageAll(spaces)
    await expect(spaces.swap(key, fit)).rejects.toThrow('needs a model')
    expect(await content.collection(key)).toMatchObject({ generation: 0 })
    expect(await spaces.swap(key, fit, await fittedOn(spaces, 1))).toBe(true)
  })

  fittedTest('vectors of another generation are not stored', async (spaces, { write }) => {
    await write(upsert(recordWithText('a', 'apple')))
    const [passage] = await spaces.passages(key, { after: 0, limit: 1, visibility: all })
    const vectors = [{ record: passage!.record, vector: north }]
    await spaces.lease(key, fit.owner, lasting)
    expect(await spaces.stage(key, { ...fit, generation: 0 }, vectors)).toBe(false)
    expect(await spaces.stage(key, { ...fit, generation: 2 }, vectors)).toBe(false)
    expect(await spaces.stage(key, fit, [{ record: 999_999, vector: north }])).toBe(true)
    expect(await spaces.swap(key, fit, await fittedOn(spaces, 1))).toBe(false)
    await expect(
      spaces.stage(key, fit, [{ ...vectors[0]!, vector: Float32Array.of(1) }]),
    ).rejects.toMatchObject({
      code: 'dimension_mismatch',
    })
  })
}

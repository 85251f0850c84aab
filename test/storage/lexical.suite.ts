import { expect, test } from 'vitest'
import { WbError } from '../../src/contract/errors.ts'
import type { ContentStore, ContentWrite, SearchConstraints } from '../../src/storage/content.ts'
import type { WriteOutcome } from '../../src/storage/rows.ts'
import { all, createCollection, idsOf, key, only, recordWithText, upsert } from './content-data.ts'

export interface Context {
  readonly content: ContentStore
  write(...changes: ContentWrite[]): Promise<WriteOutcome>
}

/** Tests for lexical search, independent of its formula; a store without it passes. */
export function lexicalSuite(context: () => Context): void {
  const search = (text: string, reach: Partial<SearchConstraints> = {}, limit = 10) =>
    context().content.lexical!.search(key, {
      text,
      limit,
      statistics: 'collection',
      visibility: all,
      ...reach,
    })
  const found = async (text: string, reach: Partial<SearchConstraints> = {}, limit = 10) =>
    idsOf(context().content, await search(text, reach, limit))

  function lexicalTest(title: string, run: (context: Context) => Promise<void>): void {
    test(title, async () => {
      if (context().content.lexical) await run(context())
      else expect(context().content.lexical).toBeUndefined()
    })
  }

  lexicalTest('finds records by words, ignores case, and sorts by score', async ({ write }) => {
    await write(
      upsert(
        recordWithText('both', 'Supersonic flow past a slender wing'),
        recordWithText('one', 'a wing and nothing else of interest here'),
        recordWithText('none', 'heat transfer'),
      ),
    )
    const ranked = await search('SUPERSONIC wing')
    expect(await idsOf(context().content, ranked)).toEqual(['both', 'one'])
    expect(ranked[0]!.score).toBeGreaterThan(ranked[1]!.score)
    expect(await found('nowhere')).toEqual([])
  })

  lexicalTest('does not find replaced or deleted text', async ({ write }) => {
    await write(upsert(recordWithText('a', 'apple', { documentId: 'd' }), recordWithText('b', 'apple')))
    await write(upsert(recordWithText('a', 'pear', { documentId: 'd' })))
    expect(await found('apple')).toEqual(['b'])
    expect(await found('pear')).toEqual(['a'])
    await write({ op: 'deleteDocument', ...key, documentId: 'd' }, { op: 'deleteRecord', ...key, id: 'b' })
    expect(await found('pear apple')).toEqual([])
  })

  lexicalTest('searches titles too, and a record without words can be deleted', async ({ write }) => {
    await write(
      upsert(
        recordWithText('titled', 'nothing', { title: 'Aeroelastic models' }),
        recordWithText('bare', ''),
      ),
    )
    await write(upsert({ ...recordWithText('empty', ''), text: null }))
    expect(await found('aeroelastic')).toEqual(['titled'])
    expect(await write({ op: 'deleteRecord', ...key, id: 'empty' })).toEqual({ ok: true })
  })

  lexicalTest('applies filter and visibility before the limit', async ({ write }) => {
    const records = Array.from({ length: 30 }, (_, n) =>
      recordWithText(`r${n}`, `apple ${'filler '.repeat(n)}`, {
        payload: { n, visible_to: [n >= 20 ? 'alice' : 'bob'] },
      }),
    )
    await write(upsert(...records))
    const late = { kind: 'range', key: 'n', operator: '>=', bound: 27 } as const
    expect(await found('apple', { filter: late }, 2)).toEqual(['r27', 'r28'])
    expect(await found('apple', { filter: { kind: 'in', key: 'n', values: [] } })).toEqual([])
  })

  lexicalTest(
    'scores do not depend on hidden rows, or the search is rejected',
    async ({ write, content }) => {
      const seen = (n: number) =>
        recordWithText(`r${n}`, `apple wing${n}`, { payload: { visible_to: ['alice'] } })
      const hidden = Array.from({ length: 30 }, (_, n) =>
        recordWithText(`h${n}`, 'apple', { payload: { visible_to: ['bob'] } }),
      )
      const visible = { ...key, name: 'visible rows only' }
      await write(
        { ...createCollection(), ...visible } as ContentWrite,
        { ...upsert(seen(1), seen(2)), ...visible } as ContentWrite,
      )
      await write(upsert(...hidden, seen(1), seen(2)))
      const query = {
        text: 'apple wing1',
        limit: 9,
        statistics: 'visible' as const,
        visibility: only('alice'),
      }
      const ranked = await content.lexical!.search(key, query).catch((error: unknown) => {
        expect(error).toMatchObject({ code: 'hybrid_not_supported' })
      })
      if (!ranked) return
      const alone = await content.lexical!.search(visible, {
        ...query,
        statistics: 'collection',
        visibility: all,
      })
      expect(ranked.map(({ score }) => score)).toEqual(alone.map(({ score }) => expect.closeTo(score, 9)))
    },
  )

  lexicalTest('the score of a record is the sum of its scores for each word', async ({ write, content }) => {
    const seen = ['supersonic wing', 'a supersonic flow', 'wing', 'heat'].map((text, n) =>
      recordWithText(`r${n}`, text, { payload: { n, visible_to: ['alice'] } }),
    )
    const hidden = recordWithText('h', 'supersonic wing', { payload: { n: 9, visible_to: ['bob'] } })
    await write(upsert(...seen, hidden))
    const query = {
      text: 'Supersonic wing nowhere',
      statistics: 'visible' as const,
      visibility: only('alice'),
    }
    for (const filter of [undefined, { kind: 'range', key: 'n', operator: '<', bound: 2 } as const]) {
      const ranked = await content.lexical!.search(key, { ...query, filter, limit: 10 })
      const among = ranked.map(({ record }) => record)
      const { records, words } = await content.lexical!.explain(key, { ...query, filter, among })
      expect(records).toBe(filter ? 2 : 4)
      expect(words.map(({ word, records: containing }) => [word, containing])).toEqual([
        ['supersonic', 2],
        ['wing', filter ? 1 : 2],
        ['nowhere', 0],
      ])
      for (const { record, score } of ranked) {
        const scores = words.flatMap(word => word.scores.filter(scored => scored.record === record))
        expect(scores.reduce((sum, scored) => sum + scored.score, 0)).toBeCloseTo(score, 9)
      }
    }
  })

  const occurrences = async (words: string[], among: string[] = [], visibility = all) => {
    const { content } = context()
    const everyRecord = await content.nearest(key, {
      vector: Float32Array.of(1, 0),
      limit: 1_000,
      visibility: all,
    })
    const ids = await idsOf(content, everyRecord)
    const numbers = new Map(everyRecord.map(({ record }, at) => [ids[at]!, record]))
    const query = { words, among: among.map(id => numbers.get(id)!), visibility }
    const counted = await content.lexical!.countOccurrences(key, query)
    const idOf = new Map([...numbers].map(([id, record]) => [record, id]))
    const held = counted.words.map(({ word, records, among }) => [
      word,
      records,
      among.map(n => idOf.get(n)).sort(),
    ])
    return { records: counted.records, words: held }
  }

  lexicalTest('counts words in text and title, in any form, without deleted records', async ({ write }) => {
    await write(
      upsert(
        recordWithText('a', 'Apple apple apple', { documentId: 'd' }),
        recordWithText('b', 'pear', { title: 'APPLE' }),
        recordWithText('c', 'apple'),
        recordWithText('other', 'plum'),
      ),
    )
    expect(await occurrences(['apple', 'pear', 'fig'], ['a', 'b', 'other'])).toEqual({
      records: 4,
      words: [
        ['apple', 3, ['a', 'b']],
        ['pear', 1, ['b']],
        ['fig', 0, []],
      ],
    })
    await write({ op: 'deleteDocument', ...key, documentId: 'd' }, upsert(recordWithText('c', 'plum')))
    expect(await occurrences(['apple'], ['b', 'c'])).toEqual({ records: 3, words: [['apple', 1, ['b']]] })
    expect(await occurrences([], ['b'])).toEqual({ records: 3, words: [] })
  })

  lexicalTest('counts words in the rows that a caller can see', async ({ write }) => {
    await write(
      upsert(
        recordWithText('mine', 'apple', { payload: { visible_to: ['alice'] } }),
        recordWithText('yours', 'apple pear', { payload: { visible_to: ['bob'] } }),
        recordWithText('ours', 'pear', { payload: { visible_to: ['*'] } }),
      ),
    )
    expect(await occurrences(['apple', 'pear'], ['mine', 'yours', 'ours'], only('alice'))).toEqual({
      records: 2,
      words: [
        ['apple', 1, ['mine']],
        ['pear', 1, ['ours']],
      ],
    })
  })

  lexicalTest('orders equal scores by record', async ({ write }) => {
    await write(
      upsert(recordWithText('b', 'apple'), recordWithText('a', 'apple'), recordWithText('c', 'apple')),
    )
    expect(await found('apple')).toEqual(['b', 'a', 'c'])
  })

  lexicalTest('does not interpret text as query syntax', async ({ write }) => {
    await write(upsert(recordWithText('a', 'apple NEAR or title pear')))
    const texts = [
      '"',
      '""',
      'apple"',
      "apple' OR 1=1 --",
      'title:apple',
      'NEAR(apple pear)',
      'apple*',
      '^apple',
      '{',
      '(',
    ]
    for (const text of [
      ...texts,
      'a\0b',
      '\ud800',
      '   ',
      '*',
      '-apple',
      'apple AND NOT pear',
      'x'.repeat(8_192),
    ])
      await expect(search(text), JSON.stringify(text)).resolves.toBeInstanceOf(Array)
    expect(await found("apple' OR 1=1 --")).toEqual(['a'])
    const long = Array.from({ length: 2_000 }, (_, n) => `w${n}`).join(' ')
    expect(await found(`apple ${long}`)).toEqual(['a'])
  })

  lexicalTest('finds words with other scripts, accents and marks', async ({ write }) => {
    await write(
      upsert(
        recordWithText('greek', 'Η θερμότητα'),
        recordWithText('cafe', 'Café'),
        recordWithText('hindi', 'नमस्ते दुनिया'),
      ),
    )
    expect(await found('θερμότητα')).toEqual(['greek'])
    expect(await found('café')).toEqual(['cafe'])
    expect(await found('नमस्ते')).toEqual(['hindi'])
  })

  lexicalTest('rejects a collection without an index', async ({ write, content }) => {
    await write(
      { op: 'dropCollection', ...key },
      createCollection({ lexical: false }),
      upsert(recordWithText('a', 'apple')),
    )
    const query = { text: 'apple', limit: 1, statistics: 'collection' as const, visibility: all }
    const refusal = await content.lexical!.search(key, query).catch((error: unknown) => error)
    expect(refusal).toBeInstanceOf(WbError)
    expect(refusal).toMatchObject({ code: 'hybrid_not_supported' })
  })
}

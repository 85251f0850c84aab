import { expect, test } from 'vitest'
import { WbError } from '../../src/contract/errors.ts'
import type { ContentStore, ContentWrite, SearchConstraints } from '../../src/storage/content.ts'
import type { WriteOutcome } from '../../src/storage/rows.ts'
import { all, created, idsOf, key, only, upserted, worded } from './passages.ts'

export interface Context {
  readonly content: ContentStore
  write(...changes: ContentWrite[]): Promise<WriteOutcome>
}

/** What lexical search does, whatever its formula; a store without it passes. */
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

  lexicalTest('words find the records that hold them, in any case; scores fall', async ({ write }) => {
    await write(
      upserted(
        worded('both', 'Supersonic flow past a slender wing'),
        worded('one', 'a wing and nothing else of interest here'),
        worded('none', 'heat transfer'),
      ),
    )
    const ranked = await search('SUPERSONIC wing')
    expect(await idsOf(context().content, ranked)).toEqual(['both', 'one'])
    expect(ranked[0]!.score).toBeGreaterThan(ranked[1]!.score)
    expect(await found('nowhere')).toEqual([])
  })

  lexicalTest('what was replaced or deleted is no longer found', async ({ write }) => {
    await write(upserted(worded('a', 'apple', { documentId: 'd' }), worded('b', 'apple')))
    await write(upserted(worded('a', 'pear', { documentId: 'd' })))
    expect(await found('apple')).toEqual(['b'])
    expect(await found('pear')).toEqual(['a'])
    await write({ op: 'deleteDocument', ...key, documentId: 'd' }, { op: 'deleteRecord', ...key, id: 'b' })
    expect(await found('pear apple')).toEqual([])
  })

  lexicalTest(
    'a title is searched too; a record without words is not found and can go',
    async ({ write }) => {
      await write(upserted(worded('titled', 'nothing', { title: 'Aeroelastic models' }), worded('bare', '')))
      await write(upserted({ ...worded('empty', ''), text: null }))
      expect(await found('aeroelastic')).toEqual(['titled'])
      expect(await write({ op: 'deleteRecord', ...key, id: 'empty' })).toEqual({ ok: true })
    },
  )

  lexicalTest('filter and visibility hold before the cut', async ({ write }) => {
    const records = Array.from({ length: 30 }, (_, n) =>
      worded(`r${n}`, `apple ${'filler '.repeat(n)}`, {
        payload: { n, visible_to: [n >= 20 ? 'alice' : 'bob'] },
      }),
    )
    await write(upserted(...records))
    const late = { kind: 'range', key: 'n', order: '>=', bound: 27 } as const
    expect(await found('apple', { filter: late }, 2)).toEqual(['r27', 'r28'])
    expect(await found('apple', { filter: { kind: 'in', key: 'n', values: [] } })).toEqual([])
  })

  lexicalTest(
    'scores tell nothing of hidden rows: counted over the visible ones, or refused',
    async ({ write, content }) => {
      const seen = (n: number) => worded(`r${n}`, `apple wing${n}`, { payload: { visible_to: ['alice'] } })
      const hidden = Array.from({ length: 30 }, (_, n) =>
        worded(`h${n}`, 'apple', { payload: { visible_to: ['bob'] } }),
      )
      const visible = { ...key, name: 'visible rows only' }
      await write(
        { ...created(), ...visible } as ContentWrite,
        { ...upserted(seen(1), seen(2)), ...visible } as ContentWrite,
      )
      await write(upserted(...hidden, seen(1), seen(2)))
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
    const counted = await content.lexical!.occurrences(key, query)
    const idOf = new Map([...numbers].map(([id, record]) => [record, id]))
    const held = counted.words.map(({ word, records, among }) => [
      word,
      records,
      among.map(n => idOf.get(n)).sort(),
    ])
    return { records: counted.records, words: held }
  }

  lexicalTest(
    'words are counted in text and title, in any form, and not in what is gone',
    async ({ write }) => {
      await write(
        upserted(
          worded('a', 'Apple apple apple', { documentId: 'd' }),
          worded('b', 'pear', { title: 'APPLE' }),
          worded('c', 'apple'),
          worded('other', 'plum'),
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
      await write({ op: 'deleteDocument', ...key, documentId: 'd' }, upserted(worded('c', 'plum')))
      expect(await occurrences(['apple'], ['b', 'c'])).toEqual({ records: 3, words: [['apple', 1, ['b']]] })
      expect(await occurrences([], ['b'])).toEqual({ records: 3, words: [] })
    },
  )

  lexicalTest('words are counted over the rows that a caller may see', async ({ write }) => {
    await write(
      upserted(
        worded('mine', 'apple', { payload: { visible_to: ['alice'] } }),
        worded('yours', 'apple pear', { payload: { visible_to: ['bob'] } }),
        worded('ours', 'pear', { payload: { visible_to: ['*'] } }),
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

  lexicalTest('equal scores are ordered by record', async ({ write }) => {
    await write(upserted(worded('b', 'apple'), worded('a', 'apple'), worded('c', 'apple')))
    expect(await found('apple')).toEqual(['b', 'a', 'c'])
  })

  lexicalTest('no text is an expression of the engine', async ({ write }) => {
    await write(upserted(worded('a', 'apple NEAR or title pear')))
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

  lexicalTest('words of other scripts, accents and marks are found', async ({ write }) => {
    await write(
      upserted(worded('greek', 'Η θερμότητα'), worded('cafe', 'Café'), worded('hindi', 'नमस्ते दुनिया')),
    )
    expect(await found('θερμότητα')).toEqual(['greek'])
    expect(await found('café')).toEqual(['cafe'])
    expect(await found('नमस्ते')).toEqual(['hindi'])
  })

  lexicalTest('a collection without an index says so', async ({ write, content }) => {
    await write({ op: 'dropCollection', ...key }, created({ lexical: false }), upserted(worded('a', 'apple')))
    const query = { text: 'apple', limit: 1, statistics: 'collection' as const, visibility: all }
    const refusal = await content.lexical!.search(key, query).catch((error: unknown) => error)
    expect(refusal).toBeInstanceOf(WbError)
    expect(refusal).toMatchObject({ code: 'hybrid_not_supported' })
  })
}

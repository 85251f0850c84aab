import fc from 'fast-check'
import { expect, test } from 'vitest'
import { findPostingFaults } from '../../../src/storage/sqlite/postings/check-postings.ts'
import { PostingReader } from '../../../src/storage/sqlite/postings/posting-reader.ts'
import type { VisibleRecords } from '../../../src/storage/sqlite/postings/record-masks.ts'
import { ReferenceIndex } from './reference.ts'
import { allRecords, expectBest, recordOf, stageForTest, wordsOf } from './stage.ts'
import { index, type Stage } from './stage-connection.ts'

const { collection } = index

function found({ reader }: Stage, text: string): number[] {
  const words = wordsOf(...text.split(' '))
  return reader.search(collection, { words, limit: 100, visible: allRecords }).map(({ record }) => record)
}

const words = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { minLength: 1, maxLength: 8 })
const documents = fc.array(fc.record({ text: words, title: words, isHidden: fc.boolean() }), {
  minLength: 1,
  maxLength: 40,
  size: 'max',
})

test('scores are bit for bit those of a store without the hidden records', () => {
  fc.assert(
    fc.property(documents, words, (all, query) => {
      const records = all.map(({ text, title }, at) => recordOf(at + 1, text.join(' '), title.join(' ')))
      const remaining = records.filter((_, at) => !all[at]!.isHidden)
      const visible = { key: 'f', read: () => remaining.map(({ record }) => record) }
      const asked = { words: wordsOf(...query), limit: 10 }
      const [mixed, alone] = [stageForTest(), stageForTest()]
      mixed.write(() => mixed.writer.add(index, records))
      alone.write(() => alone.writer.add(index, remaining))
      const results = mixed.reader.search(collection, { ...asked, visible })
      expect(results).toEqual(alone.reader.search(collection, { ...asked, visible: allRecords }))
      const prefix = { prefix: '', limit: 10 }
      expect(mixed.reader.expandPrefix(collection, { ...prefix, visible })).toEqual(
        alone.reader.expandPrefix(collection, { ...prefix, visible: allRecords }),
      )
      for (const stage of [mixed, alone]) stage.connection.close()
    }),
    { numRuns: 100 },
  )
})

test('ranks like the full-text index of SQLite where their formulas agree', () => {
  const stage = stageForTest()
  // Each word is in less than half of the documents, where the two forms of the inverse document frequency agree in order.
  const texts = Array.from({ length: 400 }, (_, n) =>
    Array.from(
      { length: 5 + (n % 9) },
      (_, at) => `w${Math.floor(((n * 7919 + at * 104_729) % 997) ** 1.2 / 40)}`,
    ),
  )
  stage.connection.database.exec(`CREATE VIRTUAL TABLE fts USING fts5(title, text, tokenize='ascii')`)
  const insert = stage.connection.prepare('INSERT INTO fts (rowid, title, text) VALUES (?, ?, ?)')
  stage.write(() => {
    stage.writer.add(
      index,
      texts.map((text, at) => recordOf(at + 1, text.slice(2).join(' '), text.slice(0, 2).join(' '))),
    )
    for (const [at, text] of texts.entries())
      insert.run(at + 1, text.slice(0, 2).join(' '), text.slice(2).join(' '))
  })
  for (let n = 0; n < 40; n++) {
    const [word] = texts[n * 10]!
    const oracle = stage.connection
      .prepare<{ record: number; score: number }>(
        'SELECT rowid AS record, -bm25(fts, 3.0, 1.0) AS score FROM fts WHERE fts MATCH ? ORDER BY score DESC, record LIMIT 10',
      )
      .all(`"${word}"`)
    const ours = stage.reader.search(collection, { words: wordsOf(word!), limit: 10, visible: allRecords })
    expect(ours.map(({ record }) => record)).toEqual(oracle.map(({ record }) => record))
    // Of one term, all scores differ by the same factor.
    const ratios = ours.map(({ score }, at) => score / oracle[at]!.score)
    for (const ratio of ratios) expect(ratio / ratios[0]!).toBeCloseTo(1, 9)
  }
})

test('finds common terms over several segments, with counts above one byte', () => {
  const stage = stageForTest()
  const reference = new ReferenceIndex()
  const records = Array.from({ length: 1_500 }, (_, at) =>
    recordOf(at * 3 + 1, `${'often '.repeat(1 + (at % 300))}w${at}`, at % 5 === 0 ? 'often here' : ''),
  )
  reference.add(records)
  stage.write(() => stage.writer.add(index, records))
  const asked = [...wordsOf('often', 'here'), { terms: ['w7', 'w8'], weight: 0.3 }]
  for (let round = 0; round < 2; round++) {
    const results = stage.reader.search(collection, { words: asked, limit: 50, visible: allRecords })
    expectBest(results, reference.search(asked, allRecords), 50)
    const [best] = stage.reader.search(collection, {
      words: asked,
      limit: 9,
      visible: allRecords,
      titleWeight: 0.5,
    })
    expect(best!.score).toBeCloseTo(reference.search(asked, allRecords, 0.5)[0]!.score, 9)
    stage.merge()
  }
  expect(findPostingFaults(stage.connection)).toEqual([])
})

test('a count above the maximum is stored as the maximum', () => {
  const stage = stageForTest()
  const text = new Map([['apple', 70_000]])
  stage.write(() => stage.writer.add(index, [{ record: 1, title: new Map(), text }]))
  expect(found(stage, 'apple')).toEqual([1])
  expect(findPostingFaults(stage.connection)).toEqual([])
})

test('terms of more than 200 bytes are found by the whole term only', () => {
  const stage = stageForTest()
  const beginning = '中'.repeat(70)
  stage.write(() =>
    stage.writer.add(index, [
      recordOf(1, `${beginning}a`),
      recordOf(2, `${beginning}b`),
      recordOf(3, beginning),
    ]),
  )
  expect(found(stage, `${beginning}a`)).toEqual([1])
  expect(found(stage, `${beginning}b`)).toEqual([2])
  expect(found(stage, beginning)).toEqual([3])
  const [expanded] = stage.reader.expandPrefix(collection, { prefix: '中中', limit: 3, visible: allRecords })
  expect(Buffer.byteLength(expanded!.term)).toBeLessThanOrEqual(200)
  expect(found(stage, expanded!.term)).toHaveLength(1)
})

test('a prefix expands to the terms in most visible records', () => {
  const stage = stageForTest()
  const texts = ['wing', 'wings wing', 'winglet wing', 'wings', 'win', 'Wing', 'wi', '中文 中', '中国']
  stage.write(() =>
    stage.writer.add(
      index,
      texts.map((text, at) => recordOf(at + 1, text)),
    ),
  )
  const expand = (prefix: string, limit: number, visible?: VisibleRecords) =>
    stage.reader
      .expandPrefix(collection, { prefix, limit, visible })
      .map(({ term, records }) => `${term} ${records}`)
  expect(expand('wing', 9)).toEqual(['wing 3', 'wings 2', 'winglet 1'])
  expect(expand('wing', 2)).toEqual(['wing 3', 'wings 2'])
  expect(expand('wing', 1, { key: 'first', read: () => [1] })).toEqual(['wing 1'])
  expect(expand('中', 9)).toEqual(['中 1', '中国 1', '中文 1'])
  expect(expand('x', 9)).toEqual([])
  stage.write(() => stage.writer.remove(index, [3]))
  expect(expand('winglet', 9)).toEqual([])
})

test('a prefix expands over more terms than one block holds', () => {
  const stage = stageForTest()
  const terms = Array.from({ length: 3_000 }, (_, n) => `p${String(n).padStart(4, '0')}`)
  stage.write(() =>
    stage.writer.add(index, [recordOf(1, `a ${terms.join(' ')} q`), recordOf(2, 'p2222 p1111')]),
  )
  const expand = (prefix: string) =>
    stage.reader.expandPrefix(collection, { prefix, limit: 5_000, visible: allRecords })
  expect(expand('p')).toHaveLength(3_000)
  expect(
    expand('p')
      .slice(0, 3)
      .map(({ term }) => term),
  ).toEqual(['p1111', 'p2222', 'p0000'])
  expect(expand('p12').map(({ term }) => term)).toEqual(terms.filter(term => term.startsWith('p12')))
  for (const term of ['p0000', 'p1498', 'p2999', 'q']) expect(found(stage, term)).toEqual([1])
})

test('a small cache of postings gives the same results', () => {
  const stage = stageForTest()
  const cacheBytesMax = 5_000
  const reader = new PostingReader(stage.connection, { cacheBytesMax })
  const records = Array.from({ length: 600 }, (_, at) =>
    recordOf(at + 1, `a${at % 2} b${at % 3} c${at % 50}`),
  )
  stage.write(() => stage.writer.add(index, records))
  const reference = new ReferenceIndex()
  reference.add(records)
  for (let n = 0; n < 60; n++) {
    const words = wordsOf(`a${n % 2}`, `b${n % 3}`, `c${n % 50}`, 'absent')
    const results = reader.search(collection, { words, limit: 7, visible: allRecords })
    expectBest(results, reference.search(words, allRecords), 7)
    expect(reader.cachedBytes).toBeLessThanOrEqual(cacheBytesMax)
  }
  expect(reader.cachedBytes).toBeGreaterThan(0)
})

test('rejects records that do not ascend, and invalid weights', () => {
  const stage = stageForTest()
  const add = (...records: number[]) =>
    stage.write(() =>
      stage.writer.add(
        index,
        records.map(record => recordOf(record, 'apple')),
      ),
    )
  add(5)
  expect(() => add(5)).toThrow('record 5 does not follow record 5')
  expect(() => add(7, 6)).toThrow('record 6 does not follow record 7')
  stage.write(() => stage.writer.remove(index, [5]))
  expect(() => add(5)).toThrow(RangeError)
  expect(() => stage.write(() => stage.writer.add({ ...index, generation: 9 }, [recordOf(9, 'a')]))).toThrow(
    'collection 1 has no posting index 9',
  )
  for (const weight of [0, -1, Number.NaN, Number.POSITIVE_INFINITY])
    expect(() =>
      stage.reader.search(collection, { words: [{ terms: ['a'], weight }], limit: 1, visible: allRecords }),
    ).toThrow(RangeError)
})

test('damaged rows are reported as a damaged store', () => {
  const damages = [
    `UPDATE posting_block SET data = substr(data, 1, length(data) - 2)`,
    `UPDATE posting_block SET data = zeroblob(length(data))`,
    `UPDATE posting_slots SET lengths = x'00'`,
    `DELETE FROM posting_slots`,
    `UPDATE posting_deletions SET bits = x''`,
  ]
  for (const damage of damages) {
    const stage = stageForTest()
    stage.write(() => {
      stage.writer.add(index, [recordOf(1, 'apple pear'), recordOf(2, 'apple plum'), recordOf(3, 'apple')])
      stage.writer.remove(index, [1])
    })
    stage.connection.prepare(damage).run()
    if (!damage.includes('zeroblob'))
      expect(() => found(stage, 'plum'), damage).toThrow('the store is damaged')
    expect(findPostingFaults(stage.connection), damage).not.toEqual([])
  }
})

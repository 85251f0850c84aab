import fc from 'fast-check'
import { beforeAll, expect, test } from 'vitest'
import { type Analyzer, openAnalyzer } from '../../../src/base/analysis/analyzer.ts'
import { similarTerms, type TermFrequency, type TermList } from '../../../src/base/analysis/similar-terms.ts'
import { compareCodePoints } from '../../../src/base/compare-code-points.ts'

/** Returns a list of terms in memory. */
function termList(terms: Iterable<TermFrequency>): TermList {
  const counts = new Map(Array.from(terms, ({ term, count }) => [term, count]))
  const sorted = [...counts.keys()].sort(compareCodePoints)
  return {
    from(first, limit) {
      let [low, high] = [0, sorted.length]
      while (low < high) {
        const middle = (low + high) >>> 1
        if (compareCodePoints(sorted[middle]!, first) < 0) low = middle + 1
        else high = middle
      }
      return sorted.slice(low, low + limit)
    },
    count: term => counts.get(term) ?? 0,
  }
}

let english: Analyzer
beforeAll(async () => {
  english = await openAnalyzer({ language: 'auto' })
})

const dictionary = (analyzer: Analyzer, text: string) =>
  termList([...analyzer.countTerms(text).counts].map(([term, count]) => ({ term, count })))

test.each([
  ['recieve', 'receive a letter', 'receiv'],
  ['libary', 'the library', 'librari'],
  ['runing', 'running', 'run'],
  ['runnign', 'running', 'run'],
  ['acommodation', 'accommodation', 'accommod'],
  ['definately', 'definitely', 'definit'],
  ['hte', 'the', undefined],
  ['xample', 'example', 'exampl'],
  ['kofee', 'coffee', undefined],
  ['e1234', 'e1235', undefined],
  ['cats', 'at nine', undefined],
  ['hand', 'salt and pepper', undefined],
])('%s in %j: %s', (word, text, expected) => {
  expect(similarTerms(english, word, dictionary(english, text))[0]?.term).toBe(expected)
})

test('ranks by distance, then by count, and leaves out terms without visible texts', () => {
  const list = termList([
    { term: 'house', count: 3 },
    { term: 'mouse', count: 9 },
    { term: 'hoise', count: 5 },
    { term: 'houze', count: 0 },
  ])
  const tokenizer = { ...english, scan: english.scan.bind(english), wordTerms: (word: string) => [word] }
  expect(similarTerms(tokenizer, 'houxe', list).map(({ term, distance }) => [term, distance])).toEqual([
    ['house', 1],
  ])
})

test('finds a word with another stem behind many other terms', () => {
  const others = Array.from({ length: 200 }, (_, at) => `rb${at}`)
  const list = dictionary(english, [...others, 'running'].join(' '))
  expect(similarTerms(english, 'runing', list)[0]?.term).toBe('run')
})

test('finds Russian and German words', async () => {
  const german = await openAnalyzer({ language: 'de' })
  expect(similarTerms(german, 'rechnug', dictionary(german, 'Rechnungen'))[0]?.term).toBe('rechnung')
  expect(similarTerms(english, 'библеотека', dictionary(english, 'библиотека'))[0]?.term).toBe('библиотек')
})

test('finds what a comparison of all terms finds', () => {
  const word = fc.string({ unit: fc.constantFrom('a', 'b', 'c', 'ж'), minLength: 1, maxLength: 10 })
  const tokenizer = { scan: english.scan.bind(english), wordTerms: (one: string) => [one] }
  fc.assert(
    fc.property(word, fc.uniqueArray(word, { maxLength: 200 }), (query, terms) => {
      const list = termList(terms.map(term => ({ term, count: 1 })))
      const found = similarTerms(tokenizer, query, list, 1000)
      for (const { term, distance } of found) expect(swapDistance(query, term)).toBe(distance)
      const max = query.length >= 8 ? 2 : 1
      if (query.length < 4) expect(found).toEqual([])
      const all = terms.filter(
        term => query.length >= 4 && term[0] === query[0] && swapDistance(query, term) <= max,
      )
      expect(found.map(({ term }) => term)).toEqual(expect.arrayContaining(all))
    }),
  )
})

test('reads a bounded part of a large list', () => {
  const letters = 'abcdefghijklmnopqrstuvwxyz'
  const terms = Array.from({ length: 200_000 }, (_, at) => ({
    term: Array.from({ length: 9 }, (_, place) => letters[(at * (place + 7) * 2_654_435_761) % 26]).join(''),
    count: 1,
  }))
  const list = termList(terms)
  let pages = 0
  similarTerms(english, 'abcdefghij', {
    from(first, limit) {
      pages++
      return list.from(first, limit)
    },
    count: term => list.count(term),
  })
  expect(pages).toBeLessThanOrEqual(1_000 + 400)
})

/** Optimal string alignment over the whole table. */
function swapDistance(from: string, to: string): number {
  const rows = Array.from({ length: from.length + 1 }, (_, i) =>
    Array.from({ length: to.length + 1 }, (_, j) => i || j),
  )
  for (let i = 0; i <= from.length; i++) rows[i]![0] = i
  for (let j = 0; j <= to.length; j++) rows[0]![j] = j
  for (let i = 1; i <= from.length; i++)
    for (let j = 1; j <= to.length; j++) {
      const replaced = rows[i - 1]![j - 1]! + (from[i - 1] === to[j - 1] ? 0 : 1)
      rows[i]![j] = Math.min(replaced, rows[i - 1]![j]! + 1, rows[i]![j - 1]! + 1)
      if (i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1])
        rows[i]![j] = Math.min(rows[i]![j]!, rows[i - 2]![j - 2]! + 1)
    }
  return rows[from.length]![to.length]!
}

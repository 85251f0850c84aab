import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Analyzer, openAnalyzer } from '../../../src/base/analysis/analyzer.ts'
import { stemmedLanguages } from '../../../src/base/analysis/languages.ts'

const piece = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.string({ unit: 'grapheme', maxLength: 20 }),
  fc.constantFrom(
    ' ',
    '"',
    '“',
    '”',
    '-',
    '_',
    '.',
    '/',
    '::',
    '++',
    '\u0301',
    '\u00ad',
    'İ',
    'ß',
    'ﷺ',
    'ﬃ',
    '½',
    'fooBar',
    'HTTPServer2',
    'v1.2.3',
    'C#',
    '東京都',
    'サーバー',
    'ｶﾞ',
    'ฉันรักแมว',
    '학교',
    'Müller',
    'книги',
    'ё',
    '\ud800',
    '𠮷野家',
  ),
)
const text = fc.array(piece, { maxLength: 30 }).map(pieces => pieces.join(''))
const languages = ['auto', ...stemmedLanguages, 'pl', 'ja', 'th', 'he']
const terms = (analyzer: Analyzer, of: string) => [...analyzer.countTerms(of).counts.keys()]

describe.each(languages)('any text in %s', language => {
  test('contains the terms and phrases of a query with the same words', async () => {
    const analyzer = await openAnalyzer({ language })
    fc.assert(
      fc.property(text, of => {
        const { counts } = analyzer.countTerms(of)
        const { terms, phrases } = analyzer.parseQuery(of)
        for (const { term } of terms) expect(counts.has(term)).toBe(true)
        for (const phrase of phrases) {
          expect(phrase.matches(of)).toBe(true)
          for (const among of phrase.required) expect(among.some(term => counts.has(term))).toBe(true)
        }
        analyzer.parseQuery(of, { isTyping: true })
      }),
      { numRuns: 25 },
    )
  })

  test('has bounded terms without separators, and the same ones on each call', async () => {
    const analyzer = await openAnalyzer({ language })
    const other = await openAnalyzer({ language })
    fc.assert(
      fc.property(text, of => {
        const found = terms(analyzer, of)
        expect(terms(other, of)).toEqual(found)
        expect(terms(analyzer, of)).toEqual(found)
        for (const term of found) {
          expect(term).not.toBe('')
          expect(term).not.toMatch(/\s/u)
          expect(Buffer.byteLength(term)).toBeLessThanOrEqual(200)
        }
      }),
      { numRuns: 25 },
    )
  })
})

test('each word of a text finds it', async () => {
  const analyzer = await openAnalyzer({ language: 'auto' })
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: fc.constantFrom(...'abcÉßжBéя09'), minLength: 1, maxLength: 12 })),
      words => {
        const { counts } = analyzer.countTerms(words.join(' '))
        for (const word of words)
          for (const { term } of analyzer.parseQuery(word).terms) expect(counts.has(term)).toBe(true)
      },
    ),
  )
})

test('does not depend on case or on the form of Unicode', async () => {
  const analyzer = await openAnalyzer({ language: 'fr' })
  const word = fc.string({ unit: fc.constantFrom(...'abcéèçœï'), minLength: 1, maxLength: 12 })
  fc.assert(
    fc.property(word, one => {
      const found = terms(analyzer, one)
      expect(terms(analyzer, one.toUpperCase())).toEqual(found)
      expect(terms(analyzer, one.normalize('NFD'))).toEqual(found)
    }),
  )
})

test('counts words, and repeated terms', async () => {
  const analyzer = await openAnalyzer({ language: 'auto' })
  const { counts, words } = analyzer.countTerms('Runs and running, run-time')
  expect(words).toBe(5)
  expect(counts.get('run')).toBe(3)
})

test('uses the start of a long word, and all words of a long compound', async () => {
  const analyzer = await openAnalyzer({ language: 'auto' })
  expect(terms(analyzer, 'x'.repeat(1000))).toEqual(['x'.repeat(64)])
  const parts = Array.from({ length: 100 }, (_, at) => `part${at}x`)
  expect(terms(analyzer, parts.join('.'))).toEqual(expect.arrayContaining(parts))
})

test('finds pairs of characters where a long run is cut', async () => {
  const analyzer = await openAnalyzer({ language: 'auto' })
  const run = Array.from({ length: 3000 }, (_, at) => String.fromCodePoint(0x4e00 + at)).join('')
  const found = new Set(terms(analyzer, run))
  for (let at = 0; at + 1 < run.length; at++) expect(found.has(`~${run.slice(at, at + 2)}`)).toBe(true)
})

test.each([
  ['one word', 'x'],
  ['marks', '\u0301\u0323'],
  ['points', 'a.'],
  ['changes of case', 'aB'],
  ['scripts', 'aя漢ก한'],
  ['Chinese', '漢字'],
  ['Thai marks', '\u0e01\u0e48\u0e38'],
  ['quotation marks', '«'],
])('takes linear time for a text of %s', async (_, unit) => {
  const analyzer = await openAnalyzer({ language: 'auto' })
  const time = (size: number) => {
    const long = unit.repeat(size / unit.length)
    const started = performance.now()
    analyzer.countTerms(long)
    analyzer.parseQuery(long)
    return performance.now() - started
  }
  time(20_000)
  // 8 times the text: a quadratic step would take 64 times as long.
  const isLinear = () => time(160_000) < 40 * time(20_000) + 100
  expect(isLinear() || isLinear() || isLinear()).toBe(true)
})

import { beforeAll, describe, expect, test } from 'vitest'
import { type Analyzer, openAnalyzer } from '../../../src/base/analysis/analyzer.ts'

let analyzer: Analyzer
beforeAll(async () => {
  analyzer = await openAnalyzer({ language: 'auto' })
})

const termsOf = (text: string) => analyzer.parseQuery(text).terms.map(({ term }) => term)

test('drops stop words of a query unless it has no others', () => {
  expect(termsOf('where is the library')).toEqual(['librari'])
  expect(termsOf('to be')).toEqual(['to', 'be'])
  expect(termsOf('北京的')).not.toContain('~的')
  expect(termsOf('  ')).toEqual([])
})

test('keeps at most 256 terms', () => {
  const words = Array.from({ length: 1000 }, (_, at) => `x${at.toString(36)}y`)
  expect(termsOf(words.join(' '))).toHaveLength(256)
})

describe('phrases', () => {
  test.each([
    ['"climate change"', 'on Climate Changes today', true],
    ['"climate change"', 'change of climate', false],
    ['"climate change"', 'climate and change', false],
    ['“to be or not to be”', 'he said: to be, or not to be', true],
    ['"foobar baz"', 'a fooBar baz', true],
    ['"fooBar baz"', 'a foobar baz', true],
    ['"bar baz"', 'foo-bar-baz', true],
    ['"naive idea"', 'a naïve idea', true],
    ['"naïve idea"', 'a naive idea', true],
    ['"東京都"', '私は東京都に住む', true],
    ['"京都に"', '私は東京都に住む', true],
    ['"都京"', '私は東京都に住む', false],
    ['"猫"', '白猫です', true],
    ['«Node.jsを使う»', 'Node.jsを使う方法', true],
    ['"รักแมว"', 'ฉันรักแมวที่บ้าน', true],
    ['"a a b"', 'a a a b', true],
  ])('%s in %s: %s', (query, text, expected) => {
    const { phrases } = analyzer.parseQuery(query)
    expect(phrases).toHaveLength(1)
    expect(phrases[0]!.matches(text)).toBe(expected)
    const { counts } = analyzer.countTerms(text)
    const hasRequired = phrases[0]!.required.every(among => among.some(term => counts.has(term)))
    if (expected) expect(hasRequired).toBe(true)
  })

  test('requires terms that narrow the candidates', () => {
    const [phrase] = analyzer.parseQuery('"climate change"').phrases
    expect(phrase!.required).toEqual([['climat'], ['chang']])
  })

  test('ignores a quotation mark without its counterpart', () => {
    expect(analyzer.parseQuery('5" pipe').phrases).toEqual([])
  })
})

describe('a word that is being typed', () => {
  test('is not a term, and matches by its start', () => {
    const { terms, typedWord } = analyzer.parseQuery('fast runni', { isTyping: true })
    expect(terms.map(({ term }) => term)).toEqual(['fast'])
    expect(typedWord!.prefixes).toEqual(['runni'])
    expect(typedWord!.shorterTerms).toEqual(expect.arrayContaining(['runni', 'runn', 'run']))
    expect(typedWord!.matches('she was running')).toBe(true)
    expect(typedWord!.matches('she runs')).toBe(false)
  })

  test.each([
    ['organiza', 'organizations'],
    ['user_na', 'user_name'],
    ['libraries', 'libraries'],
    ['mül', 'Müller'],
    ['mul', 'Müller'],
  ])('%s leads from the terms of %s to a match', (query, text) => {
    const { typedWord } = analyzer.parseQuery(query, { isTyping: true })
    const { counts } = analyzer.countTerms(text)
    const isCandidate = [...counts.keys()].some(
      term =>
        typedWord!.prefixes.some(prefix => term.startsWith(prefix)) || typedWord!.shorterTerms.includes(term),
    )
    expect(isCandidate).toBe(true)
    expect(typedWord!.matches(text)).toBe(true)
  })

  test.each(['runni ', 'runni, ', '', '東京'])('%j has none', query => {
    expect(analyzer.parseQuery(query, { isTyping: true }).typedWord).toBeUndefined()
  })

  test('is complete unless the caller asks', () => {
    expect(analyzer.parseQuery('fast runni').typedWord).toBeUndefined()
    expect(termsOf('fast runni')).toEqual(['fast', 'runni'])
  })
})

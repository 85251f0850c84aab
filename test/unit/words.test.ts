import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { stem, stopwords, termLengthMax, terms, wordSpans, words } from '../../src/base/words.ts'

const ascii = fc.string({ unit: 'binary-ascii' })
const anyText = fc.oneof(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'binary' }))
const brokenText = fc.array(fc.integer({ min: 0, max: 0xffff })).map(units => String.fromCharCode(...units))

describe('words', () => {
  test.each([
    ['Wings, in a SLIPSTREAM.', ['wings', 'in', 'a', 'slipstream']],
    ['mach 2.5 x15', ['mach', '2', '5', 'x15']],
    ['Élan vital', ['elan', 'vital']],
    ['e\u0301lan nai\u0308ve', ['elan', 'naive']],
    ['İstanbul ŒUVRE Straße', ['istanbul', 'œuvre', 'straße']],
    ['ΟΔΟΣ οδος', ['οδοσ', 'οδοσ']],
    ['ﬁne ㏂ ½ Ａ１', ['fine', 'am', '12', 'a1']],
    ['Привет, мир', ['привет', 'мир']],
    ['𝐀b 😀c', ['ab', 'c']],
    ['a—b–c…d', ['a', 'b', 'c', 'd']],
    ['\u0301 \u0301', []],
    ['', []],
  ])('of %j', (text, expected) => {
    expect(words(text)).toEqual(expected)
  })

  test('of ASCII text are its lower-case runs of letters and digits', () => {
    fc.assert(
      fc.property(ascii, text => {
        expect(words(text)).toEqual(text.toLowerCase().match(/[a-z0-9]+/g) ?? [])
      }),
    )
  })

  test('contain letters and digits only, and each is its own only word', () => {
    fc.assert(
      fc.property(anyText, text => {
        for (const word of words(text)) {
          expect(word).toMatch(/^[\p{L}\p{N}]+$/u)
          expect(words(word)).toEqual([word])
        }
      }),
    )
  })

  test('do not depend on case, composition or compatibility form', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'aZé Ññ-Öß가Дй日１Σ') }), text => {
        expect(words(text.normalize('NFD'))).toEqual(words(text))
        expect(words(text.normalize('NFKC'))).toEqual(words(text))
        expect(words(text.toLowerCase())).toEqual(words(text))
      }),
    )
  })
})

describe('wordSpans', () => {
  test('returns the position of a word in the original text', () => {
    const text = 'The naïve e\u0301tude, 😀 twice'
    expect(Array.from(wordSpans(text), ({ start, end }) => text.slice(start, end))).toEqual([
      'The',
      'naïve',
      'e\u0301tude',
      'twice',
    ])
  })

  test('is consistent with words: in order, without overlap, and each span contains its word', () => {
    fc.assert(
      fc.property(fc.oneof(ascii, anyText, brokenText), text => {
        const spans = [...wordSpans(text)]
        expect(spans.map(({ word }) => word)).toEqual(words(text))
        let before = 0
        for (const { word, start, end } of spans) {
          expect(start).toBeGreaterThanOrEqual(before)
          expect(end).toBeGreaterThan(start)
          expect(words(text.slice(start, end))).toEqual([word])
          before = end
        }
        expect(before).toBeLessThanOrEqual(text.length)
      }),
    )
  })
})

describe('stem', () => {
  test.each([
    ['wings', 'wing'],
    ['relational', 'relat'],
    ['flying', 'fly'],
    ['x15', 'x15'],
    ['élan', 'élan'],
    ['', ''],
  ])('of %s is %s', (word, expected) => {
    expect(stem(word)).toBe(expected)
    expect(stem(word)).toBe(expected)
  })

  test('is correct if more words are processed than the cache can hold', () => {
    for (let n = 0; n < 70_000; n++)
      stem(`w${n.toString(36).replace(/\d/g, digit => 'ghijklmnop'[Number(digit)]!)}s`)
    expect(stem('wings')).toBe('wing')
  })
})

describe('terms', () => {
  test('are stems without stopwords, including repetitions', () => {
    expect(terms('The wing of the wings')).toEqual(['wing', 'wing'])
    expect(terms('to be or not to be')).toEqual([])
  })

  test('are truncated, never inside a surrogate pair', () => {
    expect(terms('q'.repeat(1000))).toEqual(['q'.repeat(termLengthMax)])
    expect(terms(`q${'𐐷'.repeat(1000)}`)).toEqual([`q${'𐐷'.repeat(31)}`])
  })

  test('of any text are short and well formed', () => {
    fc.assert(
      fc.property(fc.oneof(anyText, brokenText), text => {
        for (const term of terms(text)) {
          expect(term.length).toBeLessThanOrEqual(termLengthMax)
          expect(term).not.toMatch(/\p{Surrogate}/u)
        }
      }),
    )
  })
})

test('stopwords are single words', () => {
  for (const word of stopwords) expect(words(word)).toEqual([word])
})

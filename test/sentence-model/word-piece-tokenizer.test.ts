import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { WordPieceTokenizer } from '../../src/sentence-model/word-piece-tokenizer.ts'
import { originalVocabulary } from './reference-encoder.ts'

const vocabulary = originalVocabulary()
const tokenizer = new WordPieceTokenizer(vocabulary)
const known = new Set(vocabulary)

/** Returns the tokens of a text without those of its start and end. */
function tokensOf(text: string): string[] {
  return [...tokenizer.encode(text)].slice(1, -1).map(id => vocabulary[id]!)
}

test('returns the IDs of the published model', () => {
  expect([...tokenizer.encode('That is a happy person')]).toEqual([101, 2008, 2003, 1037, 3407, 2711, 102])
  expect([...tokenizer.encode('')]).toEqual([101, 102])
})

describe('splits', () => {
  test.each<[string, string, string]>([
    ['words into the longest parts', 'unaffable embeddings', 'una ##ffa ##ble em ##bed ##ding ##s'],
    ['at spaces of any kind', 'a\tb\nc\r\nd\u00a0e\u3000f\u2028g', 'a b c d e f g'],
    ['at punctuation', "don't stop!?", "don ' t stop ! ?"],
    ['at ASCII symbols', 'a+b=c $5 `x` ~y ^z <p>|q', 'a + b = c $ 5 ` x ` ~ y ^ z < p > | q'],
    ['at punctuation that is not ASCII', '“yes”—no…', '“ yes ” — no …'],
    ['ideographs into words', '中国 and日本', '中 国 and 日 本'],
    ['special tokens like other text', '[SEP] [CLS]', '[ sep ] [ cl ##s ]'],
  ])('%s', (_, text, tokens) => expect(tokensOf(text).join(' ')).toBe(tokens))
})

describe('reads', () => {
  test.each<[string, string, string]>([
    ['capitals as small letters', 'HELLO World', 'hello world'],
    ['letters without their accents', 'Café RÉSUMÉ naïve İstanbul', 'cafe resume naive istanbul'],
    ['composed and decomposed letters alike', 'cafe\u0301', 'cafe'],
    ['a sigma at the end of a word like any other', 'ΟΔΟΣ', 'ο ##δ ##ο ##σ'],
    ['over control characters', 'wo\u0000r\u200bd\u00ad \u0007\ufffd\ufeff', 'word'],
    ['over lone surrogates', 'wo\ud800rd', 'word'],
  ])('%s', (_, text, tokens) => expect(tokensOf(text).join(' ')).toBe(tokens))
})

test('words that the vocabulary cannot build are unknown, as are words of more than 100 characters', () => {
  expect(tokensOf('a 🦄 b')).toEqual(['a', '[UNK]', 'b'])
  expect(tokensOf(`${'a'.repeat(101)} b`)).toEqual(['[UNK]', 'b'])
  expect(tokensOf('a'.repeat(100))).not.toContain('[UNK]')
})

test('texts end after 256 tokens', () => {
  const ids = tokenizer.encode('happy '.repeat(300))
  expect(ids).toEqual(tokenizer.encode('happy '.repeat(254)))
  expect(ids).toHaveLength(256)
  expect(tokenizer.encode(' '.repeat(1_000_000))).toHaveLength(2)
  expect(tokenizer.encode(`${'happy '.repeat(253)} unaffable`).at(-1)).toBe(102)
})

test('every text has valid IDs between those of its start and its end', () => {
  const text = fc.string({ unit: 'binary', maxLength: 300 })
  fc.assert(
    fc.property(text, value => {
      const ids = [...tokenizer.encode(value)]
      expect(ids.length).toBeLessThanOrEqual(256)
      expect([ids[0], ids.at(-1)]).toEqual([101, 102])
      expect(
        ids.slice(1, -1).every(id => id >= 100 && id < vocabulary.length && id !== 101 && id !== 102),
      ).toBe(true)
    }),
  )
})

test('printable ASCII is split into the longest parts, in any case, without losing a character', () => {
  const text = fc.string({ unit: fc.constantFrom(...' ,.-_/abcdeinorstABC019'), maxLength: 120 })
  fc.assert(
    fc.property(text, value => {
      const tokens = tokensOf(value)
      expect(tokens).toEqual(tokensOf(value.toUpperCase()))
      if (tokens.includes('[UNK]')) return
      expect(tokens.map(token => token.replace(/^##/, '')).join('')).toBe(
        value.toLowerCase().replaceAll(' ', ''),
      )
      const words = tokens.join(' ').replaceAll(' ##', '|').split(' ').filter(Boolean)
      for (const word of words) {
        const parts = word.split('|')
        for (const [at, part] of parts.entries()) {
          const rest = parts.slice(at).join('')
          const prefix = at > 0 ? '##' : ''
          for (let length = part.length + 1; length <= rest.length; length++)
            expect(known.has(prefix + rest.slice(0, length))).toBe(false)
        }
      }
    }),
  )
})

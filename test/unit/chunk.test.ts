import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Ingest } from '../../src/contract/documents.ts'
import { limits } from '../../src/contract/limits.ts'
import { findBreaks } from '../../src/knowledge/chunk/breaks.ts'
import {
  type Chunker,
  type ChunkOptions,
  type ChunkSpan,
  chunksMax,
} from '../../src/knowledge/chunk/chunker.ts'
import { type ChunkOverride, chunkerInfos, createChunker } from '../../src/knowledge/chunk/index.ts'
import { lineChunker } from '../../src/knowledge/chunk/line.ts'
import { recursiveChunker } from '../../src/knowledge/chunk/recursive.ts'
import { sentenceChunker } from '../../src/knowledge/chunk/sentence.ts'
import { chunkPayload } from '../../src/knowledge/ingest/document-writes.ts'
import { createPassageOperations } from '../../src/knowledge/passage-operations.ts'
import { readTextOf } from '../../src/knowledge/reindex/read-document-text.ts'
import { chunkTexts } from '../harness/chunk-texts.ts'

const sizes = (
  maxChars: number,
  minChars = 0,
  overlapChars = 0,
  maxLines: number | null = null,
): ChunkOptions => ({
  maxChars,
  minChars,
  overlapChars,
  maxLines,
})

/** White space at which a line can break, which excludes no-break spaces. */
const blank = '[\\t-\\r \\x85\\u1680\\u2000-\\u2006\\u2008-\\u200b\\u2028\\u2029\\u205f\\u3000]'
const ink = blank.replace('[', '[^')

function pieces(chunker: Chunker, text: string, options: ChunkOptions): string[] {
  return chunker.chunk(text, options).map(({ start, end }) => text.slice(start, end))
}

const all = [recursiveChunker, lineChunker, sentenceChunker]
/** Texts with much white space, which chunkers treat specially. */
const spaces = fc.string({
  maxLength: 200,
  unit: fc.constantFrom(' ', '\n', '\r\n', '\t', 'a', '.', '\u3000'),
})

describe('recursive-char:1', () => {
  test.each<[string, string, ChunkOptions, string[]]>([
    ['fits', 'one two', sizes(7), ['one two']],
    ['after the last space', 'aaaa bbbb cccc', sizes(10), ['aaaa bbbb ', 'cccc']],
    ['newline before sentence', 'ab. cd\nef gh', sizes(10), ['ab. cd\n', 'ef gh']],
    ['blank line before newline', 'ab\n\ncd\nef gh', sizes(10), ['ab\n\n', 'cd\nef gh']],
    ['sentence before space', 'ab. cd ef gh', sizes(10), ['ab. ', 'cd ef gh']],
    ['full stop before question mark', 'a. b? c d', sizes(8), ['a. ', 'b? c d']],
    ['question mark before exclamation mark', 'a? b! c d', sizes(8), ['a? ', 'b! c d']],
    ['separator at minChars', 'ab\n\ncdefgh ij kl', sizes(10, 2), ['ab\n\n', 'cdefgh ij ', 'kl']],
    ['separator below minChars', 'ab\n\ncdefgh ij kl', sizes(10, 4), ['ab\n\ncdefgh', ' ij kl']],
    ['no separator', 'abcdefghijkl', sizes(10), ['abcdefghij', 'kl']],
    ['overlap', 'abcdefghijkl', sizes(5, 0, 2), ['abcde', 'defgh', 'ghijk', 'jkl']],
    ['a small last chunk stays', 'abcdefghijkl', sizes(10, 4), ['abcdefghij', 'kl']],
    ['cuts ascend', 'a bcdefgh', sizes(4, 0, 3), ['a ', ' bcd', 'bcde', 'cdef', 'defg', 'efgh']],
    ['blank line of CRLF', 'ab\r\n\r\ncd\r\nef gh', sizes(14), ['ab\r\n\r\n', 'cd\r\nef gh']],
    ['surrogate pairs', '😀😀😀', sizes(3), ['😀', '😀', '😀']],
    ['surrogate pairs in the overlap', '😀😀😀', sizes(4, 0, 1), ['😀😀', '😀']],
    ['one character', 'a😀b', sizes(1), ['a', '😀', 'b']],
    ['white space', '   ', sizes(2), ['  ', ' ']],
  ])('%s', (_, text, options, expected) => {
    expect(pieces(recursiveChunker, text, options)).toEqual(expected)
  })

  test('matches a direct implementation of the rule', () => {
    const text = fc.string({
      unit: fc.constantFrom('a', 'b', ' ', '\n', '. ', '? ', '! ', '\n\n', '.'),
      maxLength: 80,
    })
    fc.assert(
      fc.property(text, anySizes(2), (text, options) => {
        expect(recursiveChunker.chunk(text, options)).toEqual(recursiveAsWritten(text, options))
      }),
      { numRuns: 300 },
    )
  })
})

describe('line:1', () => {
  test.each<[string, string, ChunkOptions, string[]]>([
    ['packs', 'aa\nbb\ncc\n', sizes(6), ['aa\nbb\n', 'cc\n']],
    ['all line ends', 'a\r\nb\rc\nd', sizes(3), ['a\r\n', 'b\r', 'c\nd']],
    ['a long line', 'abcdefgh\ni', sizes(3), ['abc', 'def', 'gh\n', 'i']],
    ['rows', 'a\nb\nc\nd', sizes(1_000, 0, 0, 1), ['a\n', 'b\n', 'c\n', 'd']],
    ['two rows', 'a\nb\nc', sizes(1_000, 0, 0, 2), ['a\nb\n', 'c']],
    ['overlap by whole lines', 'aa\nbb\ncc\ndd\n', sizes(6, 0, 4), ['aa\nbb\n', 'bb\ncc\n', 'cc\ndd\n']],
    ['no line within the overlap', 'aaaa\nbbbb\n', sizes(6, 0, 4), ['aaaa\n', 'bbbb\n']],
    ['overlap gives way to a line', 'aa\nbb\ncccc\n', sizes(6, 0, 5), ['aa\nbb\n', 'cccc\n']],
    ['overlap counts as rows', 'a\nb\nc\n', sizes(100, 0, 50, 2), ['a\nb\n', 'b\nc\n']],
    ['surrogate pairs', '😀😀\n', sizes(3), ['😀', '😀\n']],
    ['one character', '😀\n', sizes(1), ['😀', '\n']],
    ['blank lines', '\n\n\n', sizes(2), ['\n\n', '\n']],
  ])('%s', (_, text, options, expected) => {
    expect(pieces(lineChunker, text, options)).toEqual(expected)
  })

  test('matches a direct implementation of the rule', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', '\n', '\r\n', '\r', 'cc'), maxLength: 60 })
    fc.assert(
      fc.property(text, anySizes(2), (text, options) => {
        expect(lineChunker.chunk(text, options)).toEqual(lineAsWritten(text, options))
      }),
      { numRuns: 300 },
    )
  })
})

describe('sentence:1', () => {
  test.each<[string, string, ChunkOptions, string[]]>([
    ['fits', 'One. Two.', sizes(9), ['One. Two.']],
    ['fits but for white space', '\n One. \n', sizes(6), [' One. ']],
    ['whole sentences', 'Aaaa bb. Cccc dd. Eeee.', sizes(18), ['Aaaa bb. Cccc dd. ', 'Eeee.']],
    [
      'a sentence of exactly maxChars',
      'Aaaa bb. Cccc dd. Eeee.',
      sizes(8),
      ['Aaaa bb.', 'Cccc dd.', 'Eeee.'],
    ],
    ['question and exclamation', 'Ahh? Beh! Cee. Dee.', sizes(10), ['Ahh? Beh! ', 'Cee. Dee.']],
    ['closing quotes', '“Ahh.” Beh cee.', sizes(10), ['“Ahh.” ', 'Beh cee.']],
    ['lower case after a quotation', '“Oh?” he said. So.', sizes(16), ['“Oh?” he said. ', 'So.']],
    [
      'abbreviations',
      'I saw Dr. Who, e.g. once. Twice.',
      sizes(26),
      ['I saw Dr. Who, e.g. once. ', 'Twice.'],
    ],
    ['initials', 'By J. R. Smith. Then so.', sizes(16), ['By J. R. Smith. ', 'Then so.']],
    [
      'an initial within a long sentence',
      'We met J. Smith there. So.',
      sizes(16),
      ['We met J. Smith ', 'there. So.'],
    ],
    ['numbers', 'Pi is 3.14 in 1. Two more.', sizes(20), ['Pi is 3.14 in 1. ', 'Two more.']],
    [
      'text without capitals',
      'first thing . second thing .',
      sizes(20),
      ['first thing . ', 'second thing .'],
    ],
    ['a long sentence by words', 'aa bb cc dd ee. Ffff.', sizes(6), ['aa bb ', 'cc dd ', 'ee. ', 'Ffff.']],
    ['a long sentence by lines', 'aa bb\ncc dd ee', sizes(9), ['aa bb\n', 'cc dd ee']],
    ['a long word', 'aaaa bbbbbbbbbb cc', sizes(6), ['aaaa ', 'bbbbbb', 'bbbb ', 'cc']],
    ['a long word at punctuation', 'a/bcd/efgh/ij', sizes(5), ['a/', 'bcd/', 'efgh/', 'ij']],
    ['the word before minChars', 'a bbbbb cc', sizes(6, 4), ['a ', 'bbbbb ', 'cc']],
    ['overlap by whole sentences', 'Aa. Bb. Cc. Dd.', sizes(8, 0, 4), ['Aa. Bb. ', 'Bb. Cc. ', 'Cc. Dd.']],
    ['no sentence within the overlap', 'Aaaaa. Bb. Cc.', sizes(7, 0, 6), ['Aaaaa. ', 'Bb. Cc.']],
    ['overlap gives way to a sentence', 'Aa. Bb. Cccccc.', sizes(8, 0, 4), ['Aa. Bb. ', 'Cccccc.']],
    ['overlap by words in a long sentence', 'aa bb cc dd ee', sizes(8, 0, 3), ['aa bb cc', 'cc dd ee']],
    ['a small last chunk takes a sentence', 'Aaa. Bbb. Ccc. Dd.', sizes(15, 6), ['Aaa. Bbb. ', 'Ccc. Dd.']],
    [
      'paragraph before sentence',
      'Aa bb. Cc.\n\nDd. Ee. Ff gg.',
      sizes(16),
      ['Aa bb. Cc.\n\n', 'Dd. Ee. Ff gg.'],
    ],
    ['an early paragraph is passed', 'Aa.\n\nBb. Cc. Dd. Ee.', sizes(14), ['Aa.\n\nBb. Cc. ', 'Dd. Ee.']],
    [
      'headings stay with their text',
      'Aa bb cc. Dd ee.\n# Title\nFf gg. Hh ii jj kk.',
      sizes(30),
      ['Aa bb cc. Dd ee.\n', '# Title\nFf gg. Hh ii jj kk.'],
    ],
    [
      'list items',
      'Do this, please:\n- aaaa bb\n- cccc dd\n- eeee ff\n',
      sizes(32),
      ['Do this, please:\n- aaaa bb\n', '- cccc dd\n- eeee ff\n'],
    ],
    ['numbered items', '1. Aaa bbb\n2. Ccc ddd\n3. Eee', sizes(20), ['1. Aaa bbb\n', '2. Ccc ddd\n3. Eee']],
    ['indentation stays', '- aaaaaaa\n    - bbbbb\n', sizes(14), ['- aaaaaaa\n', '    - bbbbb\n']],
    [
      'code',
      'Ab cd:\n```\n# no. Title\n- x\n```\nEf.',
      sizes(32),
      ['Ab cd:\n```\n# no. Title\n- x\n```\n', 'Ef.'],
    ],
    ['wide full stops', '你好世界。我们在。再见！', sizes(9), ['你好世界。我们在。', '再见！']],
    ['scripts without spaces', '你好世界你好世界', sizes(3), ['你好世', '界你好', '世界']],
    ['no-break space', 'aa b\u00a0c dd', sizes(5), ['aa ', 'b\u00a0c ', 'dd']],
    ['CRLF', 'Aa.\r\n\r\nBb.\r\nCc.', sizes(9), ['Aa.\r\n\r\n', 'Bb.\r\nCc.']],
    ['white space above maxChars', 'aa      bb', sizes(4), ['aa  ', 'bb']],
    ['indentation above maxChars', 'aa\n      bb', sizes(4), ['aa\n', 'bb']],
    ['surrogate pairs', '😀😀😀', sizes(3), ['😀', '😀', '😀']],
    ['surrogate pairs after white space', 'a  😀😀', sizes(3), ['a  ', '😀', '😀']],
    ['one character', 'a 😀', sizes(1), ['a', '😀']],
    ['white space', ' \n\t ', sizes(2), []],
  ])('%s', (_, text, options, expected) => {
    expect(pieces(sentenceChunker, text, options)).toEqual(expected)
  })

  test('does not split a sentence that fits', () => {
    const word = fc.string({ unit: fc.constantFrom('a', 'b', 'é', '😀'), minLength: 4, maxLength: 9 })
    const one = fc
      .tuple(fc.array(word, { minLength: 1, maxLength: 5 }), fc.constantFrom('. ', '? ', '!\n', '.  '))
      .map(([words, end]) => `A${words.join(' ')}${end}`)
    fc.assert(
      fc.property(
        fc.array(one, { maxLength: 30 }),
        fc.nat(60),
        fc.nat(50),
        (sentences, extra, overlapChars) => {
          const text = sentences.join('')
          const starts = new Set([0])
          for (const part of sentences) starts.add(Math.max(...starts) + part.length)
          const maxChars = Math.max(overlapChars + 1, ...sentences.map(part => part.trimEnd().length)) + extra
          for (const { start, end } of sentenceChunker.chunk(text, sizes(maxChars, 0, overlapChars))) {
            expect(starts).toContain(start)
            const after = text.slice(end).match(/^\s*/)![0].length
            expect(starts).toContain(end + after)
          }
        },
      ),
      { numRuns: 300 },
    )
  })

  test('does not split a word that fits', () => {
    fc.assert(
      fc.property(anyText, anySizes(1), (text, options) => {
        const words = [...text.matchAll(new RegExp(`${ink}+`, 'g'))].filter(
          ([word]) => word.length <= options.maxChars,
        )
        const cuts = sentenceChunker.chunk(text, options).flatMap(({ start, end }) => [start, end])
        for (const { 0: word, index } of words) {
          // A sentence can end inside text without spaces.
          if (/[。！？]/.test(word)) continue
          expect(cuts.filter(cut => cut > index && cut < index + word.length)).toEqual([])
        }
      }),
      { numRuns: 300 },
    )
  })

  test('breaks are in ascending order, and none is inside white space', () => {
    fc.assert(
      fc.property(anyText, text => {
        const breaks = findBreaks(text)
        const at = [...breaks.offsets.slice(0, breaks.count)]
        expect(at).toEqual([...new Set(at)].sort((a, b) => a - b))
        for (const one of at) expect(text.slice(one)).toMatch(new RegExp(`^[ \\u200b\\u3000]*${ink}`))
      }),
    )
  })
})

describe.each(all)('$id', chunker => {
  test('returns no chunks for an empty text', () => {
    expect(chunker.chunk('', sizes(10))).toEqual([])
  })

  test('returns ordered spans within limits that cover the text', () => {
    fc.assert(
      fc.property(anyText, anySizes(1), (text, options) => {
        const spans = chunker.chunk(text, options)
        checkSpans(text, spans, options)
        let covered = 0
        for (const { start, end } of spans) {
          if (start > covered)
            expect(chunker === sentenceChunker && text.slice(covered, start)).toMatch(
              new RegExp(`^${blank}+$`),
            )
          covered = end
        }
        expect(text.slice(covered)).toMatch(chunker === sentenceChunker ? new RegExp(`^${blank}*$`) : /^$/)
        if (chunker === sentenceChunker)
          for (const { start, end } of spans) expect(text.slice(start, end)).toMatch(new RegExp(ink))
      }),
      { numRuns: 300 },
    )
  })

  test('returns one chunk for a text that fits', () => {
    const text = '# A\n\nOne. Two three.\n- four\n'
    expect(pieces(chunker, text, sizes(text.length, 5, 5))).toEqual([text])
  })

  const length = limits.ingestTextChars / 10
  const long: Record<string, () => string> = {
    'one word': () => 'a'.repeat(length),
    'white space around a word': () => `${' '.repeat(length / 2)}a${'\n'.repeat(length / 2 - 1)}`,
    'short sentences': () => 'ab. '.repeat(length / 4),
    'closing quotes': () => `${'"'.repeat(99_999)} `.repeat(length / 100_000),
  }
  test.each(Object.keys(long))('finishes with 2,000,000 characters: %s', name => {
    const text = long[name]!()
    expect(text).toHaveLength(length)
    for (const options of [sizes(1_000, 100, 150), sizes(600_000, 0, 599_900)]) {
      const spans = chunker.chunk(text, options)
      expect(spans.length).toBeGreaterThan(0)
      expect(spans.every(({ start, end }) => end - start <= options.maxChars)).toBe(true)
    }
  })
})

describe('the maximum number of chunks', () => {
  const options = sizes(4, 0, 0, 1)

  test.each(all)('$id rejects a text with more', chunker => {
    expect(() => chunker.chunk('ab.\n'.repeat(chunksMax + 1), options)).toThrow(
      expect.objectContaining({
        code: 'invalid_chunker',
        message: expect.stringContaining('more than 50000 chunks'),
      }),
    )
  })

  test.each(all)('$id allows exactly that many', chunker => {
    expect(chunker.chunk('ab.\n'.repeat(chunksMax), options)).toHaveLength(chunksMax)
  })
})

describe('the chunker registry', () => {
  const service = (
    engine: string,
    strategy: string | null,
    chunkUnit: string | null = null,
    maxChunkSize: number | null = null,
    minChunkSize: number | null = null,
    overlapSize: number | null = null,
  ) => ({ engine, strategy, chunkUnit, maxChunkSize, minChunkSize, overlapSize })
  const seed = service('langchain_ts', 'recursive', 'characters', 1_000, 100, 150)
  const rows = service('langchain_ts', 'line', 'rows', 1, 0, 0)
  const refusal = (run: () => unknown): string => {
    try {
      run()
    } catch (error) {
      expect(error).toMatchObject({ name: 'WbError', code: 'invalid_chunker', status: 400 })
      return (error as Error).message
    }
    throw new Error('was accepted')
  }

  test('lists the chunkers', () => {
    expect(chunkerInfos.map(({ id, engine, strategy }) => `${id} ${engine} ${strategy}`)).toEqual([
      'recursive-char:1 langchain_ts recursive',
      'line:1 langchain_ts line',
      'sentence:1 workbase sentence',
      'structure:1 workbase structure',
    ])
    for (const one of chunkerInfos)
      expect(Object.keys(one)).toEqual(['id', 'engine', 'strategy', 'description'])
  })

  test.each([
    [seed, 'recursive-char:1'],
    [service('langchain_ts', null), 'recursive-char:1'],
    [rows, 'line:1'],
    [service('workbase', 'sentence'), 'sentence:1'],
    [service('workbase', null), 'sentence:1'],
    [service('workbase', 'structure'), 'structure:1'],
  ])('finds %j', (given, id) => {
    expect(createChunker(given).id).toBe(id)
  })

  test.each([
    [
      service('fixed', 'by-tokens'),
      'chunker fixed/by-tokens does not exist; available chunkers: langchain_ts/recursive, langchain_ts/line, workbase/sentence, workbase/structure',
    ],
    [
      service('langchain_ts', 'sentence'),
      'chunker langchain_ts/sentence does not exist; available chunkers:',
    ],
    [service('fixed', null), 'chunker fixed/(none) does not exist; available chunkers:'],
  ])('rejects %j', (given, message) => {
    expect(refusal(() => createChunker(given))).toContain(message)
  })

  // In a text without separators, sizes and overlap are visible in the chunks.
  const letters = Array.from({ length: 3_000 }, (_, at) => String.fromCharCode(0x4e00 + at)).join('')
  const measured = (given: typeof seed, override?: ChunkOverride): [number, number] => {
    const [first, second] = chunkTexts(createChunker(given, override), letters)
    return [first!.length, first!.length - first!.indexOf(second![0]!)]
  }
  test.each<[string, typeof seed, ChunkOverride | undefined, number, number]>([
    ['nothing given', service('langchain_ts', null), undefined, 1_000, 150],
    ['the service', service('langchain_ts', null, null, 400, 10, 20), undefined, 400, 20],
    ['tokens are characters', service('langchain_ts', null, 'tokens', 400, 10, 20), undefined, 400, 20],
    ['derived from the service', service('langchain_ts', null, null, 400), undefined, 400, 66],
    ['the ingest over the service', seed, { maxChars: 500, overlapChars: 5 }, 500, 5],
    ['the service under the ingest', seed, { maxChars: 500 }, 500, 150],
    ['derived where the service does not fit', seed, { maxChars: 60 }, 60, 10],
  ])('sizes: %s', (_, given, override, length, overlap) => {
    expect(measured(given, override)).toEqual([length, overlap])
  })

  test('minChars is derived by default', () => {
    const text = `${'a'.repeat(50)} ${'b'.repeat(2_000)}`
    expect(chunkTexts(createChunker(service('langchain_ts', null)), text)[0]).toHaveLength(1_000)
    expect(chunkTexts(createChunker(service('langchain_ts', null), { minChars: 50 }), text)[0]).toHaveLength(
      51,
    )
  })

  test('row chunking', () => {
    expect(chunkTexts(createChunker(rows), 'a\nb\nc')).toEqual(['a\n', 'b\n', 'c'])
    expect(chunkTexts(createChunker(rows), 'a'.repeat(1_500)).map(part => part.length)).toEqual([1_000, 500])
    expect(chunkTexts(createChunker(rows, { maxChars: 2_000 }), 'a'.repeat(1_500))).toHaveLength(1)
    expect(
      chunkTexts(createChunker({ ...rows, maxChunkSize: 2, minChunkSize: 3, overlapSize: 4 }), 'a\nb\nc'),
    ).toEqual(['a\nb\n', 'c'])
  })

  test.each<[typeof seed, ChunkOverride, string]>([
    [seed, { overlapChars: 1_000 }, 'overlapChars: 1000 must be less than maxChars (1000)'],
    [seed, { maxChars: 50, minChars: 50 }, 'minChars: 50 must be less than maxChars (50)'],
    [{ ...seed, overlapSize: 2_000 }, {}, 'overlapChars: 2000 must be less than maxChars (1000)'],
    [seed, { maxChars: 0 }, 'maxChars: must be an integer above 0'],
    [seed, { maxChars: Number.POSITIVE_INFINITY }, 'maxChars: must be an integer above 0'],
    [seed, { minChars: -1 }, 'minChars: must be an integer of at least 0'],
    [seed, { overlapChars: 1.5 }, 'overlapChars: must be an integer of at least 0'],
    [seed, { overlapChars: '5' as unknown as number }, 'overlapChars: must be an integer of at least 0'],
  ])('rejects %j with %j', (given, override, message) => {
    expect(refusal(() => createChunker(given, override))).toBe(message)
  })

  test('applies the override of an ingest body', () => {
    const { chunker } = Ingest.parse({ text: 'x', chunker: { maxChars: 3, other: 1 } })
    expect(chunkTexts(createChunker(seed, chunker), 'abcdef')).toEqual(['abc', 'def'])
  })
})

/** Valid combinations of sizes, with at least `least` characters. */
function anySizes(least: number): fc.Arbitrary<ChunkOptions> {
  return fc
    .record({
      maxChars: fc.oneof(fc.integer({ min: least, max: 6 }), fc.integer({ min: least, max: 60 })),
      minChars: fc.nat(60),
      overlapChars: fc.nat(60),
      maxLines: fc.option(fc.integer({ min: 1, max: 4 })),
    })
    .map(given => ({
      ...given,
      minChars: given.minChars % given.maxChars,
      overlapChars: given.overlapChars % given.maxChars,
    }))
}

const anyText = fc.string({
  unit: fc.constantFrom(
    ...[
      'a',
      'b',
      'é',
      '😀',
      '\ud800',
      '\udc00',
      '好',
      '。',
      ' ',
      '  ',
      '\n',
      '\r\n',
      '\r',
      '\n\n',
      '\u00a0',
      '\u3000',
      '\u200b',
    ],
    ...[
      '. A',
      '. a',
      '? ',
      '! ',
      '."',
      '\n# T\n',
      '\n- x',
      '\n2. y',
      '\n```\n',
      'e.g. ',
      'word ',
      'a-b',
      'Dr. ',
    ],
  ),
  maxLength: 80,
})

function checkSpans(
  text: string,
  spans: readonly ChunkSpan[],
  { maxChars, overlapChars }: ChunkOptions,
): void {
  const parts = (at: number) =>
    at > 0 && at < text.length && /^[\ud800-\udbff][\udc00-\udfff]/.test(text.slice(at - 1, at + 1))
  let previous: ChunkSpan = { start: -1, end: 0 }
  for (const span of spans) {
    const { start, end } = span
    expect(start).toBeGreaterThan(previous.start)
    expect(end).toBeGreaterThan(previous.end)
    expect(previous.end - start).toBeLessThanOrEqual(overlapChars)
    const pair = maxChars === 1 && parts(start + 1)
    expect(end - start).toBeLessThanOrEqual(pair ? 2 : maxChars)
    expect(parts(start) || parts(end)).toBe(false)
    previous = span
  }
}

function recursiveAsWritten(text: string, { maxChars, minChars, overlapChars }: ChunkOptions): ChunkSpan[] {
  const spans: ChunkSpan[] = []
  let start = 0
  let cut = 0
  while (text.length - start > maxChars) {
    const window = text.slice(0, start + maxChars)
    const ends = ['\n\n', '\n', '. ', '? ', '! ', ' ']
      .map(separator => ({ at: window.lastIndexOf(separator), size: separator.length }))
      .filter(({ at, size }) => at >= start + minChars && at + size > cut)
      .map(({ at, size }) => at + size)
    cut = ends[0] ?? start + maxChars
    spans.push({ start, end: cut })
    start = Math.max(cut - overlapChars, start + 1)
  }
  if (start < text.length) spans.push({ start, end: text.length })
  return spans
}

function lineAsWritten(text: string, { maxChars, overlapChars, maxLines }: ChunkOptions): ChunkSpan[] {
  const units: ChunkSpan[] = []
  for (const found of text.matchAll(/[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$/g))
    for (let at = 0; at < found[0].length; at += maxChars)
      units.push({ start: found.index + at, end: found.index + Math.min(at + maxChars, found[0].length) })
  const spans: ChunkSpan[] = []
  let packed: ChunkSpan[] = []
  const fits = (unit: ChunkSpan) =>
    unit.end - (packed[0] ?? unit).start <= maxChars && packed.length < (maxLines ?? Number.POSITIVE_INFINITY)
  for (const unit of units) {
    if (!fits(unit)) {
      spans.push({ start: packed[0]!.start, end: unit.start })
      packed = packed.slice(1).filter(({ start }) => start >= unit.start - overlapChars)
      while (!fits(unit)) packed.shift()
    }
    packed.push(unit)
  }
  if (packed.length > 0) spans.push({ start: packed[0]!.start, end: text.length })
  return spans
}

describe('a text', () => {
  const { prepare } = createPassageOperations(new Promise(() => {}))

  test.each(chunkerInfos.map(info => [info.strategy, info] as const))(
    'can be read from its chunks: %s',
    async (_, { engine, strategy }) => {
      const size = fc.integer({ min: 1, max: 60 })
      const anyText = fc.oneof(fc.string({ maxLength: 300, unit: 'binary' }), fc.lorem(), spaces)
      await fc.assert(
        fc.asyncProperty(anyText, size, size, size, async (text, maxChars, min, overlap) => {
          const { chunks } = await prepare({
            text,
            title: null,
            service: {
              engine,
              strategy,
              chunkUnit: null,
              maxChunkSize: maxChars,
              minChunkSize: min % maxChars,
              overlapSize: overlap % maxChars,
            },
            override: undefined,
            layout: { isMarkdown: false, places: [] },
            fittedIn: undefined,
          })
          if (chunks.length === 0) return
          expect(readTextOf(chunks.map(chunk => ({ text: chunk.text, payload: chunkPayload(chunk) })))).toBe(
            text,
          )
        }),
      )
    },
  )
})

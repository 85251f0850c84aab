import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { limits } from '../../src/contract/limits.ts'
import { measureTokens } from '../../src/knowledge/chunk/chunk-measure.ts'
import { type ChunkOptions, chunksMax } from '../../src/knowledge/chunk/chunker.ts'
import { isCodeFile } from '../../src/knowledge/chunk/code-breaks.ts'
import { createChunker } from '../../src/knowledge/chunk/index.ts'
import { structureChunker } from '../../src/knowledge/chunk/structure.ts'
import { findTables, tableHeadsAt } from '../../src/knowledge/chunk/tables.ts'
import { chunkText } from '../../src/knowledge/chunk-text.ts'
import { countSentenceTokens } from '../../src/sentence-model/count-tokens.ts'
import { chunkTexts } from '../harness/chunk-texts.ts'

const sizes = (maxChars: number, minChars = 0, overlapChars = 0): ChunkOptions => ({
  maxChars,
  minChars,
  overlapChars,
  maxLines: null,
})

function pieces(text: string, options: ChunkOptions): string[] {
  return structureChunker.chunk(text, options).map(({ start, end }) => text.slice(start, end))
}

describe('Markdown and prose', () => {
  test.each<[string, string, ChunkOptions, string[]]>([
    ['a text that fits stays whole', 'One.\n\nTwo.\n', sizes(20), ['One.\n\nTwo.']],
    ['sections stay apart', '# A\n\nOne.\n\n# B\n\nTwo.', sizes(15, 4), ['# A\n\nOne.', '# B\n\nTwo.']],
    [
      'short sections are joined with their siblings',
      '## A\n\nOne.\n\n## B\n\nTwo.\n\n# C\n\nThree.',
      sizes(30, 20),
      ['## A\n\nOne.\n\n## B\n\nTwo.', '# C\n\nThree.'],
    ],
    [
      'a subsection is split off before a section is split at paragraphs',
      '# A\n\nOne two.\n\nThree.\n\n## B\n\nFour five six.',
      sizes(30, 5),
      ['# A\n\nOne two.\n\nThree.', '## B\n\nFour five six.'],
    ],
    [
      'the rest of a split section is not joined with the next one',
      '# A\n\nOne two three.\n\nFour.\n\n# B\n\nFive.',
      sizes(22, 20),
      ['# A\n\nOne two three.', 'Four.', '# B\n\nFive.'],
    ],
    [
      'paragraphs before sentences',
      'One. Two.\n\nThree. Four five.',
      sizes(20),
      ['One. Two.', 'Three. Four five.'],
    ],
    ['sentences before lines', 'One two.\nThree\nfour.', sizes(15), ['One two.', 'Three\nfour.']],
    ['lines before words', 'one two\nthree four', sizes(12), ['one two', 'three four']],
    ['words', 'one two three four', sizes(9), ['one two', 'three', 'four']],
    ['long words', 'aaaaaaaaaa', sizes(4), ['aaaa', 'aaaa', 'aa']],
    ['surrogate pairs', '😀😀😀', sizes(3), ['😀', '😀', '😀']],
    ['parts of about equal size', 'Aa. Bb. Cc. Dd.', sizes(12), ['Aa. Bb.', 'Cc. Dd.']],
    [
      'list items before their lines',
      '- one\n  two\n- three\n  four',
      sizes(15),
      ['- one\n  two', '- three\n  four'],
    ],
    [
      'nested items stay with their item',
      '- one\n  - two\n  - three\n- four\n  - five',
      sizes(24),
      ['- one\n  - two\n  - three', '- four\n  - five'],
    ],
    [
      'fenced code stays whole',
      'Some text.\n\n```js\na\n\nb\n```\n\nMore.',
      sizes(18),
      ['Some text.', '```js\na\n\nb\n```', 'More.'],
    ],
    [
      'a line that ends with a colon stays with the code after it',
      'Some text.\n\nRun:\n\n```\na\n```',
      sizes(20),
      ['Some text.', 'Run:\n\n```\na\n```'],
    ],
    [
      'long code is split at blank lines',
      '```\naaa\nbb\n\ncccc\n\ndd\n```',
      sizes(16),
      ['```\naaa\nbb', 'cccc\n\ndd\n```'],
    ],
    ['headings in code are no sections', '```\n# a\n```\nb', sizes(30, 1), ['```\n# a\n```\nb']],
    [
      'tables between rows',
      '| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n| 5 | 6 |',
      sizes(31),
      ['| a | b |\n|---|---|\n| 1 | 2 |', '| 3 | 4 |\n| 5 | 6 |'],
    ],
    [
      'an overlap of whole sentences inside of a paragraph',
      'Anna bakes. Cyd digs. Eva feeds. Gus hums.\n\nIda joins.',
      sizes(33, 0, 11),
      ['Anna bakes. Cyd digs.', 'Cyd digs. Eva feeds. Gus hums.', 'Ida joins.'],
    ],
    [
      'Windows line ends',
      '# A\r\n\r\nOne.\r\n\r\n# B\r\n\r\nTwo.',
      sizes(15, 4),
      ['# A\r\n\r\nOne.', '# B\r\n\r\nTwo.'],
    ],
  ])('%s', (_, text, options, expected) => {
    expect(pieces(text, options)).toEqual(expected)
  })
})

describe('source code', () => {
  const python = `import os


def first(path):
    if path:
        return os.path.join(path)

    return None


class Second:
    def third(self):
        pass

    def fourth(self):
        pass
`
  test('keeps functions whole, and classes if they fit', () => {
    const options = { ...sizes(110, 10), isCode: true }
    expect(pieces(python, options)).toEqual([
      'import os\n\n\ndef first(path):\n    if path:\n        return os.path.join(path)\n\n    return None',
      'class Second:\n    def third(self):\n        pass\n\n    def fourth(self):\n        pass',
    ])
  })

  test('splits a class between its methods', () => {
    const options = { ...sizes(60, 10), isCode: true }
    expect(pieces(python, options).slice(-2)).toEqual([
      'class Second:\n    def third(self):\n        pass',
      '    def fourth(self):\n        pass',
    ])
  })

  test('does not start a chunk with a line that closes a block', () => {
    const text = 'function a() {\n  one()\n}\nfunction b() {\n  two()\n}\n'
    expect(pieces(text, { ...sizes(30), isCode: true })).toEqual([
      'function a() {\n  one()\n}',
      'function b() {\n  two()\n}',
    ])
  })

  test.each([
    ['src/main.rs', true],
    ['Dockerfile', true],
    ['a.tsx', true],
    ['settings.yaml', true],
    ['notes.md', false],
    ['report.txt', false],
    [null, false],
  ])('recognizes %s by its name', (name, expected) => {
    expect(isCodeFile(name)).toBe(expected)
  })
})

describe('tokens', () => {
  const text = 'The quick brown fox jumps over the lazy dog. Internationalization is unbelievably long.'
  const service = { engine: 'workbase', strategy: 'structure', chunkUnit: 'tokens' }

  test('counts tokens like the sentence model', () => {
    expect(measureTokens(text, countSentenceTokens).size(0, text.length)).toBe(countSentenceTokens(text))
  })

  test('limits the tokens of each chunk', () => {
    const chunker = createChunker({ ...service, maxChunkSize: 12, minChunkSize: 0, overlapSize: 0 })
    const chunks = chunkTexts(chunker, text)
    expect(chunks).toEqual([
      'The quick brown fox jumps over the lazy dog.',
      'Internationalization is unbelievably long.',
    ])
    for (const chunk of chunks) expect(countSentenceTokens(chunk)).toBeLessThanOrEqual(12)
  })

  test('has 200 tokens by default', () => {
    const chunker = createChunker({ ...service, maxChunkSize: null, minChunkSize: null, overlapSize: 0 })
    const counts = chunkTexts(chunker, 'One two three four. '.repeat(200)).map(countSentenceTokens)
    expect(Math.max(...counts)).toBeGreaterThan(150)
    expect(Math.max(...counts)).toBeLessThanOrEqual(200)
  })

  test('limits the characters of a text with few tokens', () => {
    const chunker = createChunker({ ...service, maxChunkSize: 10, minChunkSize: 0, overlapSize: 0 })
    const lengths = chunkTexts(chunker, `${'x'.repeat(9_000)}${' '.repeat(9_000)}y`).map(
      chunk => chunk.length,
    )
    expect(Math.max(...lengths)).toBeLessThanOrEqual(1_000)
  })
})

describe('tables', () => {
  const text = 'Text | no table\n\n| Name | Role |\n| --- | :-: |\n| Ann | admin |\n| Bob | user |\n\nEnd'

  test('are found with their heads and rows', () => {
    expect([...findTables(text)].map(({ start, bodyStart, end }) => [start, bodyStart, end])).toEqual([
      [17, 47, 78],
    ])
    expect([...findTables('```\n| a |\n|---|\n```')]).toEqual([])
  })

  test('give their heads to the chunks that start in their body', () => {
    const spans = ['Text', '| Name', '| Ann', '| Bob', 'End'].map(word => ({
      start: text.indexOf(word),
      end: text.indexOf(word) + word.length,
    }))
    expect(tableHeadsAt(text, spans)).toEqual([undefined, undefined, 'Name | Role', 'Name | Role', undefined])
  })
})

describe('any text', () => {
  const line = fc.oneof(
    {
      weight: 3,
      arbitrary: fc.constantFrom('', '', '  ', 'One two. Three four.', 'word', '😀😀', '好。好好'),
    },
    fc.constantFrom(
      '# T',
      '### Sub',
      '- item',
      '  - nested',
      '1. first',
      '```',
      '~~~',
      'Note:',
      '\tcode',
      '}',
    ),
    fc.constantFrom('| a | b |', '|---|---|', '| 1 | long cell |', 'a'.repeat(30)),
  )
  const anyText = fc
    .array(fc.tuple(line, fc.constantFrom('\n', '\n', '\r\n', '\r')), { maxLength: 25 })
    .map(lines => lines.flat().join(''))
  const anySizes = fc
    .tuple(fc.oneof(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: 80 })), fc.nat(80), fc.nat(80))
    .map(([maxChars, minChars, overlapChars]) =>
      sizes(maxChars, minChars % maxChars, overlapChars % maxChars),
    )

  test.each([false, true])('has ascending chunks within limits that cover it (code: %s)', isCode => {
    fc.assert(
      fc.property(anyText, anySizes, (text, options) => {
        const spans = structureChunker.chunk(text, { ...options, isCode })
        let previous = { start: -1, end: 0 }
        for (const span of spans) {
          expect(span.start).toBeGreaterThan(previous.start)
          expect(span.end).toBeGreaterThan(previous.end)
          expect(text.slice(previous.end, Math.max(previous.end, span.start))).toMatch(/^\s*$/)
          expect(previous.end - span.start).toBeLessThanOrEqual(options.overlapChars)
          expect(span.end - span.start).toBeLessThanOrEqual(Math.max(options.maxChars, 2))
          expect(text.slice(span.start, span.end)).toMatch(/\S/)
          expect(text.slice(span.start, span.end)).not.toMatch(/\p{Cs}/u)
          previous = span
        }
        expect(text.slice(previous.end)).toMatch(/^\s*$/)
      }),
      { numRuns: 200 },
    )
  })

  test('is not cut inside a row of a table that fits', () => {
    fc.assert(
      fc.property(anyText, anySizes, (text, options) => {
        const spans = structureChunker.chunk(text, options)
        for (const { start, end } of findTables(text))
          for (const { 0: row, index } of text.slice(start, end).matchAll(/[^\r\n]+/g)) {
            if (row.length > options.maxChars) continue
            const rowStart = start + index
            const rowEnd = rowStart + row.trimEnd().length
            const cuts = spans.flatMap(span => [span.start, span.end])
            expect(cuts.filter(cut => cut > rowStart && cut < rowEnd)).toEqual([])
          }
      }),
      { numRuns: 200 },
    )
  })
})

describe('long texts', () => {
  const length = limits.ingestTextChars / 40
  const long: Record<string, string> = {
    'one word': 'a'.repeat(length),
    'white space around a word': `${' '.repeat(length / 2)}a${'\n'.repeat(length / 2 - 1)}`,
    'blank lines': `${' \n'.repeat(length / 2 - 1)}ab`,
    'short sentences': 'ab. '.repeat(length / 4),
    headings: '# a\n'.repeat(length / 4),
    tables: '|a|\n|-|\n'.repeat(length / 8),
    'rows of a table': `|a|\n|-|\n${'|b|\n'.repeat(length / 4 - 2)}`,
    'open fences': '```\n'.repeat(length / 4),
  }
  test.each(Object.keys(long))('are split in linear time: %s', name => {
    const text = long[name]!
    expect(text).toHaveLength(length)
    for (const options of [sizes(1_000, 100, 150), sizes(600_000, 0, 599_900)])
      for (const isCode of [false, true]) {
        const spans = structureChunker.chunk(text, { ...options, isCode })
        expect(spans.every(({ start, end }) => end - start <= options.maxChars)).toBe(true)
      }
  })

  test('get the headers of a wide table, and the pages of a file, in linear time', () => {
    const table = `|${'a'.repeat(length)}|\n|-|\n`
    const text = `${table}${'|b|\n'.repeat(40_000)}`
    const spans = Array.from({ length: 40_000 }, (_, at) => ({
      start: table.length + 4 * at,
      end: table.length + 4 * at + 4,
    }))
    expect(tableHeadsAt(text, spans)[39_999]).toBe('a'.repeat(300))
    const places = Array.from({ length: 40_000 }, (_, at) => ({ start: 4 * at, page: at + 1 }))
    const service = {
      engine: 'langchain_ts',
      strategy: 'recursive',
      chunkUnit: 'characters',
      maxChunkSize: 8,
      minChunkSize: 0,
      overlapSize: 0,
    } as const
    const { chunks } = chunkText({
      text: 'ab. '.repeat(40_000),
      service,
      override: undefined,
      layout: { isMarkdown: false, places },
    })
    expect(chunks.at(-1)).toMatchObject({ place: { page: 39_999 }, innerPlaces: [{ page: 40_000 }] })
  })

  test('are rejected with too many chunks', () => {
    expect(() => structureChunker.chunk('ab.\n'.repeat(chunksMax + 1), sizes(4))).toThrow(
      expect.objectContaining({ code: 'invalid_chunker' }),
    )
  })
})

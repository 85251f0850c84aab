import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { CitationReader } from '../../../src/agents/chat/citation-reader.ts'
import { Citations } from '../../../src/agents/chat/citations.ts'
import type { ToolPassage } from '../../../src/agents/tools/tool.ts'

const passage = (chunkId: string): ToolPassage => ({
  knowledgeBaseId: '00000000-0000-4000-8000-000000000001',
  attachmentId: null,
  documentId: 'd',
  chunkId,
  chunkIndex: 0,
  title: null,
  sourceFilename: null,
  page: null,
})

/** Returns citations with known passages 1 and 2. */
function knownCitations(): Citations {
  const citations = new Citations()
  citations.numberOf(passage('a'), '')
  citations.numberOf(passage('b'), '')
  return citations
}

function readWhole(pieces: readonly string[]) {
  const reader = new CitationReader(knownCitations())
  const text = pieces.map(piece => reader.read(piece)).join('') + reader.end()
  return { text, used: reader.citedPassages.map(({ chunkId }) => chunkId), dropped: reader.removedCount }
}

test('a passage keeps its number in later turns', () => {
  const citations = knownCitations()
  expect(citations.numberOf(passage('b'), '')).toBe(2)
  const later = new Citations([{ ...passage('b'), number: 2 }])
  expect([later.numberOf(passage('b'), ''), later.numberOf(passage('c'), '')]).toEqual([2, 3])
})

describe('citations are collected and normalized to the form [1]', () => {
  test.each([
    ['Laws hold [1].', 'Laws hold [1].', ['a']],
    ['The end [2]', 'The end [2]', ['b']],
    ['Both [2][1], and both [1, 2].', 'Both [2][1], and both [1][2].', ['a', 'b']],
    ['Both [1; 2] or [1-2] or [1–2].', 'Both [1][2] or [1][2] or [1][2].', ['a', 'b']],
    ['As said【1】 and【2†laws.md】.', 'As said[1] and[2].', ['a', 'b']],
    ['A note[^1] and 沸点【2】。', 'A note[1] and 沸点[2]。', ['a', 'b']],
    ['- a\n\n    - nested [2]', '- a\n\n    - nested [2]', ['b']],
    ['It costs $5 [1].', 'It costs $5 [1].', ['a']],
  ])('%j', (said, text, used) => {
    expect(readWhole([said])).toEqual({ text, used, dropped: 0 })
  })
})

describe('an invented citation is removed and counted', () => {
  test.each([
    ['Laws hold [9].', 'Laws hold.', [], 1],
    ['Laws [9][8] hold, gases [7], and [1] [6].', 'Laws [9][8] hold, gases, and [1].', ['a'], 2],
    ['Laws [9][8], and so on', 'Laws, and so on', [], 2],
    ['Laws【9†laws.md】hold【57†source】.', 'Lawshold.', [], 2],
    ['Laws hold [1][9] here', 'Laws hold [1] here', ['a'], 1],
    ['One two [8]\nthree [9]', 'One two\nthree', [], 2],
    ['沸点 【9】。', '沸点。', [], 1],
    ['```js\nrow[9]\n```\nlaws [9].', '```js\nrow[9]\n```\nlaws.', [], 1],
  ])('%j', (said, text, used, dropped) => {
    expect(readWhole([said])).toEqual({ text, used, dropped })
  })
})

describe('a number in brackets that may not be a citation is kept', () => {
  test.each([
    'in [0, 1], and arr[0]; list [10, 20, 30]',
    'As Smith [2024] wrote, from 1 to [12345].',
    'Take row[9], `row [9]` and m[1, 2].',
    'See [1](https://example.com) and [7](x).',
    '[9]: https://example.com',
    '    row [9];\n\trow [9];',
    '- step:\n  ```js\n  row [9];\n  ```\n- done',
    '> ~~~\n> row [9];\n> ```\n> row [9];\n> ~~~',
    '````md\n```\nrow [9];\n```\n````',
    'The matrix $x [9]$, \\(a [9]\\) and $$\na [9],\n$$',
    '\\[\na [9],\n\\]',
    '\\sqrt[3]{x} and [3]{.class}',
    'A list [a, b] and [ ] and [',
    '  a  [0]  b  ',
    'Choose [9] or [8] of them',
    '[9]\n- [8]',
    'A footnote[^9].',
    'm = [[1, 2], [1, 2], [2, 1]] and f([1, 2])',
    'The interval x ∈ [1, 2], {"x": [1, 2]}, and "y": [5],',
    'Use ``x [9].`` and ``[1, 2]`` or `` ` [9].``',
    'A span `that\ncontinues [9].` and ends',
    '```md\n- ```\nrow [9];\n```',
    '## [9]\n\nStep [3]: press [5].',
    'It returns [5]. The answer is [3], as shown in [9].',
    'Take q = p [3].',
    'See ([9]).',
    '<pre>\nrow [9];\n\nrow [9];\n</pre>',
    'Write <code>row [9];</code> there',
    '\\begin{align}\nx [9],\n\\end{align} and \\frac{a}{b} [9].',
    'In [1, 9] and【4:0†source】.',
  ])('%j', text => {
    expect(readWhole([text])).toMatchObject({ text, dropped: 0 })
  })

  test('keeps numbers in brackets if nothing was searched', () => {
    const reader = new CitationReader(new Citations())
    const text = 'Laws hold [1], [2].'
    expect([reader.read(text) + reader.end(), reader.citedPassages]).toEqual([text, []])
  })
})

const word = fc.constantFrom(
  ...[
    '[1]',
    '[9]',
    '[2, 9]',
    '[1-2]',
    '[^2]',
    '【1†a】',
    '【',
    '】',
    'a ',
    ' ',
    '. ',
    '`',
    '```\n',
    '~~~',
    '\n',
    '\n\n',
  ],
  ...[
    '[',
    ']',
    '(x)',
    '1',
    ',',
    '$',
    '$$',
    '\\',
    '\\[',
    '\\]',
    '\\(',
    '\\)',
    '- ',
    '> ',
    '1. ',
    '\t',
    '    ',
    '†',
    '^',
    '``',
    '=',
    '<code>',
    '</code>',
    '<pre>',
    '</pre>',
    '\\begin{',
    '\\end{',
    'is',
  ],
)
const markdown = fc.oneof(
  fc.array(word, { maxLength: 40 }).map(words => words.join('')),
  fc.string({ unit: 'grapheme' }),
)

test('the result does not depend on how the text is split into pieces', () => {
  fc.assert(
    fc.property(markdown, fc.array(fc.nat(60)), (whole, cuts) => {
      const at = [...new Set(cuts.filter(cut => cut < whole.length))].sort((a, b) => a - b)
      const pieces = [0, ...at].map((from, index) => whole.slice(from, at[index] ?? whole.length))
      expect(readWhole(pieces)).toEqual(readWhole([whole]))
    }),
    { numRuns: 700 },
  )
})

test('text outside citations is unchanged, byte by byte', () => {
  const withoutCitations = (text: string) =>
    text.replace(/[ ]*(?:\[\^?[\d ,;–-]+\]|【[\d ,;–-]+(?:†[^【】\n]*)?】)/g, '')
  fc.assert(
    fc.property(markdown, text => {
      expect(withoutCitations(readWhole([text]).text)).toBe(withoutCitations(text))
    }),
    { numRuns: 700 },
  )
})

test('an answer without a line break is read in linear time, for pieces of any size', () => {
  expect(readWhole(Array.from({ length: 40_000 }, () => 'word')).text).toHaveLength(160_000)
  expect(readWhole(['`x` <b> [1] '.repeat(40_000)]).used).toEqual(['a'])
  expect(readWhole(Array.from({ length: 40_000 }, () => '[1]')).used).toEqual(['a'])
  expect(readWhole(['x [9], '.repeat(40_000), ' '.repeat(200_000), 'y']).dropped).toBe(40_000)
  expect(readWhole(Array.from({ length: 40_000 }, () => ' ')).text).toHaveLength(40_000)
  expect(readWhole(Array.from({ length: 40_000 }, () => '- ')).text).toHaveLength(80_000)
  expect(readWhole(Array.from({ length: 40_000 }, () => '`')).text).toHaveLength(40_000)
})

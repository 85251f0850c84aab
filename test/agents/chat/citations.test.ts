import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { CitationReader, Citations } from '../../../src/agents/chat/citations.ts'
import type { Passage } from '../../../src/agents/tools/tool.ts'

const passage = (chunkId: string): Passage => ({
  knowledgeBaseId: '00000000-0000-4000-8000-000000000001',
  documentId: 'd',
  chunkId,
  chunkIndex: 0,
  title: null,
  sourceFilename: null,
  page: null,
})

/** A conversation in which passages 1 and 2 are known. */
function known(): Citations {
  const citations = new Citations()
  citations.numberOf(passage('a'))
  citations.numberOf(passage('b'))
  return citations
}

function read(pieces: readonly string[]) {
  const reader = new CitationReader(known())
  const text = pieces.map(piece => reader.read(piece)).join('') + reader.end()
  return { text, used: reader.used.map(({ chunkId }) => chunkId), dropped: reader.dropped }
}

test('a passage has one number, which later turns know', () => {
  const citations = known()
  expect(citations.numberOf(passage('b'))).toBe(2)
  const later = new Citations([{ ...passage('b'), number: 2 }])
  expect([later.numberOf(passage('b')), later.numberOf(passage('c'))]).toEqual([2, 3])
})

describe('a citation that points to nothing is dropped and counted', () => {
  test.each([
    ['Laws hold [1].', 'Laws hold [1].', ['a'], 0],
    ['Laws hold [9].', 'Laws hold.', [], 1],
    ['See also [9][8], [7], and [1] [6].', 'See also,, and [1].', ['a'], 4],
    ['One [9] two [8]\nthree[7]four [9]', 'One two\nthreefour', [], 4],
    ['  a  [1]  b  ', '  a  [1]  b  ', ['a'], 0],
    ['Both [2][1], one [3, 1].', 'Both [2][1], one [1].', ['a', 'b'], 1],
    ['See [1](https://example.com) and [7](x).', 'See [1](https://example.com) and [7](x).', [], 0],
    ['Take `row[9]` of it.', 'Take `row[9]` of it.', [], 0],
    ['```js\nrow[9]\n```\nbut [9].', '```js\nrow[9]\n```\nbut.', [], 1],
    ['A list [a, b] and [ ] and [', 'A list [a, b] and [ ] and [', [], 0],
    ['The end [2]', 'The end [2]', ['b'], 0],
    ['[0] and [12345]', ' and [12345]', [], 1],
  ])('%j', (said, text, used, dropped) => {
    expect(read([said])).toEqual({ text, used, dropped })
  })

  test('however the text comes in pieces', () => {
    const word = fc.constantFrom(
      '[1]',
      '[9]',
      '[2, 9]',
      'a ',
      ' ',
      '. ',
      '`',
      '```\n',
      '\n',
      '[',
      ']',
      '(x)',
      '1',
      ',',
    )
    fc.assert(
      fc.property(fc.array(word), fc.array(fc.nat(60)), (words, cuts) => {
        const whole = words.join('')
        const at = [...new Set(cuts.filter(cut => cut < whole.length))].sort((a, b) => a - b)
        const pieces = [0, ...at].map((from, index) => whole.slice(from, at[index] ?? whole.length))
        expect(read(pieces)).toEqual(read([whole]))
      }),
      { numRuns: 500 },
    )
  })
})

test('sixteen that are cited at once are looked at whole', () => {
  const sixteen = `[${Array.from({ length: 16 }, () => '9999').join(' , ')}]`
  for (const pieces of [[sixteen], [...sixteen]])
    expect(read(pieces)).toEqual({ text: '', used: [], dropped: 16 })
})

test('an answer without a line end is read as quickly as it is long, whatever pieces it comes in', () => {
  expect(read(Array.from({ length: 40_000 }, () => 'word')).text).toHaveLength(160_000)
  expect(read(['`x` [1] '.repeat(40_000)]).used).toEqual(['a'])
  expect(read(['x [9] '.repeat(40_000), ' '.repeat(200_000), 'y']).dropped).toBe(40_000)
  expect(read(Array.from({ length: 40_000 }, () => ' ')).text).toHaveLength(40_000)
})

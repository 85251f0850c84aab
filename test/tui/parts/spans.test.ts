import fc from 'fast-check'
import { expect, test } from 'vitest'
import { displayWidth } from '../../../src/cli/terminal/terminal-text.ts'
import {
  cutLine,
  type Line,
  lineWidth,
  span,
  widestWord,
  wrap,
  wrapExact,
} from '../../../src/tui/parts/spans.ts'

const textOf = (line: Line) => line.map(({ text }) => text).join('')
const textsOf = (lines: readonly Line[]) => lines.map(textOf)

test.each([
  ['one two three', 7, ['one two', 'three']],
  ['one two three', 8, ['one two', 'three']],
  ['one  two', 3, ['one', 'two']],
  ['one two', 6, ['one', 'two']],
  ['abcdefgh', 3, ['abc', 'def', 'gh']],
  ['ab abcdef', 4, ['ab', 'abcd', 'ef']],
  ['abcd ef', 4, ['abcd', 'ef']],
  ['one\n\ntwo', 10, ['one', '', 'two']],
  ['one\n', 10, ['one']],
  ['', 10, ['']],
  ['日本語', 4, ['日本', '語']],
  ['a日本', 3, ['a日', '本']],
  ['日本', 1, ['日', '本']],
  ['ab', 0, ['a', 'b']],
])('wraps %j to %i cells', (text, width, lines) => {
  expect(textsOf(wrap([span(text)], width))).toEqual(lines)
})

test('indents wrapped lines, and reserves the width of the wider indent', () => {
  const first = [span('* ')]
  expect(textsOf(wrap([span('one two')], 7, { first, rest: [span('  ')] }))).toEqual(['* one', '  two'])
  expect(textsOf(wrap([span('one two')], 7, { first, rest: [span('    ')] }))).toEqual(['* one', '    two'])
})

test('keeps a word of several spans together, and joins spans with the same tones', () => {
  const line = [
    span('one '),
    span('tw', 'strong'),
    span('o', 'strong'),
    span('s'),
    span(' ', 'dim'),
    span('x'),
  ]
  expect(wrap(line, 6)).toEqual([
    [span('one')],
    [span('two', 'strong'), span('s'), span(' ', 'dim'), span('x')],
  ])
})

test.each([
  ['one three', 5],
  ['three one', 5],
  ['日本 a', 1],
  ['', 0],
])('the widest word of %j has %i cells', (text, width) => {
  expect(widestWord([span(text)])).toBe(width)
})

test('a word of several spans is as wide as all of them', () => {
  expect(widestWord([span('ab'), span('cd', 'strong'), span(' e')])).toBe(4)
})

test.each([
  ['a  b c', 3, ['a  ', 'b c']],
  ['abcd', 4, ['abcd']],
  ['a日本', 2, ['a', '日', '本']],
  ['日', 1, ['日']],
  ['', 5, ['']],
  ['abc def', 6, ['abc ', 'def']],
  ['a bcdef', 6, ['a bcde', 'f']],
  ['abc defghij', 6, ['abc de', 'fghij']],
])('wraps code %j to %i cells with all spaces', (text, width, lines) => {
  expect(textsOf(wrapExact([span(text)], width))).toEqual(lines)
})

test('indents each line of wrapped code', () => {
  expect(textsOf(wrapExact([span('ab'), span('cd', 'strong')], 5, [span('  ')]))).toEqual(['  ab', '  cd'])
})

test.each([
  [['abc', 'def'], 6, 'abcdef'],
  [['abc', 'def'], 5, 'abcd…'],
  [['abc', 'def'], 4, 'abc…'],
  [['abc', 'def'], 3, 'ab…'],
  [['abc', 'def'], 1, '…'],
  [['abc', 'def'], 0, ''],
  [['日本', 'x'], 4, '日…'],
  [['日', 'x'], 2, '…'],
])('truncates %j to %i cells', (texts, width, expected) => {
  const line = cutLine(
    texts.map(text => span(text)),
    width,
  )
  expect(textOf(line)).toBe(expected)
})

test('never exceeds the width, and loses no character', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', ' ', '日', 'é', '\n'), maxLength: 30 })
  const line = fc.array(
    text.map(part => span(part)),
    { maxLength: 4 },
  )
  fc.assert(
    fc.property(line, fc.integer({ min: 2, max: 12 }), (spans, width) => {
      const lines = wrap(spans, width)
      const withoutSpaces = (joined: string) => joined.replace(/\s/g, '')
      expect(withoutSpaces(textsOf(lines).join(''))).toBe(withoutSpaces(textOf(spans)))
      const code = spans.map(({ text: part }) => span(part.replaceAll('\n', '')))
      const exact = wrapExact(code, width)
      expect(textsOf(exact).join('')).toBe(textOf(code))
      for (const row of [...lines, ...exact, cutLine(code, width)])
        expect(lineWidth(row)).toBeLessThanOrEqual(width)
      if (lineWidth(code) <= width) expect(cutLine(code, width)).toEqual(code)
      else expect(displayWidth(textOf(cutLine(code, width)))).toBeGreaterThanOrEqual(width - 1)
    }),
  )
})

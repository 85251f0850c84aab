import { expect, test } from 'vitest'
import {
  displayWidth,
  keepStylesOnly,
  pad,
  plain,
  plainJson,
  plainLine,
  revealHidden,
  truncate,
  withoutTokens,
} from '../../src/cli/terminal/terminal-text.ts'

test.each([
  ['abc', 3, 'abc'],
  ['abcd', 3, 'ab…'],
  ['abcd', 1, '…'],
  ['abcd', 0, ''],
  ['日本語', 5, '日本…'],
  ['日本語', 4, '日…'],
  ['日本語', 6, '日本語'],
])('truncates %j to %i cells', (line, width, expected) => {
  expect(truncate(line, width)).toBe(expected)
})

test('pads a line on either side, and leaves a longer one unchanged', () => {
  expect(pad('日', 4)).toBe('日  ')
  expect(pad('ab', 4, 'left')).toBe('  ab')
  expect(pad('abcde', 4)).toBe('abcde')
})

test('styles and combining characters occupy no cells', () => {
  expect(displayWidth('\x1b[1mab\x1b[22m')).toBe(2)
  expect(displayWidth('e\u0301')).toBe(1)
})

test('removes escape sequences and control characters, but keeps newlines and tabs [security rule 16]', () => {
  expect(plain('a\r\nb\tc\x1b[31md\x1b]0;title\x07e\x9b2Jf\x00g\u202eh\x1b(Bi')).toBe('a\nb\tcdefghi')
  expect(plainLine('  a\n\tb\x1b[2J  c ')).toBe('a b c')
  expect(keepStylesOnly('\x1b[1ma\x1b[2Jb\x1b[22m\x07')).toBe('\x1b[1mab\x1b[22m')
})

test('shows hidden characters as escapes, but not those inside emoji', () => {
  expect(revealHidden('a\r\nb\t\u200bc\x07\u{e0041}')).toBe('a\nb\t\\u200bc\\u0007\\udb40\\udc41')
  expect(revealHidden('👩‍👧 ❤️')).toBe('👩‍👧 ❤️')
  expect(revealHidden('a\u200db')).toBe('a\\u200db')
})

test('escapes control characters in JSON', () => {
  expect(plainJson({ a: '\x07\x9b\u202e\u2028' })).toBe('{"a":"\\u0007\\u009b\\u202e\\u2028"}')
  expect(plainJson([1], 2)).toBe('[\n  1\n]')
  expect(plainJson(undefined)).toBe('null')
})

test('hides the secret of an API key, and keeps its prefix', () => {
  expect(withoutTokens('key wb_live_abcdef123456_SECRETsecret9, and wb_live_short_x')).toBe(
    'key wb_live_abcdef123456_…, and wb_live_short_x',
  )
})

import { expect, test } from 'vitest'
import {
  contentOf,
  type Editor,
  editorOf,
  emptyEditor,
  insert,
  move,
  moveLine,
  paste,
  pasteLabel,
  remove,
  yank,
} from '../../../src/tui/parts/editor.ts'

/** Returns an editor whose cursor is at the `|` of a text. */
function at(marked: string): Editor {
  return { ...editorOf(marked.replace('|', '')), cursor: marked.indexOf('|') }
}

function show({ text, cursor }: Editor): string {
  return `${text.slice(0, cursor)}|${text.slice(cursor)}`
}

test.each([
  ['ab|c', 'left', 'a|bc'],
  ['|abc', 'left', '|abc'],
  ['ab|c', 'right', 'abc|'],
  ['abc|', 'right', 'abc|'],
  ['a\n|b', 'left', 'a|\nb'],
  ['a|\nb', 'right', 'a\n|b'],
  ['one tw|o', 'wordLeft', 'one |two'],
  ['one, |two', 'wordLeft', '|one, two'],
  ['|one two', 'wordRight', 'one| two'],
  ['one| two', 'wordRight', 'one two|'],
  ['a\nbc|d', 'home', 'a\n|bcd'],
  ['a\n|bcd', 'home', 'a\n|bcd'],
  ['|abc', 'home', '|abc'],
  ['a|bc\nd', 'end', 'abc|\nd'],
  ['a\nb|cd', 'end', 'a\nbcd|'],
] as const)('%j with %s is %j', (before, target, after) => {
  expect(show(move(at(before), target))).toBe(after)
})

test.each([
  ['ab|c', 'left', 'a|c', ''],
  ['ab|c', 'right', 'ab|', ''],
  ['|abc', 'left', '|abc', ''],
  ['one tw|o', 'wordLeft', 'one |o', 'tw'],
  ['|one two', 'wordRight', '| two', 'one'],
  ['a\nbc|d', 'home', 'a\n|d', 'bc'],
  ['a|bc\nd', 'end', 'a|\nd', 'bc'],
  ['abc|', 'end', 'abc|', ''],
] as const)('%j without the text to %s is %j', (before, target, after, deleted) => {
  const editor = remove(at(before), target)
  expect(show(editor)).toBe(after)
  expect(editor.lastDeleted).toBe(deleted)
})

test('yank inserts the last deleted words at the cursor, and single characters are not kept', () => {
  const editor = remove(remove(at('one two|!'), 'wordLeft'), 'right')
  expect(show(yank(editor))).toBe('one two|')
  expect(show(yank(move(yank(editor), 'home')))).toBe('two|one two')
  expect(remove(editor, 'end').lastDeleted).toBe('two')
})

test.each([
  ['abc\nd|ef', -1, 'a|bc\ndef'],
  ['a\nbcd|', -1, 'a|\nbcd'],
  ['ab|c\ndef\ng', 1, 'abc\nde|f\ng'],
  ['abc|\nd\ne', 1, 'abc\nd|\ne'],
  ['abc|\nd', 1, 'abc\nd|'],
  ['ab|c\nd👍', 1, 'abc\nd|👍'],
  ['|abc\n👍', 1, 'abc\n|👍'],
] as const)('%j moved by %i lines is %j', (before, offset, after) => {
  expect(show(moveLine(at(before), offset)!)).toBe(after)
})

test('there is no line above the first and below the last', () => {
  expect(moveLine(at('a|b\nc'), -1)).toBeUndefined()
  expect(moveLine(at('ab\n|c'), 1)).toBeUndefined()
})

test('inserts text at the cursor, with spaces for tabs and without other control characters', () => {
  expect(show(insert(at('a|b'), 'x\ty\x07\r\nz\ue000'))).toBe('ax  y\nz|b')
})

test.each([
  ['a\n'.repeat(3), undefined],
  ['a\n'.repeat(4), '[pasted 5 lines]'],
  ['a'.repeat(400), undefined],
  ['a'.repeat(1_200), '[pasted 1,200 characters]'],
])('a paste of 4 lines or 400 characters is inserted as text, and longer ones as a label', (text, label) => {
  const editor = paste(at('x|y'), text)
  expect(contentOf(editor)).toBe(`x${text}y`)
  expect(editor.cursor).toBe(label ? 2 : 1 + text.length)
  expect(pasteLabel(editor, editor.text[1]!)).toBe(label)
})

test('keeps pastes apart', () => {
  const editor = paste(paste(emptyEditor, 'a'.repeat(401)), 'b'.repeat(401))
  expect(contentOf(editor)).toBe('a'.repeat(401) + 'b'.repeat(401))
  expect(show(editor)).toHaveLength(3)
})

import { describe, expect, test } from 'vitest'
import {
  contentOf,
  type Editor,
  editorOf,
  insert,
  move,
  moveLine,
  paste,
  pasteLabel,
  remove,
} from '../../src/tui/parts/editor.ts'
import { decode, emptyDecoder, flush, type Key } from '../../src/tui/parts/keys.ts'

function keysOf(...chunks: string[]): Key[] {
  let decoder = emptyDecoder
  const all: Key[] = []
  for (const chunk of chunks) {
    const [next, keys] = decode(decoder, chunk)
    decoder = next
    all.push(...keys)
  }
  return [...all, ...flush(decoder)[1]]
}

describe('keys', () => {
  test.each([
    ['\r', 'enter'],
    ['\n', 'newline'],
    ['\x1b\r', 'newline'],
    ['\x1b[13;2u', 'newline'],
    ['\x1b[A', 'up'],
    ['\x1bOB', 'down'],
    ['\x1b[1;5D', 'wordLeft'],
    ['\x1bf', 'wordRight'],
    ['\x7f', 'backspace'],
    ['\x1b\x7f', 'deleteWord'],
    ['\x03', 'cancel'],
    ['\x04', 'endOfInput'],
    ['\x12', 'search'],
    ['\x1b', 'escape'],
  ])('%j is %s', (sent, type) => {
    expect(keysOf(sent)).toEqual([{ type }])
    expect(keysOf(...sent)).toEqual([{ type }])
  })

  test('text, and numbers with alt, are separate keys', () => {
    expect(keysOf('héllo 日本\r')).toEqual([{ type: 'typed', text: 'héllo 日本' }, { type: 'enter' }])
    expect(keysOf('\x1b3')).toEqual([{ type: 'number', number: 3 }])
  })

  test('pasted text is one key, regardless of the division into chunks, and does not submit', () => {
    const sent = '\x1b[200~one\r\ntwo\x03\r\x1b[201~x'
    for (let at = 1; at < sent.length; at++)
      expect(keysOf(sent.slice(0, at), sent.slice(at))).toEqual([
        { type: 'pasted', text: 'one\r\ntwo\x03\r' },
        { type: 'typed', text: 'x' },
      ])
  })

  test('unsupported sequences are ignored', () => {
    expect(keysOf('\x1b[<0;1;1M\x1b[?1;2c\x1b[99~')).toEqual([])
  })
})

describe('the text field', () => {
  const moved = (editor: Editor, ...places: Parameters<typeof move>[1][]) => places.reduce(move, editor)

  test('moves and deletes by grapheme', () => {
    const editor = editorOf('a👩‍👩‍👧e\u0301')
    const back = moved(editor, 'left')
    expect(back.cursor).toBe('a👩‍👩‍👧'.length)
    expect(moved(back, 'left').cursor).toBe(1)
    expect(remove(back, 'left').text).toBe('ae\u0301')
    expect(remove(editor, 'left').text).toBe('a👩‍👩‍👧')
  })

  test('moves and deletes by word and by line', () => {
    const editor = editorOf('one two, three\nfour')
    expect(moved(editor, 'home').cursor).toBe(15)
    expect(remove(moved(editor, 'home', 'left'), 'wordLeft').text).toBe('one two, \nfour')
    expect(moved(editor, 'home', 'left', 'wordLeft', 'wordLeft').cursor).toBe(4)
    expect(moved(moveLine(editor, -1)!, 'wordRight').cursor).toBe(7)
    expect(moveLine(moveLine(editor, -1)!, -1)).toBeUndefined()
    expect(remove(editor, 'home')).toMatchObject({ text: 'one two, three\n', lastDeleted: 'four' })
    expect(moved({ ...editorOf('\nx'), cursor: 0 }, 'home').cursor).toBe(0)
  })

  test('shows a long paste as one character and sends the whole text', () => {
    const long = Array.from({ length: 120 }, (_, at) => `line ${at}`).join('\r\n')
    const editor = insert(paste(editorOf('see '), long), '!')
    expect(editor.text).toHaveLength(6)
    expect(pasteLabel(editor, editor.text[4]!)).toBe('[pasted 120 lines]')
    expect(contentOf(editor)).toBe(`see ${long.replaceAll('\r\n', '\n')}!`)
    expect(contentOf(remove(remove(editor, 'left'), 'left'))).toBe('see ')
    expect(paste(editorOf(''), 'a\nb').text).toBe('a\nb')
  })

  test('removes control characters from pasted text [security rule 16]', () => {
    expect(contentOf(paste(editorOf(''), 'a\x1b]0;x\x07b\u009bc'))).toBe('a]0;xbc')
  })
})

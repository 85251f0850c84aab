import { after, before } from './cells.ts'

/** Text of several lines that a person types. A long paste stands in it as one character. */
export interface Editor {
  readonly text: string
  /** Where the next character goes. */
  readonly cursor: number
  /** What was pasted, by the character that stands for it. */
  readonly pastes: Readonly<Record<string, string>>
  /** What was deleted last. */
  readonly cutOut: string
}

export const emptyEditor: Editor = { text: '', cursor: 0, pastes: {}, cutOut: '' }

/** Longer pastes are shown by their size. */
const pasteLines = 4
const pasteChars = 400
const firstMark = 0xe000
const wordBefore = /[\p{L}\p{M}\p{N}\p{Co}_]*[^\p{L}\p{M}\p{N}\p{Co}_]*$/u
const wordAfter = /^[^\p{L}\p{M}\p{N}\p{Co}_]*[\p{L}\p{M}\p{N}\p{Co}_]*/u
const marks = /[\ue000-\uf8ff]/g

/** A text, with the cursor behind it. */
export function editorOf(text: string): Editor {
  return insert(emptyEditor, text)
}

/** Insert a text, without what a terminal must not be shown. */
export function insert(editor: Editor, typed: string): Editor {
  const { text, cursor } = editor
  const clean = harmless(typed)
  return {
    ...editor,
    text: text.slice(0, cursor) + clean + text.slice(cursor),
    cursor: cursor + clean.length,
  }
}

/** Insert what was pasted; when it is long, as one character. */
export function paste(editor: Editor, pasted: string): Editor {
  const clean = harmless(pasted)
  if (clean.split('\n').length <= pasteLines && clean.length <= pasteChars) return insert(editor, clean)
  const mark = String.fromCharCode(firstMark + Object.keys(editor.pastes).length)
  const { text, cursor } = editor
  return {
    ...editor,
    text: text.slice(0, cursor) + mark + text.slice(cursor),
    cursor: cursor + 1,
    pastes: { ...editor.pastes, [mark]: clean },
  }
}

/** What a terminal may be shown, and what no mark of ours is taken for. */
function harmless(text: string): string {
  return text
    .replace(/\r\n?/g, '\n')
    .replaceAll('\t', '  ')
    .replace(marks, '')
    .replace(/[\x00-\x09\x0b-\x1f\x7f-\x9f]/g, '')
}

/** The whole text, with everything that was pasted. */
export function contentOf({ text, pastes }: Editor): string {
  return text.replace(marks, mark => pastes[mark] ?? '')
}

/** What stands for a mark on the screen; undefined for every other character. */
export function pasteLabel({ pastes }: Editor, character: string): string | undefined {
  const pasted = pastes[character]
  if (pasted === undefined) return undefined
  const lines = pasted.split('\n').length
  return lines > 1
    ? `[pasted ${lines} lines]`
    : `[pasted ${pasted.length.toLocaleString('en-US')} characters]`
}

function lineStart(text: string, index: number): number {
  return index === 0 ? 0 : text.lastIndexOf('\n', index - 1) + 1
}

type Place = 'left' | 'right' | 'wordLeft' | 'wordRight' | 'home' | 'end'

/** Where a place is from the cursor. */
function placeOf({ text, cursor }: Editor, place: Place): number {
  switch (place) {
    case 'left':
      return before(text, cursor)
    case 'right':
      return after(text, cursor)
    case 'wordLeft':
      return cursor - (wordBefore.exec(text.slice(0, cursor))?.[0].length ?? 0)
    case 'wordRight':
      return cursor + (wordAfter.exec(text.slice(cursor))?.[0].length ?? 0)
    case 'home':
      return lineStart(text, cursor)
    case 'end': {
      const end = text.indexOf('\n', cursor)
      return end < 0 ? text.length : end
    }
  }
}

/** Put the cursor to a place. */
export function move(editor: Editor, place: Place): Editor {
  return { ...editor, cursor: placeOf(editor, place) }
}

/** Delete from the cursor to a place. */
export function remove(editor: Editor, place: Place): Editor {
  const { text, cursor } = editor
  const target = placeOf(editor, place)
  const [from, to] = target < cursor ? [target, cursor] : [cursor, target]
  const gone = text.slice(from, to)
  const isWord = place !== 'left' && place !== 'right'
  return {
    ...editor,
    text: text.slice(0, from) + text.slice(to),
    cursor: from,
    cutOut: isWord && gone !== '' ? gone : editor.cutOut,
  }
}

/** Put back what was deleted last. */
export function yank(editor: Editor): Editor {
  const { text, cursor, cutOut } = editor
  return {
    ...editor,
    text: text.slice(0, cursor) + cutOut + text.slice(cursor),
    cursor: cursor + cutOut.length,
  }
}

/** The cursor a line up or down; undefined on the first or the last one. */
export function moveLine(editor: Editor, by: -1 | 1): Editor | undefined {
  const { text, cursor } = editor
  const start = lineStart(text, cursor)
  const column = cursor - start
  if (by < 0) {
    if (start === 0) return undefined
    const above = lineStart(text, start - 1)
    return { ...editor, cursor: whole(text, Math.min(above + column, start - 1)) }
  }
  const end = text.indexOf('\n', cursor)
  if (end < 0) return undefined
  const next = text.indexOf('\n', end + 1)
  return { ...editor, cursor: whole(text, Math.min(end + 1 + column, next < 0 ? text.length : next)) }
}

/** The nearest index that is within no character. */
function whole(text: string, index: number): number {
  const start = before(text, index)
  return index === 0 || after(text, start) === index ? index : start
}

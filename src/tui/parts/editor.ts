import { characterAfter, characterBefore } from './graphemes.ts'

/** Text with a cursor. A long paste is represented by one private-use character. */
export interface Editor {
  readonly text: string
  /** Index at which text is inserted. */
  readonly cursor: number
  /** Pasted texts by the character that represents them. */
  readonly pastes: Readonly<Record<string, string>>
  /** Last deleted text, for {@link yank}. Single characters that were deleted are not included. */
  readonly lastDeleted: string
}

export const emptyEditor: Editor = { text: '', cursor: 0, pastes: {}, lastDeleted: '' }

/** Longer pastes are represented by one character, which is shown as a label with their size. */
const PASTE_LINES_MAX = 4
const PASTE_CHARS_MAX = 400
const firstPasteMark = 0xe000
const wordBefore = /[\p{L}\p{M}\p{N}\p{Co}_]*[^\p{L}\p{M}\p{N}\p{Co}_]*$/u
const wordAfter = /^[^\p{L}\p{M}\p{N}\p{Co}_]*[\p{L}\p{M}\p{N}\p{Co}_]*/u
const pasteMarkPattern = /[\ue000-\uf8ff]/g

/** Returns an editor that contains the text, with the cursor at its end. */
export function editorOf(text: string): Editor {
  return insert(emptyEditor, text)
}

/** Inserts text at the cursor, without control characters. */
export function insert(editor: Editor, newText: string): Editor {
  const { text, cursor } = editor
  const cleanText = cleanInput(newText)
  return {
    ...editor,
    text: text.slice(0, cursor) + cleanText + text.slice(cursor),
    cursor: cursor + cleanText.length,
  }
}

/** Inserts pasted text. A long paste is inserted as one character that represents it. */
export function paste(editor: Editor, pastedText: string): Editor {
  const cleanText = cleanInput(pastedText)
  if (cleanText.split('\n').length <= PASTE_LINES_MAX && cleanText.length <= PASTE_CHARS_MAX)
    return insert(editor, cleanText)
  const mark = String.fromCharCode(firstPasteMark + Object.keys(editor.pastes).length)
  const { text, cursor } = editor
  return {
    ...editor,
    text: text.slice(0, cursor) + mark + text.slice(cursor),
    cursor: cursor + 1,
    pastes: { ...editor.pastes, [mark]: cleanText },
  }
}

/** Removes control characters, and private-use characters, which represent pastes. */
function cleanInput(text: string): string {
  return text
    .replace(/\r\n?/g, '\n')
    .replaceAll('\t', '  ')
    .replace(pasteMarkPattern, '')
    .replace(/[\x00-\x09\x0b-\x1f\x7f-\x9f]/g, '')
}

/** Returns the whole text, with all pastes. */
export function contentOf({ text, pastes }: Editor): string {
  return text.replace(pasteMarkPattern, mark => pastes[mark] ?? '')
}

/** Returns the label of a paste; undefined for other characters. */
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

type CursorTarget = 'left' | 'right' | 'wordLeft' | 'wordRight' | 'home' | 'end'

/** Returns the index of the cursor after a movement. */
function targetIndex({ text, cursor }: Editor, target: CursorTarget): number {
  switch (target) {
    case 'left':
      return characterBefore(text, cursor)
    case 'right':
      return characterAfter(text, cursor)
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

/** Moves the cursor. */
export function move(editor: Editor, target: CursorTarget): Editor {
  return { ...editor, cursor: targetIndex(editor, target) }
}

/** Deletes the text between the cursor and a target. */
export function remove(editor: Editor, target: CursorTarget): Editor {
  const { text, cursor } = editor
  const index = targetIndex(editor, target)
  const [from, to] = index < cursor ? [index, cursor] : [cursor, index]
  const deleted = text.slice(from, to)
  const isWord = target !== 'left' && target !== 'right'
  return {
    ...editor,
    text: text.slice(0, from) + text.slice(to),
    cursor: from,
    lastDeleted: isWord && deleted !== '' ? deleted : editor.lastDeleted,
  }
}

/** Inserts the text that was deleted last. */
export function yank(editor: Editor): Editor {
  const { text, cursor, lastDeleted } = editor
  return {
    ...editor,
    text: text.slice(0, cursor) + lastDeleted + text.slice(cursor),
    cursor: cursor + lastDeleted.length,
  }
}

/** Moves the cursor up or down by one line. Returns undefined if there is no such line. */
export function moveLine(editor: Editor, offset: -1 | 1): Editor | undefined {
  const { text, cursor } = editor
  const start = lineStart(text, cursor)
  const column = cursor - start
  if (offset < 0) {
    if (start === 0) return undefined
    const previousStart = lineStart(text, start - 1)
    return { ...editor, cursor: characterStart(text, Math.min(previousStart + column, start - 1)) }
  }
  const end = text.indexOf('\n', cursor)
  if (end < 0) return undefined
  const nextEnd = text.indexOf('\n', end + 1)
  return {
    ...editor,
    cursor: characterStart(text, Math.min(end + 1 + column, nextEnd < 0 ? text.length : nextEnd)),
  }
}

/** Returns the start of the character at an index. */
function characterStart(text: string, index: number): number {
  const start = characterBefore(text, index)
  return index === 0 || characterAfter(text, start) === index ? index : start
}

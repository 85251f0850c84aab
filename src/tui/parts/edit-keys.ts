import { type Editor, insert, move, remove, yank } from './editor.ts'
import type { Key } from './keys.ts'

/** Applies a key to the text of a field. Returns undefined for a paste, and if the key does not edit text. */
export function applyKey(editor: Editor, key: Key): Editor | undefined {
  switch (key.type) {
    case 'typed':
      return insert(editor, key.text)
    case 'left':
    case 'right':
    case 'wordLeft':
    case 'wordRight':
    case 'home':
    case 'end':
      return move(editor, key.type)
    case 'backspace':
      return remove(editor, 'left')
    case 'delete':
    case 'endOfInput':
      return remove(editor, 'right')
    case 'deleteWord':
      return remove(editor, 'wordLeft')
    case 'deleteWordAfter':
      return remove(editor, 'wordRight')
    case 'deleteToStart':
      return remove(editor, 'home')
    case 'deleteToEnd':
      return remove(editor, 'end')
    case 'yank':
      return yank(editor)
    default:
      return undefined
  }
}

import { applyKey } from '../parts/edit-keys.ts'
import { type Editor, insert } from '../parts/editor.ts'
import type { Key } from '../parts/keys.ts'

/** Maximum length of a paste; longer pastes are truncated. */
const PASTE_CHARS_MAX = 10_000

/** Applies a key to a single-line field. Returns undefined if the key does not edit text. */
export function applyKeyInLine(editor: Editor, key: Key): Editor | undefined {
  if (key.type === 'pasted') return insert(editor, joinLines(key.text.slice(0, PASTE_CHARS_MAX)))
  return applyKey(editor, key)
}

/** Replaces each sequence of white space with a single space. */
export function joinLines(text: string): string {
  return text.replace(/\s+/g, ' ')
}

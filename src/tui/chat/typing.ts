import { edited } from '../parts/editing.ts'
import {
  contentOf,
  type Editor,
  editorOf,
  emptyEditor,
  insert,
  moveLine,
  paste,
  remove,
} from '../parts/editor.ts'
import type { Key } from '../parts/keys.ts'
import { isCommand, obey } from './commands.ts'
import { completed } from './completion.ts'
import { awayNotice, fileNotice, send, waitNotice } from './turn.ts'
import type { Input, State, Step } from './types.ts'

export const emptyInput: Input = {
  editor: emptyEditor,
  past: [],
  recalled: undefined,
  search: undefined,
  completion: undefined,
  replaces: undefined,
}

/** So many lines that were sent are remembered. */
const pastMax = 500

/** A key in the field. */
export function type(state: State, key: Key): Step {
  const { input } = state
  if (input.search) return searching(state, key)
  if (key.type === 'tab' || key.type === 'backTab')
    return [{ ...state, input: completed(state, key.type) }, []]
  const quiet: State = { ...state, input: { ...input, completion: undefined } }
  switch (key.type) {
    case 'enter':
      return entered(quiet)
    case 'up':
    case 'down':
      return [{ ...quiet, input: vertical(quiet.input, key.type === 'up' ? -1 : 1) }, []]
    case 'search':
      return [
        {
          ...quiet,
          input: { ...quiet.input, search: { query: '', at: input.past.length, draft: input.editor } },
        },
        [],
      ]
    default: {
      const editor = editedText(input.editor, key)
      return [editor ? { ...quiet, input: { ...quiet.input, editor } } : quiet, []]
    }
  }
}

/** What a key makes of the field; undefined where it is none for it. */
function editedText(editor: Editor, key: Key): Editor | undefined {
  if (key.type === 'pasted') return paste(editor, key.text)
  return key.type === 'newline' ? insert(editor, '\n') : edited(editor, key)
}

function entered(state: State): Step {
  const { editor } = state.input
  if (editor.text[editor.cursor - 1] === '\\' && editor.cursor === editor.text.length) {
    const broken = insert(remove(editor, 'left'), '\n')
    return [{ ...state, input: { ...state.input, editor: broken } }, []]
  }
  return submit(state, contentOf(editor))
}

/** Send what stands there, or do what it says. */
export function submit(state: State, content: string): Step {
  if (content.trim() === '') return [state, []]
  const { input, images, llmServiceId, temperature } = state
  const isOrder = isCommand(content)
  if (!isOrder && state.turn) return [{ ...state, notice: waitNotice }, []]
  if (!isOrder && state.away) return [{ ...state, notice: awayNotice }, []]
  if (!isOrder && state.fileTask) return [{ ...state, notice: fileNotice }, []]
  const past = input.past.at(-1) === content ? input.past : [...input.past, content].slice(-pastMax)
  const cleared: State = {
    ...state,
    notice: '',
    input: { ...emptyInput, past, replaces: isOrder ? input.replaces : undefined },
  }
  if (isOrder) return obey(cleared, content)
  return send(
    { ...cleared, images: [] },
    {
      content: content.replace(/^\/\//, '/').trim(),
      images,
      replaces: input.replaces,
      llmServiceId,
      temperature,
    },
  )
}

/** A line up or down in the field; above the first one, what was sent before. */
function vertical(input: Input, by: -1 | 1): Input {
  const moved = moveLine(input.editor, by)
  if (moved) return { ...input, editor: moved }
  const { past, recalled } = input
  const at = (recalled?.at ?? past.length) + by
  if (at < 0 || at > past.length) return input
  const draft = recalled?.draft ?? input.editor
  if (at === past.length) return { ...input, editor: draft, recalled: undefined }
  return { ...input, editor: editorOf(past[at]!), recalled: { at, draft } }
}

/** Where a line that was sent holds the words; from the newest that is older than `from`. */
function foundAt(past: readonly string[], query: string, from: number): number {
  return past.findLastIndex((text, at) => at < from && text.toLowerCase().includes(query.toLowerCase()))
}

function searching(state: State, key: Key): Step {
  const { input } = state
  const { query, at, draft } = input.search!
  const look = (words: string, from: number): Step => {
    const found = words === '' ? -1 : foundAt(input.past, words, from)
    const editor = found < 0 ? input.editor : editorOf(input.past[found]!)
    const search = { query: words, at: found < 0 ? at : found, draft }
    return [{ ...state, input: { ...input, editor, search } }, []]
  }
  const end = (editor: Editor): State => ({ ...state, input: { ...input, editor, search: undefined } })
  switch (key.type) {
    case 'typed':
      return look(query + key.text, input.past.length)
    case 'backspace':
      return look(query.slice(0, -1), input.past.length)
    case 'search':
      return look(query, at)
    case 'escape':
      return [end(draft), []]
    case 'enter':
      return entered(end(input.editor))
    default:
      return type(end(input.editor), key)
  }
}

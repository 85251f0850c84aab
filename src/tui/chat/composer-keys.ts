import { applyKey } from '../parts/edit-keys.ts'
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
import { isCommand, runCommand } from './commands.ts'
import { complete } from './completion.ts'
import { outageNotice, sendMessage, waitForFileNotice } from './turn.ts'
import type { ChatState, ChatStep, ComposerState } from './types.ts'

export const emptyInput: ComposerState = {
  editor: emptyEditor,
  past: [],
  recalled: undefined,
  search: undefined,
  completion: undefined,
  replaces: undefined,
}

/** Number of sent lines that can be recalled. */
const SENT_LINES_MAX = 500

/** Handles a key in the composer. */
export function pressComposerKey(state: ChatState, key: Key): ChatStep {
  const { input } = state
  if (input.search) return pressSearchKey(state, key)
  if (key.type === 'tab' || key.type === 'backTab')
    return [{ ...state, input: complete(state, key.type) }, []]
  const quiet: ChatState = { ...state, input: { ...input, completion: undefined } }
  switch (key.type) {
    case 'enter':
      return pressEnter(quiet)
    case 'up':
    case 'down':
      return [moveVertically(quiet, key.type === 'up' ? -1 : 1), []]
    case 'search':
      return [
        {
          ...quiet,
          input: { ...quiet.input, search: { query: '', at: input.past.length, draft: input.editor } },
        },
        [],
      ]
    default: {
      const editor = editWithKey(input.editor, key)
      return [editor ? { ...quiet, input: { ...quiet.input, editor } } : quiet, []]
    }
  }
}

/** Applies a key to the text; undefined if it does not edit text. */
function editWithKey(editor: Editor, key: Key): Editor | undefined {
  if (key.type === 'pasted') return paste(editor, key.text)
  return key.type === 'newline' ? insert(editor, '\n') : applyKey(editor, key)
}

function pressEnter(state: ChatState): ChatStep {
  const { editor } = state.input
  if (editor.text[editor.cursor - 1] === '\\' && editor.cursor === editor.text.length) {
    const broken = insert(remove(editor, 'left'), '\n')
    return [{ ...state, input: { ...state.input, editor: broken } }, []]
  }
  return submit(state, contentOf(editor))
}

/** Sends a message, or queues it during an answer, or runs a command. */
export function submit(state: ChatState, content: string): ChatStep {
  if (content.trim() === '') return [state, []]
  const { input, images, llmServiceId, temperature } = state
  const isLine = isCommand(content)
  if (!isLine && state.outage) return [{ ...state, notice: outageNotice }, []]
  if (!isLine && state.fileTask) return [{ ...state, notice: waitForFileNotice }, []]
  const past = input.past.at(-1) === content ? input.past : [...input.past, content].slice(-SENT_LINES_MAX)
  const cleared: ChatState = {
    ...state,
    notice: '',
    input: { ...emptyInput, past, replaces: isLine ? input.replaces : undefined },
  }
  if (isLine) return runCommand(cleared, content)
  const message = {
    content: content.replace(/^\/\//, '/').trim(),
    images,
    replaces: input.replaces,
    llmServiceId,
    temperature,
  }
  const next = { ...cleared, images: [] }
  return state.turn ? [{ ...next, queue: [...state.queue, message] }, []] : sendMessage(next, message)
}

/** Moves the cursor up or down. Above the first line are the queued message in an empty field, then sent lines. */
function moveVertically(state: ChatState, by: -1 | 1): ChatState {
  const queued = state.queue.at(-1)
  if (by < 0 && queued && state.input.editor.text === '') {
    const input = { ...state.input, editor: editorOf(queued.content) }
    return { ...state, queue: state.queue.slice(0, -1), images: [...(queued.images ?? [])], input }
  }
  return { ...state, input: recall(state.input, by) }
}

function recall(input: ComposerState, by: -1 | 1): ComposerState {
  const moved = moveLine(input.editor, by)
  if (moved) return { ...input, editor: moved }
  const { past, recalled } = input
  const at = (recalled?.at ?? past.length) + by
  if (at < 0 || at > past.length) return input
  const draft = recalled?.draft ?? input.editor
  if (at === past.length) return { ...input, editor: draft, recalled: undefined }
  return { ...input, editor: editorOf(past[at]!), recalled: { at, draft } }
}

/** Returns the index of the newest sent line before `from` that contains the words; -1 without a match. */
function findSentLine(past: readonly string[], query: string, from: number): number {
  return past.findLastIndex((text, at) => at < from && text.toLowerCase().includes(query.toLowerCase()))
}

function pressSearchKey(state: ChatState, key: Key): ChatStep {
  const { input } = state
  const { query, at, draft } = input.search!
  const look = (words: string, from: number): ChatStep => {
    const found = words === '' ? -1 : findSentLine(input.past, words, from)
    const editor = found < 0 ? input.editor : editorOf(input.past[found]!)
    const search = { query: words, at: found < 0 ? at : found, draft }
    return [{ ...state, input: { ...input, editor, search } }, []]
  }
  const end = (editor: Editor): ChatState => ({ ...state, input: { ...input, editor, search: undefined } })
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
      return pressEnter(end(input.editor))
    default:
      return pressComposerKey(end(input.editor), key)
  }
}

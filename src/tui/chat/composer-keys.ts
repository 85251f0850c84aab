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
  sentLines: [],
  recalled: undefined,
  search: undefined,
  completion: undefined,
  replaces: undefined,
}

/** Maximum number of sent lines that can be recalled. */
const SENT_LINES_MAX = 500

/** Handles a key in the composer. */
export function pressComposerKey(state: ChatState, key: Key): ChatStep {
  const { input } = state
  if (input.search) return pressSearchKey(state, key)
  if (key.type === 'tab' || key.type === 'backTab')
    return [{ ...state, input: complete(state, key.type) }, []]
  const withoutCompletion: ChatState = { ...state, input: { ...input, completion: undefined } }
  switch (key.type) {
    case 'enter':
      return pressEnter(withoutCompletion)
    case 'up':
    case 'down':
      return [moveVertically(withoutCompletion, key.type === 'up' ? -1 : 1), []]
    case 'search':
      return [
        {
          ...withoutCompletion,
          input: {
            ...withoutCompletion.input,
            search: { query: '', index: input.sentLines.length, draft: input.editor },
          },
        },
        [],
      ]
    default: {
      const editor = editWithKey(input.editor, key)
      return [
        editor ? { ...withoutCompletion, input: { ...withoutCompletion.input, editor } } : withoutCompletion,
        [],
      ]
    }
  }
}

/** Applies a key to the text. Returns undefined if the key does not edit text. */
function editWithKey(editor: Editor, key: Key): Editor | undefined {
  if (key.type === 'pasted') return paste(editor, key.text)
  return key.type === 'newline' ? insert(editor, '\n') : applyKey(editor, key)
}

function pressEnter(state: ChatState): ChatStep {
  const { editor } = state.input
  if (editor.text[editor.cursor - 1] === '\\' && editor.cursor === editor.text.length) {
    const withNewline = insert(remove(editor, 'left'), '\n')
    return [{ ...state, input: { ...state.input, editor: withNewline } }, []]
  }
  return submit(state, contentOf(editor))
}

/** Runs a command, or sends a message. During an answer, messages are queued. */
export function submit(state: ChatState, content: string): ChatStep {
  if (content.trim() === '') return [state, []]
  const { input, images, llmServiceId, temperature } = state
  const isCommandLine = isCommand(content)
  if (!isCommandLine && state.outage) return [{ ...state, notice: outageNotice }, []]
  if (!isCommandLine && state.fileTask) return [{ ...state, notice: waitForFileNotice }, []]
  const sentLines =
    input.sentLines.at(-1) === content
      ? input.sentLines
      : [...input.sentLines, content].slice(-SENT_LINES_MAX)
  const cleared: ChatState = {
    ...state,
    notice: '',
    input: { ...emptyInput, sentLines, replaces: isCommandLine ? input.replaces : undefined },
  }
  if (isCommandLine) return runCommand(cleared, content)
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

/**
 * Moves the cursor up or down. In an empty field, Up removes the last message from the queue to edit it. Up on the
 * first line and Down on the last line recall sent lines.
 */
function moveVertically(state: ChatState, offset: -1 | 1): ChatState {
  const lastQueued = state.queue.at(-1)
  if (offset < 0 && lastQueued && state.input.editor.text === '') {
    const input = { ...state.input, editor: editorOf(lastQueued.content) }
    return { ...state, queue: state.queue.slice(0, -1), images: [...(lastQueued.images ?? [])], input }
  }
  return { ...state, input: recall(state.input, offset) }
}

function recall(input: ComposerState, offset: -1 | 1): ComposerState {
  const movedEditor = moveLine(input.editor, offset)
  if (movedEditor) return { ...input, editor: movedEditor }
  const { sentLines, recalled } = input
  const index = (recalled?.index ?? sentLines.length) + offset
  if (index < 0 || index > sentLines.length) return input
  const draft = recalled?.draft ?? input.editor
  if (index === sentLines.length) return { ...input, editor: draft, recalled: undefined }
  return { ...input, editor: editorOf(sentLines[index]!), recalled: { index, draft } }
}

/** Returns the index of the newest sent line before `from` that contains the query; -1 without a match. */
function findSentLine(sentLines: readonly string[], query: string, from: number): number {
  return sentLines.findLastIndex(
    (text, index) => index < from && text.toLowerCase().includes(query.toLowerCase()),
  )
}

function pressSearchKey(state: ChatState, key: Key): ChatStep {
  const { input } = state
  const { query, index, draft } = input.search!
  const searchSentLines = (newQuery: string, from: number): ChatStep => {
    const matchIndex = newQuery === '' ? -1 : findSentLine(input.sentLines, newQuery, from)
    const editor = matchIndex < 0 ? input.editor : editorOf(input.sentLines[matchIndex]!)
    const search = { query: newQuery, index: matchIndex < 0 ? index : matchIndex, draft }
    return [{ ...state, input: { ...input, editor, search } }, []]
  }
  const endSearch = (editor: Editor): ChatState => ({
    ...state,
    input: { ...input, editor, search: undefined },
  })
  switch (key.type) {
    case 'typed':
      return searchSentLines(query + key.text, input.sentLines.length)
    case 'backspace':
      return searchSentLines(query.slice(0, -1), input.sentLines.length)
    case 'search':
      return searchSentLines(query, index)
    case 'escape':
      return [endSearch(draft), []]
    case 'enter':
      return pressEnter(endSearch(input.editor))
    default:
      return pressComposerKey(endSearch(input.editor), key)
  }
}

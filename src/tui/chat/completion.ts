import { editorOf } from '../parts/editor.ts'
import { commands } from './commands.ts'
import { andThen } from './turn.ts'
import type { ChatState, ChatStep, Input, Named } from './types.ts'

/** Completions of the end of the text. */
interface Offer {
  /** Text before the word. */
  readonly before: string
  readonly words: readonly string[]
  /** Text after a word, if there is only one. */
  readonly after: string
}

const nothing: Offer = { before: '', words: [], after: '' }

/** Returns the words that complete a command or its argument. */
export function offered({ input, names }: Pick<ChatState, 'input' | 'names'>): Offer {
  const { text, cursor } = input.editor
  if (cursor !== text.length) return nothing
  if (/^\/[a-z]*$/.test(text)) {
    const words = commands.map(({ name }) => `/${name}`).filter(name => name.startsWith(text))
    return { before: '', words, after: ' ' }
  }
  const argument = argumentOf(text)
  if (!argument) return nothing
  const { of, before, begun } = argument
  const words = (names[of] ?? []).filter(name => name.toLowerCase().startsWith(begun.toLowerCase()))
  return words.length === 1 && words[0] === begun ? nothing : { before, words, after: '' }
}

/** Splits a line that names a model or knowledge bases before the name that is being typed. */
function argumentOf(text: string): { of: Named; before: string; begun: string } | undefined {
  const [, before, of, begun] =
    /^(\/(model) +)(.*)$/.exec(text) ?? /^(\/(kb) +(?:.*, *)?)([^,]*)$/.exec(text) ?? []
  return before === undefined ? undefined : { of: of as Named, before, begun: begun! }
}

/** Loads the names that complete a line, once. */
export function loadNames(done: ChatStep): ChatStep {
  return andThen(done, state => {
    const of = argumentOf(state.input.editor.text)?.of
    if (!of || state.names[of]) return [state, []]
    return [{ ...state, names: { ...state.names, [of]: [] } }, [{ type: 'loadNames', of }]]
  })
}

/** Completes with the only word that fits, else with the next one. */
export function complete(state: ChatState, key: 'tab' | 'backTab'): Input {
  const { input } = state
  const { completion } = input
  const { before, words, after } = completion?.offer ?? offered(state)
  if (words.length === 0) return input
  if (words.length === 1)
    return { ...input, editor: editorOf(before + words[0]! + after), completion: undefined }
  const step = key === 'tab' ? 1 : -1
  const from = completion?.at ?? (key === 'tab' ? -1 : words.length)
  const at = (from + step + words.length) % words.length
  return {
    ...input,
    editor: editorOf(before + words[at]!),
    completion: { offer: { before, words, after }, at },
  }
}

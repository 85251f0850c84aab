import { editorOf } from '../parts/editor.ts'
import { commands } from './commands.ts'
import { chainStep } from './turn.ts'
import type { ChatState, ChatStep, ComposerState, NamedPurpose } from './types.ts'

/** Completions of the end of the text. */
interface Completions {
  /** Text before the word. */
  readonly before: string
  readonly words: readonly string[]
  /** Text after a word, if there is only one. */
  readonly after: string
}

const noCompletions: Completions = { before: '', words: [], after: '' }

/** Returns the words that complete a command or its argument. */
export function findCompletions({ input, names }: Pick<ChatState, 'input' | 'names'>): Completions {
  const { text, cursor } = input.editor
  if (cursor !== text.length) return noCompletions
  if (/^\/[a-z]*$/.test(text)) {
    const words = commands.map(({ name }) => `/${name}`).filter(name => name.startsWith(text))
    return { before: '', words, after: ' ' }
  }
  const argument = parseArgument(text)
  if (!argument) return noCompletions
  const { of, before, begun } = argument
  const words = (names[of] ?? []).filter(name => name.toLowerCase().startsWith(begun.toLowerCase()))
  return words.length === 1 && words[0] === begun ? noCompletions : { before, words, after: '' }
}

/** Splits a line that names a model or knowledge bases before the name that is being typed. */
function parseArgument(text: string): { of: NamedPurpose; before: string; begun: string } | undefined {
  const [, before, of, begun] =
    /^(\/(model) +)(.*)$/.exec(text) ?? /^(\/(kb) +(?:.*, *)?)([^,]*)$/.exec(text) ?? []
  return before === undefined ? undefined : { of: of as NamedPurpose, before, begun: begun! }
}

/** Loads the names that complete a line, once. */
export function loadNames(done: ChatStep): ChatStep {
  return chainStep(done, state => {
    const of = parseArgument(state.input.editor.text)?.of
    if (!of || state.names[of]) return [state, []]
    return [{ ...state, names: { ...state.names, [of]: [] } }, [{ type: 'loadNames', of }]]
  })
}

/** Completes with the only word that fits, else with the next one. */
export function complete(state: ChatState, key: 'tab' | 'backTab'): ComposerState {
  const { input } = state
  const { completion } = input
  const { before, words, after } = completion?.offer ?? findCompletions(state)
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

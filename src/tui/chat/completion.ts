import { editorOf } from '../parts/editor.ts'
import { commands } from './commands.ts'
import { chainStep } from './turn.ts'
import type { ChatState, ChatStep, ComposerState, NamedPurpose } from './types.ts'

/** Completions of the last word in the composer. */
interface Completions {
  /** Text before the word. */
  readonly before: string
  readonly words: readonly string[]
  /** Text to append if there is only one word. */
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
  const { purpose, before, typedName } = argument
  const words = (names[purpose] ?? []).filter(name => name.toLowerCase().startsWith(typedName.toLowerCase()))
  return words.length === 1 && words[0] === typedName ? noCompletions : { before, words, after: '' }
}

/** Splits a `/model` or `/kb` line into the name that is being typed and the text before it. */
function parseArgument(
  text: string,
): { purpose: NamedPurpose; before: string; typedName: string } | undefined {
  const [, before, purpose, typedName] =
    /^(\/(model) +)(.*)$/.exec(text) ?? /^(\/(kb) +(?:.*, *)?)([^,]*)$/.exec(text) ?? []
  return before === undefined
    ? undefined
    : { purpose: purpose as NamedPurpose, before, typedName: typedName! }
}

/** Loads the names that can complete the line, unless they are already loaded. */
export function loadNames(previous: ChatStep): ChatStep {
  return chainStep(previous, state => {
    const purpose = parseArgument(state.input.editor.text)?.purpose
    if (!purpose || state.names[purpose]) return [state, []]
    return [{ ...state, names: { ...state.names, [purpose]: [] } }, [{ type: 'loadNames', purpose }]]
  })
}

/** Completes with the only matching word, or cycles through several. */
export function complete(state: ChatState, key: 'tab' | 'backTab'): ComposerState {
  const { input } = state
  const { completion } = input
  const { before, words, after } = completion?.candidates ?? findCompletions(state)
  if (words.length === 0) return input
  if (words.length === 1)
    return { ...input, editor: editorOf(before + words[0]! + after), completion: undefined }
  const step = key === 'tab' ? 1 : -1
  const previousIndex = completion?.index ?? (key === 'tab' ? -1 : words.length)
  const index = (previousIndex + step + words.length) % words.length
  return {
    ...input,
    editor: editorOf(before + words[index]!),
    completion: { candidates: { before, words, after }, index },
  }
}

import { editorOf } from '../parts/editor.ts'
import { commands } from './commands.ts'
import { joined } from './turn.ts'
import type { Input, Named, State, Step } from './types.ts'

/** What the end of the field may become. */
interface Offer {
  /** Stands before the word. */
  readonly before: string
  readonly words: readonly string[]
  /** Follows a word that is the only one. */
  readonly after: string
}

const nothing: Offer = { before: '', words: [], after: '' }

/** Words that a command, or what it takes, may be completed with. */
export function offered({ input, names }: Pick<State, 'input' | 'names'>): Offer {
  const { text, cursor } = input.editor
  if (cursor !== text.length) return nothing
  if (/^\/[a-z]*$/.test(text)) {
    const words = commands.map(({ name }) => `/${name}`).filter(name => name.startsWith(text))
    return { before: '', words, after: ' ' }
  }
  const taken = takenBy(text)
  if (!taken) return nothing
  const { of, before, begun } = taken
  const words = (names[of] ?? []).filter(name => name.toLowerCase().startsWith(begun.toLowerCase()))
  return words.length === 1 && words[0] === begun ? nothing : { before, words, after: '' }
}

/** A line that names a model or knowledge bases, up to the name that is being typed. */
function takenBy(text: string): { of: Named; before: string; begun: string } | undefined {
  const [, before, of, begun] =
    /^(\/(model) +)(.*)$/.exec(text) ?? /^(\/(kb) +(?:.*, *)?)([^,]*)$/.exec(text) ?? []
  return before === undefined ? undefined : { of: of as Named, before, begun: begun! }
}

/** Ask once for the names that a line will want. */
export function withNames(done: Step): Step {
  return joined(done, state => {
    const of = takenBy(state.input.editor.text)?.of
    if (!of || state.names[of]) return [state, []]
    return [{ ...state, names: { ...state.names, [of]: [] } }, [{ type: 'loadNames', of }]]
  })
}

/** A tab: the one word that fits, else the next of them. */
export function completed(state: State, key: 'tab' | 'backTab'): Input {
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

import { Interrupted } from '../errors.ts'
import type { Io } from '../io.ts'
import { plainLine } from './terminal-text.ts'
import { unquotePath } from './unquote-path.ts'

/** What a question needs of the input and output. */
export type Prompts = Pick<Io, 'stdin' | 'stderr'>

/** Questions to a person, on stderr, as stdout is for the result. The library is loaded with the first one. */
async function prompts() {
  return import('@inquirer/prompts')
}

function context({ stdin, stderr }: Prompts, signal: AbortSignal) {
  return { input: stdin, output: stderr, signal }
}

/** What the library throws at a Ctrl-C that is typed, and where the signal of a question aborts. */
const unanswered = new Set(['ExitPromptError', 'AbortPromptError'])

/** @throws Interrupted when the person presses Ctrl-C instead, or the process is asked to end */
async function answered<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked
  } catch (error) {
    if (error instanceof Error && unanswered.has(error.name)) throw new Interrupted()
    throw error
  }
}

export async function choose(
  io: Prompts,
  question: string,
  choices: readonly { id: string; name: string }[],
  signal: AbortSignal,
): Promise<string> {
  const { select } = await prompts()
  const offered = choices.map(({ id, name }) => ({ value: id, name: plainLine(name) }))
  return answered(select({ message: question, choices: offered }, context(io, signal)))
}

/** Returns a line of text without the blanks around it; an empty one is asked for again. */
export async function ask(io: Prompts, question: string, signal: AbortSignal): Promise<string> {
  const { input } = await prompts()
  const validate = (text: string) => text.trim() !== '' || 'Type an answer, or press Ctrl-C to cancel.'
  const text = await answered(input({ message: question, validate }, context(io, signal)))
  return text.trim()
}

/** Returns the path of a file or folder, for example `~/notes`. @see unquotePath */
export async function askPath(
  io: Prompts & Pick<Io, 'env'>,
  question: string,
  signal: AbortSignal,
): Promise<string> {
  return unquotePath(io.env, await ask(io, question, signal))
}

/** The same where an answer may be wrong: nothing ticks it off. */
export async function askToConfirm(io: Prompts, question: string, signal: AbortSignal): Promise<string> {
  const { input } = await prompts()
  const config = { message: question, theme: { prefix: '?' } }
  return answered(input(config, context(io, signal)))
}

/** @param standard  what Enter alone says */
export async function agree(
  io: Prompts,
  question: string,
  signal: AbortSignal,
  standard = true,
): Promise<boolean> {
  const { confirm } = await prompts()
  return answered(confirm({ message: question, default: standard }, context(io, signal)))
}

/** A line that is not shown while it is typed. */
export async function askSecret(io: Prompts, question: string, signal: AbortSignal): Promise<string> {
  const { password } = await prompts()
  const config = { message: question, toggleMask: false, theme: { style: { maskedText: '(not shown)' } } }
  return answered(password(config, context(io, signal)))
}

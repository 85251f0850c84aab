import { Interrupted } from '../errors.ts'
import type { Io } from '../io.ts'
import { plainLine } from './terminal-text.ts'
import { unquotePath } from './unquote-path.ts'

/** Streams for prompts. */
export type PromptStreams = Pick<Io, 'stdin' | 'stderr'>

/**
 * Loads the prompt library at the first prompt. Prompts are written to stderr, because stdout is for the
 * result.
 */
async function prompts() {
  return import('@inquirer/prompts')
}

function promptContext({ stdin, stderr }: PromptStreams, signal: AbortSignal) {
  return { input: stdin, output: stderr, signal }
}

/** Names of the library's errors for Ctrl-C and an aborted signal. */
const cancelErrorNames = new Set(['ExitPromptError', 'AbortPromptError'])

/** Returns the answer to a prompt. @throws Interrupted  the user pressed Ctrl-C, or the signal was aborted */
async function awaitAnswer<T>(prompt: Promise<T>): Promise<T> {
  try {
    return await prompt
  } catch (error) {
    if (error instanceof Error && cancelErrorNames.has(error.name)) throw new Interrupted()
    throw error
  }
}

export async function choose(
  io: PromptStreams,
  question: string,
  choices: readonly { id: string; name: string }[],
  signal: AbortSignal,
): Promise<string> {
  const { select } = await prompts()
  const offered = choices.map(({ id, name }) => ({ value: id, name: plainLine(name) }))
  return awaitAnswer(select({ message: question, choices: offered }, promptContext(io, signal)))
}

/** Prompts for a line of text, without surrounding blanks. Repeats the prompt if the line is empty. */
export async function ask(io: PromptStreams, question: string, signal: AbortSignal): Promise<string> {
  const { input } = await prompts()
  const validate = (text: string) => text.trim() !== '' || 'Type an answer, or press Ctrl-C to cancel.'
  const text = await awaitAnswer(input({ message: question, validate }, promptContext(io, signal)))
  return text.trim()
}

/** Prompts for the path of a file or folder, such as `~/notes`. @see unquotePath */
export async function askPath(
  io: PromptStreams & Pick<Io, 'env'>,
  question: string,
  signal: AbortSignal,
): Promise<string> {
  return unquotePath(io.env, await ask(io, question, signal))
}

/** Prompts for a line that can be wrong, so it is not marked as accepted. */
export async function askToConfirm(
  io: PromptStreams,
  question: string,
  signal: AbortSignal,
): Promise<string> {
  const { input } = await prompts()
  const config = { message: question, theme: { prefix: '?' } }
  return awaitAnswer(input(config, promptContext(io, signal)))
}

/** Asks a yes-or-no question. @param standard  answer of Enter alone */
export async function askYesNo(
  io: PromptStreams,
  question: string,
  signal: AbortSignal,
  standard = true,
): Promise<boolean> {
  const { confirm } = await prompts()
  return awaitAnswer(confirm({ message: question, default: standard }, promptContext(io, signal)))
}

/** Prompts for a line without showing it. */
export async function askSecret(io: PromptStreams, question: string, signal: AbortSignal): Promise<string> {
  const { password } = await prompts()
  const config = { message: question, toggleMask: false, theme: { style: { maskedText: '(not shown)' } } }
  return awaitAnswer(password(config, promptContext(io, signal)))
}

import { Interrupted } from '../errors.ts'
import type { Io } from '../io.ts'
import { displayWidth, plainLine, truncate } from './terminal-text.ts'
import { unquotePath } from './unquote-path.ts'
import { wrapLine } from './wrap.ts'

/** Streams for prompts. */
export type PromptStreams = Pick<Io, 'stdin' | 'stderr'>

/** Loads the prompt library at the first prompt, because most commands do not need it. */
async function loadPrompts() {
  return import('@inquirer/prompts')
}

/** Returns the streams of a prompt. Prompts are written to stderr, because stdout contains only the result. */
function promptContext({ stdin, stderr }: PromptStreams, signal: AbortSignal) {
  return { input: stdin, output: stderr, signal }
}

/** Width of the marks before a question and a choice, and of the cursor, in cells. */
const marksWidth = 3
const answerWidthMin = 12

function widthOf({ stderr }: PromptStreams): number {
  return stderr.columns || Number.POSITIVE_INFINITY
}

/** Wraps a question between words, because the library breaks words at the end of a line. */
function wrapQuestion(io: PromptStreams, question: string): string {
  return wrapLine(question, widthOf(io) - marksWidth, 2).join('\n')
}

/** Names of the errors that the library throws after Ctrl-C, and when the signal is aborted. */
const cancelErrorNames = new Set(['ExitPromptError', 'AbortPromptError'])

/** Waits for the answer to a prompt. @throws Interrupted  the user pressed Ctrl-C, or the signal was aborted */
async function waitForAnswer<T>(prompt: Promise<T>): Promise<T> {
  try {
    return await prompt
  } catch (error) {
    if (error instanceof Error && cancelErrorNames.has(error.name)) throw new Interrupted()
    throw error
  }
}

/** Prompts the user to choose from a list, and returns the ID of the choice. */
export async function choose(
  io: PromptStreams,
  question: string,
  choices: readonly { id: string; name: string }[],
  signal: AbortSignal,
): Promise<string> {
  const { select } = await loadPrompts()
  const message = wrapQuestion(io, question)
  const nameWidth = widthOf(io) - marksWidth
  // After the selection, the name follows the question and a space.
  const answerWidth = Math.max(answerWidthMin, nameWidth - displayWidth(message.split('\n').at(-1)!) - 1)
  const items = choices.map(({ id, name }) => ({
    value: id,
    name: truncate(plainLine(name), nameWidth),
    short: truncate(plainLine(name), answerWidth),
  }))
  return waitForAnswer(select({ message, choices: items }, promptContext(io, signal)))
}

/** Prompts for a line of text, and returns it without surrounding white space. An empty line is not accepted. */
export async function ask(io: PromptStreams, question: string, signal: AbortSignal): Promise<string> {
  const { input } = await loadPrompts()
  const validate = (text: string) => text.trim() !== '' || 'Type an answer, or press Ctrl-C to cancel.'
  const text = await waitForAnswer(
    input({ message: wrapQuestion(io, question), validate }, promptContext(io, signal)),
  )
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

/** Prompts for a line that the caller then verifies. The prompt shows no check mark, because the line can be wrong. */
export async function askToConfirm(
  io: PromptStreams,
  question: string,
  signal: AbortSignal,
): Promise<string> {
  const { input } = await loadPrompts()
  const config = { message: wrapQuestion(io, question), theme: { prefix: '?' } }
  return waitForAnswer(input(config, promptContext(io, signal)))
}

/** Asks a yes-or-no question. @param defaultAnswer  answer if the user only presses Enter */
export async function askYesNo(
  io: PromptStreams,
  question: string,
  signal: AbortSignal,
  defaultAnswer = true,
): Promise<boolean> {
  const { confirm } = await loadPrompts()
  const message = wrapQuestion(io, question)
  return waitForAnswer(confirm({ message, default: defaultAnswer }, promptContext(io, signal)))
}

/** Prompts for a line without showing what the user types. */
export async function askSecret(io: PromptStreams, question: string, signal: AbortSignal): Promise<string> {
  const { password } = await loadPrompts()
  const config = {
    message: wrapQuestion(io, question),
    toggleMask: false,
    theme: { style: { maskedText: '(not shown)' } },
  }
  return waitForAnswer(password(config, promptContext(io, signal)))
}

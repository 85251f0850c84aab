import { shellWord } from '../../base/shell-word.ts'
import { Unreachable } from '../../client/unreachable.ts'
import type { TurnEvent } from '../../contract/chat.ts'
import type { Message } from '../../contract/conversations.ts'
import { isErrorCode, WbError } from '../../contract/errors.ts'
import { CommandFailed, Interrupted } from '../errors.ts'
import { signInLines } from '../mcp/sign-in-required.ts'
import type { Passage } from '../passages/find-passages.ts'
import type { Output } from '../terminal/output.ts'
import { plain, plainLine } from '../terminal/terminal-text.ts'
import { citationSource } from './citation-source.ts'
import { citationsOf } from './citations.ts'
import { finishNote } from './finish-note.ts'
import { isNoModelError, modelSetupLines, noModelLines, passagesHeading } from './model-setup.ts'
import { summarizePassage } from './passage-summary.ts'
import { unsupportedList, unsupportedSentences } from './unsupported.ts'

/** Number of characters to buffer at the start of an answer. Text before a tool call is rarely longer. */
const bufferedCharsMax = 300

/** Line width of passages in cells. It is fixed, because the output can be a pipe. */
const passageWidth = 80

export interface PrintAnswerOptions {
  readonly question: string
  readonly events: AsyncIterable<TurnEvent>
  /** Searches for passages to print if no model can answer. */
  findPassages(): Promise<Passage[]>
  readonly agent: string
  readonly output: Output
  /** Aborts when the user interrupts the command. */
  readonly signal: AbortSignal
  /** Receives the text of the answer as it arrives. */
  write(text: string): void
}

/**
 * Prints an answer and its sources to stdout, and tool calls and notes to stderr. Text before a tool call is not
 * part of the answer, so up to {@link bufferedCharsMax} characters are buffered before anything is written.
 *
 * @throws WbError                   the runtime rejected the question
 * @throws CommandFailed             the question is stored, but its answer failed
 * @throws Interrupted, Unreachable  the answer was interrupted
 */
export async function printAnswer(options: PrintAnswerOptions): Promise<void> {
  const writer = new AnswerWriter(options.write)
  try {
    for await (const event of options.events) printEvent(event, writer, options)
    if (!writer.isFinished) throw unfinishedAnswerError(options.signal)
  } catch (error) {
    writer.end('', [])
    if (!isNoModelError(error)) throw error
    await printPassagesInstead(options, error)
  }
}

function printEvent({ event, data }: TurnEvent, writer: AnswerWriter, { output }: PrintAnswerOptions): void {
  switch (event) {
    case 'token':
      writer.add(plain(data.delta))
      break
    case 'token-reset':
      writer.reset()
      break
    case 'tool-result':
      output.note(`  ${plainLine(data.name)}  ${data.outcome}  ${data.durationMs} ms`)
      if (data.outcome === 'denied') output.note(`    ${plainLine(data.content)}`)
      break
    case 'done': {
      writer.end(plain(data.content ?? ''), sourceLines(data))
      const unsupported = unsupportedSentences(data)
      const { heading, items } = unsupportedList(unsupported)
      if (unsupported.length > 0) output.note(`  ${heading}`)
      for (const item of items) output.note(output.errorStyle.dim(`    ${item}`))
      const note = finishNote(data)
      if (note) output.note(`  ${note}`)
      for (const line of signInLines(data)) output.note(`  ${line}`)
      break
    }
    case 'error':
      throw failedAnswerError(data)
    case 'stream-error':
      throw errorFromStreamEvent(data)
  }
}

/** Returns the error of a `stream-error` event. */
export function errorFromStreamEvent({
  code,
  message,
  status,
  hint,
}: Extract<TurnEvent, { event: 'stream-error' }>['data']): WbError {
  const knownCode = isErrorCode(code) ? code : 'internal_error'
  const facts = hint === undefined ? {} : { hint: plain(hint) }
  return new WbError(knownCode, plain(message), { ...facts, wireCode: code, wireStatus: status })
}

/** Returns the error for a failed answer. The runtime stores the failure as the answer to the question. */
export function failedAnswerError({
  metadata,
  content,
}: Pick<Message, 'metadata' | 'content'>): CommandFailed {
  return new CommandFailed(plain(metadata.error_message || content || 'the answer was interrupted'), [
    'wb services list --type llm     shows the models and their addresses',
  ])
}

/** Returns the error for an event stream that ended before the answer was complete. */
export function unfinishedAnswerError(signal: AbortSignal): Error {
  return signal.aborted ? new Interrupted() : new Unreachable('the answer was interrupted', 'Ask again.')
}

function sourceLines(message: Message): string[] {
  return citationsOf(message).map(citation => `[${citation.number}] ${citationSource(citation)}`)
}

async function printPassagesInstead(
  { question, findPassages, agent, output }: PrintAnswerOptions,
  error: WbError,
): Promise<void> {
  for (const line of [...noModelLines(error.message, [error.hint]), ...modelSetupLines(agent)])
    output.warn(`  ${line}`)
  const passages = await findPassages()
  if (passages.length === 0) return output.note('  no passages match the question')
  output.result(passagesHeading)
  for (const passage of passages) {
    const { title, lines, location } = summarizePassage(passage, question, passageWidth)
    const details = [...lines, location].filter(line => line !== '').map(line => `    ${line}`)
    output.result(['', `[${passage.number}] ${title}`, ...details].join('\n'))
  }
  output.note(`  wb search ${shellWord(question)} --json    prints them in full`)
}

/** Writes the text of an answer as it arrives. */
class AnswerWriter {
  #buffer = ''
  #hasWritten = false
  #isFinished = false

  constructor(private readonly write: (text: string) => void) {}

  add(delta: string): void {
    this.#buffer += delta
    if (this.#hasWritten || this.#buffer.length > bufferedCharsMax) this.#flush()
  }

  reset(): void {
    if (this.#hasWritten) this.write('\n\n')
    this.#buffer = ''
    this.#hasWritten = false
  }

  /** True after {@link end}. */
  get isFinished(): boolean {
    return this.#isFinished
  }

  /** Writes the rest of the answer, and its sources. Writes `content` only if no text has arrived. */
  end(content: string, sources: readonly string[]): void {
    if (this.#isFinished) return
    this.#isFinished = true
    if (!this.#hasWritten && this.#buffer === '') this.#buffer = content
    if (!this.#hasWritten && this.#buffer === '') return
    if (!this.#hasWritten) this.#flush()
    this.write(`\n${sources.length > 0 ? `\n${sources.join('\n')}\n` : ''}`)
  }

  #flush(): void {
    this.write(this.#buffer)
    this.#buffer = ''
    this.#hasWritten = true
  }
}

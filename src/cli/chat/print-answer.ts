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
import { lacksModel, modelSetupLines, noModelLines, passagesHeading } from './model-setup.ts'
import { summarizePassage } from './passage-summary.ts'

/** Length in characters up to which the beginning of an answer is held back, because text before a tool call is rarely longer. */
const bufferedCharsMax = 300

/** Width of the lines of a passage in a pipe, in cells. */
const passageWidth = 80

export interface PrintAnswerOptions {
  readonly question: string
  readonly events: AsyncIterable<TurnEvent>
  /** Prints passages instead of an answer. */
  find(): Promise<Passage[]>
  readonly agent: string
  readonly output: Output
  /** Stops the answer. */
  readonly signal: AbortSignal
  /** Receives the text of the answer as it arrives. */
  write(text: string): void
}

/**
 * Prints an answer and its sources to stdout, and tool calls and notes to stderr. Text before a tool call is not part of the
 * answer, so the beginning is held back until no tool call can follow.
 *
 * @throws WbError                   the runtime refused the question
 * @throws PartlyFailed              the question is stored, and its answer failed
 * @throws Interrupted, Unreachable  the answer broke off
 */
export async function printAnswer(options: PrintAnswerOptions): Promise<void> {
  const text = new AnswerWriter(options.write)
  try {
    for await (const event of options.events) printEvent(event, text, options)
    if (!text.isOver) throw unfinishedAnswer(options.signal)
  } catch (error) {
    text.end('', [])
    if (!lacksModel(error)) throw error
    await printPassagesInstead(options, error)
  }
}

function printEvent({ event, data }: TurnEvent, text: AnswerWriter, { output }: PrintAnswerOptions): void {
  switch (event) {
    case 'token':
      text.add(plain(data.delta))
      break
    case 'token-reset':
      text.reset()
      break
    case 'tool-result':
      output.note(`  ${plainLine(data.name)}  ${data.outcome}  ${data.durationMs} ms`)
      if (data.outcome === 'denied') output.note(`    ${plainLine(data.content)}`)
      break
    case 'done': {
      text.end(plain(data.content ?? ''), sourceLines(data))
      const early = finishNote(data)
      if (early) output.note(`  ${early}`)
      for (const line of signInLines(data)) output.note(`  ${line}`)
      break
    }
    case 'error':
      throw failedAnswer(data)
    case 'stream-error':
      throw errorOfEvent(data)
  }
}

/** Returns the error of a `stream-error` event. */
export function errorOfEvent({
  code,
  message,
  status,
  hint,
}: Extract<TurnEvent, { event: 'stream-error' }>['data']): WbError {
  const known = isErrorCode(code) ? code : 'internal_error'
  const facts = hint === undefined ? {} : { hint: plain(hint) }
  return new WbError(known, plain(message), { ...facts, wireCode: code, wireStatus: status })
}

/** Returns the error of an answer that failed. The runtime stores the failure after the question. */
export function failedAnswer({ metadata, content }: Pick<Message, 'metadata' | 'content'>): CommandFailed {
  return new CommandFailed(plain(metadata.error_message || content || 'the answer was interrupted'), [
    'wb services list --type llm     shows the models and their addresses',
  ])
}

/** Returns the error of an answer whose events ended before the last one. */
export function unfinishedAnswer(signal: AbortSignal): Error {
  return signal.aborted ? new Interrupted() : new Unreachable('the answer was interrupted', 'Ask again.')
}

function sourceLines(message: Message): string[] {
  return citationsOf(message).map(one => `[${one.number}] ${citationSource(one)}`)
}

async function printPassagesInstead(
  { question, find, agent, output }: PrintAnswerOptions,
  why: WbError,
): Promise<void> {
  for (const line of [...noModelLines(why.message, [why.hint]), ...modelSetupLines(agent)])
    output.warn(`  ${line}`)
  const passages = await find()
  if (passages.length === 0) return output.note('  nothing was found either')
  output.result(passagesHeading)
  for (const passage of passages) {
    const { title, lines, place } = summarizePassage(passage, question, passageWidth)
    const below = [...lines, place].filter(line => line !== '').map(line => `    ${line}`)
    output.result(['', `[${passage.number}] ${title}`, ...below].join('\n'))
  }
  output.note(`  wb search ${shellWord(question)} --json    prints them in full`)
}

/** Writes the text of an answer while it arrives. */
class AnswerWriter {
  #held = ''
  #isOut = false
  #isOver = false

  constructor(private readonly write: (text: string) => void) {}

  add(delta: string): void {
    this.#held += delta
    if (this.#isOut || this.#held.length > bufferedCharsMax) this.#release()
  }

  reset(): void {
    if (this.#isOut) this.write('\n\n')
    this.#held = ''
    this.#isOut = false
  }

  /** True after the end of the answer was reported. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** Writes the rest of the answer. Text that is already written stays. */
  end(content: string, sources: readonly string[]): void {
    if (this.#isOver) return
    this.#isOver = true
    if (!this.#isOut && this.#held === '') this.#held = content
    if (!this.#isOut && this.#held === '') return
    if (!this.#isOut) this.#release()
    this.write(`\n${sources.length > 0 ? `\n${sources.join('\n')}\n` : ''}`)
  }

  #release(): void {
    this.write(this.#held)
    this.#held = ''
    this.#isOut = true
  }
}

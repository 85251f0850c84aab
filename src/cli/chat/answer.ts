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
import { citationsOf } from './citations.ts'
import { finishNote } from './finish-note.ts'
import { foundCard } from './found.ts'
import { foundNotWritten, lacksModel, modelSetupLines, noModelLines } from './no-model.ts'
import { sourceOf } from './sources.ts'

/** Said before a tool is called, an answer is rarely longer. What is longer streams. */
const heldChars = 300

/** Of a line of a passage in a pipe. */
const passageWidth = 80

export interface Asked {
  readonly question: string
  readonly events: AsyncIterable<TurnEvent>
  /** Passages in place of an answer. */
  find(): Promise<Passage[]>
  readonly agent: string
  readonly output: Output
  /** Ends the answer from outside. */
  readonly signal: AbortSignal
  /** Gets the answer as it comes. */
  write(text: string): void
}

/**
 * An answer as text on stdout, its sources below; tools and what else there is to say on stderr. What an agent says
 * before it calls a tool is no part of its answer, so that the beginning is held back until it is clear.
 *
 * @throws WbError  the runtime refuses
 * @throws PartlyFailed  the question is kept, and its answer failed
 * @throws Interrupted, Unreachable  the answer has no end
 */
export async function answerAsText(asked: Asked): Promise<void> {
  const text = new AnswerText(asked.write)
  try {
    for await (const event of asked.events) tell(event, text, asked)
    if (!text.isOver) throw endless(asked.signal)
  } catch (error) {
    text.end('', [])
    if (!lacksModel(error)) throw error
    await answerWithPassages(asked, error)
  }
}

function tell({ event, data }: TurnEvent, text: AnswerText, { output }: Asked): void {
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
      text.end(plain(data.content ?? ''), sourcesOf(data))
      const early = finishNote(data)
      if (early) output.note(`  ${early}`)
      for (const line of signInLines(data)) output.note(`  ${line}`)
      break
    }
    case 'error':
      throw failedAnswer(data)
    case 'stream-error':
      throw errorOf(data)
  }
}

/** A refusal that came as an event, as the error that it would be elsewhere. */
export function errorOf({
  code,
  message,
  status,
  hint,
}: Extract<TurnEvent, { event: 'stream-error' }>['data']): WbError {
  const known = isErrorCode(code) ? code : 'internal_error'
  const said = hint === undefined ? {} : { hint: plain(hint) }
  return new WbError(known, plain(message), { ...said, wireCode: code, wireStatus: status })
}

/** What came in the place of an answer; the runtime keeps it behind the question. */
export function failedAnswer({ metadata, content }: Pick<Message, 'metadata' | 'content'>): CommandFailed {
  return new CommandFailed(plain(metadata.error_message || content || 'the answer broke off'), [
    'wb services list --type llm     shows what answers, and where it is',
  ])
}

/** Events ended before the last one came. */
export function endless(signal: AbortSignal): Error {
  return signal.aborted ? new Interrupted() : new Unreachable('the answer broke off', 'Ask again.')
}

function sourcesOf(message: Message): string[] {
  return citationsOf(message).map(one => `[${one.number}] ${sourceOf(one)}`)
}

async function answerWithPassages({ question, find, agent, output }: Asked, why: WbError): Promise<void> {
  for (const line of [...noModelLines(why.message, [why.hint]), ...modelSetupLines(agent)])
    output.warn(`  ${line}`)
  const passages = await find()
  if (passages.length === 0) return output.note('  nothing was found either')
  output.result(foundNotWritten)
  for (const passage of passages) {
    const { title, lines, place } = foundCard(passage, question, passageWidth)
    const below = [...lines, place].filter(line => line !== '').map(line => `    ${line}`)
    output.result(['', `[${passage.number}] ${title}`, ...below].join('\n'))
  }
  output.note(`  wb search ${shellWord(question)} --json    has them whole`)
}

/** Text on its way out. */
class AnswerText {
  #held = ''
  #isOut = false
  #isOver = false

  constructor(private readonly write: (text: string) => void) {}

  add(delta: string): void {
    this.#held += delta
    if (this.#isOut || this.#held.length > heldChars) this.#release()
  }

  reset(): void {
    if (this.#isOut) this.write('\n\n')
    this.#held = ''
    this.#isOut = false
  }

  /** Whether its end was told. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** The rest of it; what ended stays as it is. */
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

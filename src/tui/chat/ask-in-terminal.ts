import type { AskOptions } from '../../cli/chat/chat-interfaces.ts'
import { isNoModelError, noModelLines } from '../../cli/chat/model-setup.ts'
import {
  errorFromStreamEvent,
  failedAnswerError,
  unfinishedAnswerError,
} from '../../cli/chat/print-answer.ts'
import type { Highlight } from '../markdown/render.ts'
import { paintFor } from '../parts/paint.ts'
import { loadUsedPassages } from './load-used-passages.ts'
import { startChat, stepChat } from './state.ts'
import { transcriptLines } from './transcript.ts'
import type { ChatEvent, TranscriptPart } from './types.ts'

/**
 * Asks one question, and prints each block of the answer when it is finished.
 *
 * @throws WbError  the runtime rejected the question, or the answer failed
 */
export async function askInTerminal(options: AskOptions): Promise<void> {
  const { port, clock, subject, hasColors, question = '', signal, write } = options
  const paint = paintFor(hasColors)
  const highlight: Highlight | undefined = hasColors
    ? (await import('../markdown/highlight.ts')).highlight
    : undefined
  const { columns = 80, rows = 24 } = options.terminal.stdout
  let state = startChat(subject, { columns, rows }, clock.now())
  const show = (part: TranscriptPart) => {
    for (const line of transcriptLines(part, { columns, agent: subject.agent, highlight }))
      write(`${paint(line)}\n`)
  }
  const dispatch = (event: ChatEvent) => {
    const [next, effects] = stepChat(state, event)
    state = next
    for (const effect of effects)
      if (effect.type === 'print' && effect.part.kind !== 'question') show(effect.part)
  }
  dispatch({ type: 'submitted', text: question.replace(/^\//, '//') })
  try {
    for await (const event of port.send({ content: question }, signal)) {
      if (event.event === 'stream-error') throw errorFromStreamEvent(event.data)
      if (event.event === 'error') throw failedAnswerError(event.data)
      dispatch({ type: 'turn', event, usedPassages: await loadUsedPassages(event, port) })
    }
    if (state.turn) throw unfinishedAnswerError(signal)
  } catch (error) {
    if (signal.aborted) {
      dispatch({ type: 'cancel' })
      throw unfinishedAnswerError(signal)
    }
    if (!isNoModelError(error)) throw error
    for (const text of noModelLines(error.message, [error.hint])) show({ kind: 'note', text, tone: 'dim' })
    show({ kind: 'passages', question, passages: await port.findPassages(question), hasSetup: true })
  }
}

import { endless, errorOf, failedAnswer } from '../../cli/chat/answer.ts'
import type { AskOptions } from '../../cli/chat/front.ts'
import { lacksModel, noModelLines } from '../../cli/chat/no-model.ts'
import type { Highlight } from '../markdown/render.ts'
import { paintFor } from '../parts/paint.ts'
import { shownLines } from './shown.ts'
import { start, step } from './state.ts'
import type { Event, Printed } from './types.ts'

/**
 * One question, and its answer as a chat shows it: blocks as they are finished, below each other.
 *
 * @throws what the runtime refuses with, or the answer failed with
 */
export async function askInTerminal(options: AskOptions): Promise<void> {
  const { port, clock, about, colour, question = '', signal, write } = options
  const paint = paintFor(colour)
  const highlight: Highlight | undefined = colour
    ? (await import('../markdown/highlight.ts')).highlight
    : undefined
  const { columns = 80, rows = 24 } = options.terminal.stdout
  let state = start(about, { columns, rows }, clock.now())
  const show = (printed: Printed) => {
    for (const line of shownLines(printed, { columns, agent: about.agent, highlight }))
      write(`${paint(line)}\n`)
  }
  const tell = (event: Event) => {
    const [next, effects] = step(state, event)
    state = next
    for (const effect of effects)
      if (effect.type === 'print' && effect.printed.kind !== 'you') show(effect.printed)
  }
  tell({ type: 'submitted', text: question.replace(/^\//, '//') })
  try {
    for await (const event of port.send({ content: question }, signal)) {
      if (event.event === 'stream-error') throw errorOf(event.data)
      if (event.event === 'error') throw failedAnswer(event.data)
      tell({ type: 'turn', event })
    }
    if (state.turn) throw endless(signal)
  } catch (error) {
    if (signal.aborted) {
      tell({ type: 'cancel' })
      throw endless(signal)
    }
    if (!lacksModel(error)) throw error
    for (const text of noModelLines(error.message, [error.hint])) show({ kind: 'note', text, tone: 'dim' })
    show({ kind: 'found', question, passages: await port.find(question), hasWays: true })
  }
}

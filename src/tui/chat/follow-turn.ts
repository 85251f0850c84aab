import { pause } from '../../base/pause.ts'
import type { ChatPort } from '../../cli/chat/port.ts'
import { Unreachable } from '../../client/unreachable.ts'
import type { TurnEvent } from '../../contract/chat.ts'
import type { Message } from '../../contract/conversations.ts'
import { WbError } from '../../contract/errors.ts'
import { isUnavailable } from '../parts/is-unavailable.ts'

/** Delays before each attempt to reconnect. A new event resets them. */
const reconnectDelaysMs = [250, 750, 2_000, 4_000, 8_000]

interface FollowTurnOptions {
  readonly port: Pick<ChatPort, 'readRunningTurn' | 'messages'>
  readonly signal: AbortSignal
  /** Called when the connection breaks, and when it is restored. */
  onConnection(isLost: boolean): void
}

/** Returns true if an error means that no turn of this caller is running in the conversation. */
export function isNotFound(error: unknown): boolean {
  return error instanceof WbError && error.code === 'not_found'
}

/**
 * Yields each event of a turn once. If the connection breaks, reads the turn again and skips the events that were
 * already yielded. If the turn has ended by then, yields the stored answer instead.
 *
 * @throws Unreachable  the connection broke before the first event, or all attempts failed
 * @throws the errors of the first stream
 */
export async function* followTurn(
  { port, signal, onConnection }: FollowTurnOptions,
  first: AsyncIterable<TurnEvent>,
): AsyncGenerator<TurnEvent> {
  const progress = new TurnProgress()
  let events = first
  for (let attempt = 0; ; ) {
    let index = 0
    try {
      for await (const event of events) {
        progress.check(event)
        if (events !== first && index === 0) onConnection(false)
        if (index++ < progress.count) continue
        progress.add(event)
        attempt = 0
        yield event
        if (progress.hasEnded) return
      }
      throw new Unreachable('the answer ended early', '')
    } catch (error) {
      const { questionId } = progress
      if (signal.aborted || questionId === undefined) throw error
      if (isNotFound(error)) {
        const answer = findAnswer(questionId, await port.messages())
        if (!answer) throw new Unreachable('the answer was lost', '', { cause: error })
        onConnection(false)
        yield* progress.remainingEvents(answer)
        return
      }
      const delayMs = reconnectDelaysMs[attempt++]
      if (!isUnavailable(error) || delayMs === undefined) throw error
      onConnection(true)
      await pause(delayMs, signal)
      events = port.readRunningTurn(signal)
    }
  }
}

/** Returns the answer to a question of a conversation; undefined if none is stored. */
export function findAnswer(questionId: string, messages: readonly Message[]): Message | undefined {
  const index = messages.findIndex(({ messageId }) => messageId === questionId)
  const next = index < 0 ? undefined : messages[index + 1]
  return next?.role === 'agent' ? next : undefined
}

/** The part of a turn that was already yielded. */
class TurnProgress {
  questionId: string | undefined
  count = 0
  hasEnded = false
  /** Text of the answer, without the text before a tool call. */
  #text = ''

  /** @throws WbError not_found  the event starts another turn */
  check({ event, data }: TurnEvent): void {
    if (event !== 'user-message' || this.questionId === undefined || data.messageId === this.questionId)
      return
    throw new WbError('not_found', 'another turn is running in the conversation')
  }

  add({ event, data }: TurnEvent): void {
    this.count++
    if (event === 'user-message') this.questionId = data.messageId
    if (event === 'token') this.#text += data.delta
    if (event === 'token-reset') this.#text = ''
    this.hasEnded = event === 'done' || event === 'error' || event === 'stream-error'
  }

  /** Returns the events that complete the turn with its stored answer. */
  remainingEvents(answer: Message): TurnEvent[] {
    if (answer.metadata.finish_reason === 'error') return [{ event: 'error', data: answer }]
    const content = answer.content ?? ''
    const continuesText = content.startsWith(this.#text)
    return [
      ...(continuesText ? [] : [{ event: 'token-reset', data: {} } as const]),
      { event: 'token', data: { delta: continuesText ? content.slice(this.#text.length) : content } },
      { event: 'done', data: answer },
    ]
  }
}

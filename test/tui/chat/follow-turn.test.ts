import { expect, test } from 'vitest'
import { Unreachable } from '../../../src/client/unreachable.ts'
import type { TurnEvent } from '../../../src/contract/chat.ts'
import type { Message } from '../../../src/contract/conversations.ts'
import { WbError } from '../../../src/contract/errors.ts'
import { followTurn } from '../../../src/tui/chat/follow-turn.ts'
import { message } from './play.ts'

const question = message('user', 'why?')
const answer = message('agent', 'one two', { finish_reason: 'stop' })
const begin: TurnEvent = { event: 'user-message', data: question }
const token = (delta: string): TurnEvent => ({ event: 'token', data: { delta } })
const done: TurnEvent = { event: 'done', data: answer }
const whole = [begin, token('one'), token(' two'), done]

/** Events of a stream, and an optional error at its end. */
async function* stream(events: readonly TurnEvent[], error?: Error): AsyncGenerator<TurnEvent> {
  yield* events
  if (error) throw error
}

const broken = new Unreachable('the stream broke off', '')

async function read(
  first: AsyncIterable<TurnEvent>,
  attached: AsyncIterable<TurnEvent>[],
  messages: readonly Message[] = [],
): Promise<{ events: TurnEvent[]; isLost: boolean[]; error: unknown }> {
  const events: TurnEvent[] = []
  const isLost: boolean[] = []
  const port = {
    readRunningTurn: () => attached.shift() ?? stream([], broken),
    messages: async () => [...messages],
  }
  const { signal } = new AbortController()
  const following = { port, signal, onConnection: (lost: boolean) => isLost.push(lost) }
  try {
    for await (const event of followTurn(following, first)) events.push(event)
  } catch (error) {
    return { events, isLost, error }
  }
  return { events, isLost, error: undefined }
}

test('yields each event once when a turn is read again', async () => {
  const { events, isLost } = await read(stream(whole.slice(0, 2), broken), [stream(whole)])
  expect(events).toEqual(whole)
  expect(isLost).toEqual([true, false])
})

test('reconnects to a stream that ends without its last event', async () => {
  expect((await read(stream(whole.slice(0, 3)), [stream(whole)])).events).toEqual(whole)
})

test('completes the answer with the stored one if the turn is finished', async () => {
  const missing = stream([], new WbError('not_found', 'no turn'))
  const { events } = await read(stream(whole.slice(0, 2), broken), [missing], [question, answer])
  expect(events).toEqual([begin, token('one'), token(' two'), done])
})

test('fails if neither the turn nor its answer exists', async () => {
  const missing = stream([], new WbError('not_found', 'no turn'))
  const { events, error } = await read(stream(whole.slice(0, 2), broken), [missing], [question])
  expect(events).toEqual(whole.slice(0, 2))
  expect(error).toMatchObject({ message: 'the answer was lost' })
})

test('ignores the events of another turn', async () => {
  const other: TurnEvent = { event: 'user-message', data: message('user', 'else?') }
  const { events, error } = await read(stream(whole.slice(0, 2), broken), [
    stream([other, token('x'), token('y')]),
  ])
  expect(events).toEqual(whole.slice(0, 2))
  expect(error).toBeInstanceOf(Unreachable)
})

test('does not reconnect after an error before the first event', async () => {
  const { isLost, error } = await read(stream([], broken), [stream(whole)])
  expect({ isLost, error }).toEqual({ isLost: [], error: broken })
})

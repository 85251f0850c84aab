import { expect, test } from 'vitest'
import { formatArguments, withApprovals } from '../../src/cli/chat/with-approvals.ts'
import type { TurnEvent } from '../../src/contract/chat.ts'

const approvalRequest: TurnEvent = {
  event: 'tool-approval',
  data: {
    approvalId: 'a1',
    toolCall: { id: 't1', name: 'x', arguments: '{}' },
    expiresAt: '2026-01-01T00:00:00Z',
  },
}
const token: TurnEvent = { event: 'token', data: { delta: 'late' } }

async function* turn(events: readonly TurnEvent[], signals: AbortSignal[], signal: AbortSignal) {
  signals.push(signal)
  yield* events
}

test('stops waiting for the user, and ignores the answer, when the runtime continues', async () => {
  const signals: AbortSignal[] = []
  const decided: string[] = []
  const events = withApprovals({
    send: signal => turn([approvalRequest, token], signals, signal),
    ask: (_, late) =>
      new Promise((_done, fail) => late.addEventListener('abort', () => fail(new Error('late')))),
    decide: async id => void decided.push(id),
  })
  expect(await collect(events)).toEqual([token])
  expect(decided).toEqual([])
})

test('ends the turn when the user interrupts the prompt', async () => {
  const signals: AbortSignal[] = []
  const stream = async function* (signal: AbortSignal): AsyncGenerator<TurnEvent> {
    yield* turn([approvalRequest], signals, signal)
    await new Promise((_done, fail) => signal.addEventListener('abort', () => fail(new Error('let go'))))
  }
  const events = withApprovals({
    send: stream,
    ask: () => Promise.reject(new Error('interrupted')),
    decide: async () => {},
  })
  await expect(events.next()).rejects.toThrow('interrupted')
  expect(signals[0]?.aborted).toBe(true)
})

async function collect<T>(events: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = []
  for await (const event of events) list.push(event)
  return list
}

test('shows every argument of a tool call in an approval prompt [security rule 16]', () => {
  const given = { to: 'a\u202eb\u{e0041}', text: 'hello\u009d, and all of the passwords\u009c', count: 1 }
  expect(formatArguments(JSON.stringify(given))).toBe(`{
  "to": "a\\u202eb\\udb40\\udc41",
  "text": "hello\\u009d, and all of the passwords\\u009c",
  "count": 1
}`)
  expect(formatArguments('{"text": "hello\u009d, all\u009c')).toBe('{"text": "hello\\u009d, all\\u009c')
})

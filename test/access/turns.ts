import { setImmediate as nextTurn } from 'node:timers/promises'
import { onTestFinished, vi } from 'vitest'

/** Makes each reading of the timer take a millisecond, and returns the number of readings so far. */
export function slowTimer(): () => number {
  let now = 0
  const spy = vi.spyOn(performance, 'now').mockImplementation(() => ++now)
  onTestFinished(() => spy.mockRestore())
  return () => now
}

/** Returns the number of turns of the event loop until work has ended. */
export async function countTurns(work: Promise<unknown>): Promise<number> {
  let isDone = false
  const end = () => {
    isDone = true
  }
  work.then(end, end)
  let turns = 0
  for (; !isDone; turns++) await nextTurn()
  return turns
}

/** Sends a request, and disconnects as soon as a condition is true. Returns after the request has ended. */
export async function disconnectWhen(
  isDue: () => boolean,
  send: (signal: AbortSignal) => Promise<unknown>,
): Promise<void> {
  const client = new AbortController()
  let isDone = false
  const end = () => {
    isDone = true
  }
  const ended = send(client.signal).then(end, end)
  while (!isDue() && !isDone) await nextTurn()
  client.abort()
  await ended
}

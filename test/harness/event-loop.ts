import { setImmediate as nextTurn } from 'node:timers/promises'

/** Counts turns of the event loop during an asynchronous operation, and returns its result. */
export async function turnsDuring<T>(work: Promise<T>): Promise<{ turns: number; result: T }> {
  let isOver = false
  const ended = work.finally(() => {
    isOver = true
  })
  let turns = 0
  for (; !isOver; turns++) await nextTurn()
  return { turns, result: await ended }
}

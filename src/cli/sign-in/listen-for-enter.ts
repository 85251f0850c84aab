import type { Io } from '../io.ts'

const enter = /[\r\n]/
const controlC = '\x03'

/**
 * Calls `onEnter` when the user presses Enter. Does not show what the user types.
 *
 * @returns a function that stops listening and restores the terminal
 */
export function listenForEnter(
  { stdin: input, signals }: Pick<Io, 'stdin' | 'signals'>,
  onEnter: () => void,
): () => void {
  const onData = (typed: Buffer | string) => {
    const text = String(typed)
    // A terminal in raw mode does not send a signal for Ctrl-C.
    if (text.includes(controlC)) signals.raise('SIGINT')
    else if (enter.test(text)) onEnter()
  }
  input.setRawMode(true)
  input.on('data', onData)
  input.resume()
  return () => {
    input.off('data', onData)
    input.setRawMode(false)
    input.pause()
  }
}

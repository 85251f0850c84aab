import { setMaxListeners } from 'node:events'
import { Interrupted } from '../errors.ts'
import type { Signals } from '../io.ts'
import { exit } from './exit.ts'

/**
 * Returns an abort signal for Ctrl-C and other termination signals, and a function that stops listening. A
 * second termination signal ends the process immediately, except SIGHUP: when a terminal closes, both the
 * terminal and its shell can send it.
 */
export function listenForInterrupts(signals: Signals): { signal: AbortSignal; stop: () => void } {
  const controller = new AbortController()
  // Each concurrent request adds a listener. Node would print a warning if there are more than ten.
  setMaxListeners(0, controller.signal)
  const stop = signals.listen(name => {
    if (name !== 'SIGHUP' && controller.signal.aborted) signals.exit(exit.interrupted)
    controller.abort(new Interrupted())
  })
  return { signal: controller.signal, stop }
}

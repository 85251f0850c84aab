import { setMaxListeners } from 'node:events'
import { Interrupted } from '../faults.ts'
import { exit } from './exit.ts'

/**
 * A signal that aborts at the first Ctrl-C or SIGTERM; the second ends the process at once.
 *
 * @returns the signal, and a function that stops listening
 */
export function interruption(): { signal: AbortSignal; stop: () => void } {
  const controller = new AbortController()
  // All that goes on at once listens to it.
  setMaxListeners(0, controller.signal)
  const onSignal = () => {
    if (controller.signal.aborted) process.exit(exit.interrupted)
    controller.abort(new Interrupted())
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  return {
    signal: controller.signal,
    stop() {
      process.off('SIGINT', onSignal)
      process.off('SIGTERM', onSignal)
    },
  }
}

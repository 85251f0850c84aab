import { setMaxListeners } from 'node:events'
import { Interrupted } from '../faults.ts'
import type { Signals } from '../io.ts'
import { exit } from './exit.ts'

/**
 * Returns a signal that aborts when the process is asked to end, and a function that stops listening. Asked a second
 * time, the process ends at once. A terminal that closes may ask twice, through its shell and by itself.
 */
export function interruption(signals: Signals): { signal: AbortSignal; stop: () => void } {
  const controller = new AbortController()
  // All that goes on at once listens to it.
  setMaxListeners(0, controller.signal)
  const stop = signals.listen(name => {
    if (name !== 'SIGHUP' && controller.signal.aborted) signals.exit(exit.interrupted)
    controller.abort(new Interrupted())
  })
  return { signal: controller.signal, stop }
}

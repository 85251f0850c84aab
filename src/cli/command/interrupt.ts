import { setMaxListeners } from 'node:events'
import { isatty } from 'node:tty'
import { Interrupted } from '../faults.ts'
import { endingSignals } from '../terminal/signals.ts'
import { exit } from './exit.ts'

/**
 * A signal that aborts at the first of these; the second ends the process at once. One terminal that is closed may say so
 * twice, by its shell and by itself, and takes no more words.
 *
 * @returns the signal, and a function that stops listening
 */
export function interruption(): { signal: AbortSignal; stop: () => void } {
  const controller = new AbortController()
  const terminals = [0, 1, 2].filter(fd => isatty(fd))
  process.once('exit', () => outlive(terminals))
  // All that goes on at once listens to it.
  setMaxListeners(0, controller.signal)
  const onSignal = (signal: NodeJS.Signals) => {
    if (signal === 'SIGHUP')
      for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
    else if (controller.signal.aborted) process.exit(exit.interrupted)
    controller.abort(new Interrupted())
  }
  for (const name of endingSignals) process.on(name, onSignal)
  return {
    signal: controller.signal,
    stop() {
      for (const name of endingSignals) process.off(name, onSignal)
    },
  }
}

/**
 * Node leaves a terminal as it was, and breaks off, with a core, where that is gone: a signal comes first.
 *
 * @param terminals  descriptors that were one
 */
function outlive(terminals: readonly number[]): void {
  if (terminals.every(fd => isatty(fd))) return
  process.removeAllListeners('SIGHUP')
  process.kill(process.pid, 'SIGHUP')
}

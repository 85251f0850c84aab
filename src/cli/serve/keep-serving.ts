import type { Log } from '../../base/log.ts'
import type { Signals } from '../io.ts'

/**
 * Keeps the process alive through an exception that escaped every request, and logs it. A request that it belonged to
 * may stay without a response until its connection times out.
 *
 * @param log  the log of the runtime that serves now
 * @returns a function that restores Node's default, which is to end the process
 */
export function keepServing(signals: Signals, log: () => Log): () => void {
  return signals.onUncaught(error => {
    // The reader of stdout or stderr has gone. Logging that would fail in the same way.
    if (error instanceof Error && 'code' in error && error.code === 'EPIPE') return
    log().error({ error }, 'an exception escaped its request; the server keeps running')
  })
}

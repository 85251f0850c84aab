import type { Log } from '../../base/log.ts'
import type { Signals } from '../io.ts'

/**
 * Logs uncaught exceptions, and keeps the process alive. The request that caused such an exception may get no response
 * until its connection times out.
 *
 * @param log  returns the log of the current runtime
 * @returns a function that restores the default behavior of Node.js, which is to end the process
 */
export function keepServing(signals: Signals, log: () => Log): () => void {
  return signals.onUncaught(error => {
    // The program that reads stdout or stderr has exited, so writing this error to the log would also fail.
    if (error instanceof Error && 'code' in error && error.code === 'EPIPE') return
    log().error({ error }, 'uncaught exception; the server keeps running')
  })
}

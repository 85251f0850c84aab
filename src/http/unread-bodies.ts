import type { IncomingMessage, ServerResponse } from 'node:http'
import { FairScheduler, workOwner } from './fair-scheduler.ts'

/**
 * Maximum number of rejected requests whose bodies are read to the end at the same time. Some clients read the
 * response only after they have sent the whole body.
 */
const concurrentReadsMax = 16

/** Maximum time in milliseconds for which a body is read after the response was sent. */
const readMaxMs = 10_000

/**
 * Time in milliseconds for which a connection stays open if the body is not read, so that the client can read the
 * response.
 */
const lingerMs = 2_000

/**
 * Ends requests whose response was sent before their body was read. Node would read the rest of each body without a
 * limit, so many rejected bodies could block all other requests.
 */
export class UnreadBodies {
  #readCount = 0
  /**
   * Closes one connection per event loop tick, because the operating system takes more than a millisecond to discard
   * megabytes of unread data.
   */
  readonly #closings: FairScheduler

  /** @param countAccepted  returns the number of connections that the server has accepted so far */
  constructor(countAccepted: () => number) {
    this.#closings = new FairScheduler(1, countAccepted)
  }

  /** Ends the request if its body is still unread when its response is sent. Call this before handling the request. */
  watch(request: IncomingMessage, response: ServerResponse): void {
    const { 'content-length': length, 'transfer-encoding': encoding } = request.headers
    if (encoding === undefined && !(Number(length) > 0)) return
    // Must run before Node's listener for the later `finish` event.
    response.once('prefinish', () => {
      // A destroyed request has already emitted `close`, because its client has disconnected.
      if (!request.complete && !request.destroyed) this.#end(request)
    })
  }

  #end(request: IncomingMessage): void {
    // Start to read, because Node would otherwise read the rest of the body itself, without a limit.
    request.read(0)
    if (this.#readCount < concurrentReadsMax) this.#readRest(request)
    else {
      request.pause()
      this.#closeAfterDelay(request, lingerMs)
    }
  }

  #readRest(request: IncomingMessage): void {
    this.#readCount++
    request.once('close', () => this.#readCount--)
    request.resume()
    this.#closeAfterDelay(request, readMaxMs)
  }

  /** Closes the connection after a delay, unless the request has ended by then. */
  #closeAfterDelay(request: IncomingMessage, delayMs: number): void {
    const close = () => this.#closings.run(workOwner(request), () => request.socket.destroy())
    const timer = setTimeout(close, delayMs).unref()
    request.once('end', () => clearTimeout(timer))
  }
}

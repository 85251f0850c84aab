import type { IncomingMessage, ServerResponse } from 'node:http'
import { FairTurns, turnOwner } from './fair-turns.ts'

/**
 * Maximum number of refused requests whose bodies are read to the end at the same time. Clients that send
 * everything before they read then get their response.
 */
const drainedAtOnceMax = 16

/** Maximum time for which a body is read after its response, in milliseconds. */
const drainMs = 10_000

/** Time for which other connections stay open so the client can read the response, in milliseconds. */
const lingerMs = 2_000

/**
 * Ends requests that were answered before their body was read. Node would read the rest at full speed without
 * a limit, so a flood of refused bodies could starve all other requests.
 */
export class UnreadBodies {
  #draining = 0
  /**
   * Limits closing to one connection per turn, because the system takes over a millisecond to discard
   * megabytes of unread data.
   */
  readonly #closings: FairTurns

  /** @param accepted  returns the number of connections that the server has accepted so far */
  constructor(accepted: () => number) {
    this.#closings = new FairTurns(1, accepted)
  }

  /** Ends the request after its response. Must be called before the request is handled. */
  watch(request: IncomingMessage, response: ServerResponse): void {
    const { 'content-length': length, 'transfer-encoding': encoding } = request.headers
    if (encoding === undefined && !(Number(length) > 0)) return
    // Node acts on the `finish` event, which comes later.
    response.once('prefinish', () => {
      // For a destroyed request, the client has disconnected and the `close` event has passed.
      if (!request.complete && !request.destroyed) this.#end(request)
    })
  }

  #end(request: IncomingMessage): void {
    // Marks the body as being read, so that Node leaves it alone.
    request.read(0)
    if (this.#draining < drainedAtOnceMax) this.#drain(request)
    else {
      request.pause()
      this.#closeAfter(request, lingerMs)
    }
  }

  #drain(request: IncomingMessage): void {
    this.#draining++
    request.once('close', () => this.#draining--)
    request.resume()
    this.#closeAfter(request, drainMs)
  }

  /** Closes a connection after a delay, unless its request has ended by then. */
  #closeAfter(request: IncomingMessage, delayMs: number): void {
    const close = () => this.#closings.run(turnOwner(request), () => request.socket.destroy())
    const timer = setTimeout(close, delayMs).unref()
    request.once('end', () => clearTimeout(timer))
  }
}

import type { IncomingMessage, ServerResponse } from 'node:http'
import { FairTurns, turnOwner } from './fair-turns.ts'

/** Refused requests whose bodies are read to the end at once, so that clients which send first and read later get an answer. */
const drainedAtOnceMax = 16

/** How long a body is read after its response. */
const drainMs = 10_000

/** How long any other connection stays open for the client to read the response. */
const lingerMs = 2_000

/**
 * Ends requests that were answered before their body was read. Node would read the rest at full speed for as long as it
 * comes, which lets a flood of refused bodies starve everything else.
 */
export class UnreadBodies {
  #draining = 0
  /** The system takes over a millisecond to drop megabytes that were never read. */
  readonly #closings: FairTurns

  /** @param accepted  returns how many connections the server has accepted so far */
  constructor(accepted: () => number) {
    this.#closings = new FairTurns(1, accepted)
  }

  /** Call before the request is handled. */
  watch(request: IncomingMessage, response: ServerResponse): void {
    const { 'content-length': length, 'transfer-encoding': encoding } = request.headers
    if (encoding === undefined && !(Number(length) > 0)) return
    // Node decides on `finish`, which comes later.
    response.once('prefinish', () => {
      // The client of a destroyed request has gone, and its close event has passed.
      if (!request.complete && !request.destroyed) this.#end(request)
    })
  }

  #end(request: IncomingMessage): void {
    // Marks the body as read by us; Node then leaves it alone.
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

  /** Closes a connection unless its request has ended by then. */
  #closeAfter(request: IncomingMessage, delayMs: number): void {
    const close = () => this.#closings.run(turnOwner(request), () => request.socket.destroy())
    const timer = setTimeout(close, delayMs).unref()
    request.once('end', () => clearTimeout(timer))
  }
}

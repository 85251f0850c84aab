import type { IncomingHttpHeaders, IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { toNodeHandler } from 'h3'
import { WbError } from '../contract/errors.ts'
import type { App } from './app.ts'
import { smallBodyBytes } from './body-memory.ts'
import { FairTurns, turnOwner } from './fair-turns.ts'
import { createHeadCheck } from './request-head.ts'
import { joinSmallChunks } from './small-chunks.ts'
import { UnreadBodies } from './unread-bodies.ts'
import { refuseRequest } from './wire-errors.ts'

/** Maximum number of requests with a small or no body that start in one turn of the event loop. */
const startsPerTurn = 8

/**
 * Cost of a request with a large body, in small requests. The body is read even if the request is refused.
 */
const largeBodyCost = 4

/**
 * Returns a listener for Node's server that answers requests with an application. An exception affects only
 * its own connection: it is logged, and answered with 500 if no response has started.
 */
export function createNodeListener(app: App, accepted: () => number): RequestListener {
  const handle = toNodeHandler(app.h3)
  const faultOf = createHeadCheck()
  const unreadBodies = new UnreadBodies(accepted)
  const pipelines = new PipelineLimiter()
  const starts = new FairTurns(startsPerTurn, accepted)
  return (request, response) => {
    if (!pipelines.admit(response)) return
    const isLarge = hasLargeBody(request.headers)
    if (isLarge) joinSmallChunks(request)
    const start = () => {
      if (!response.closed) void serve(request, response)
    }
    const { address, credential } = turnOwner(request)
    // Large bodies have a separate queue, so small requests of the same caller can overtake them.
    if (isLarge) starts.run({ address, credential: `large ${credential}` }, start, largeBodyCost)
    else starts.run({ address, credential }, start)
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const contain = (error: unknown) => {
      app.log.error({ error }, 'a request failed outside the application')
      endWithError(response, app)
    }
    response.on('error', contain)
    try {
      const fault = faultOf(request)
      if (fault) refuseRequest(response, fault, app)
      else {
        unreadBodies.watch(request, response)
        await handle(request, response)
      }
    } catch (error) {
      contain(error)
    }
  }
}

function hasLargeBody(headers: IncomingHttpHeaders): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > smallBodyBytes
}

function endWithError(response: ServerResponse, app: App): void {
  if (response.headersSent) response.destroy()
  else
    refuseRequest(response, new WbError('internal_error', 'the runtime failed to answer this request'), app)
}

/**
 * Maximum number of pipelined requests of a connection that wait for a response. A small request can have a
 * large response.
 */
const pipelinedMax = 16

/** Counts the unanswered requests of each connection, and closes a connection that sends too many. */
class PipelineLimiter {
  readonly #unanswered = new WeakMap<object, number>()

  /** Returns false if the connection had too many unanswered requests and was closed. */
  admit(response: ServerResponse): boolean {
    const { socket } = response.req
    const unanswered = (this.#unanswered.get(socket) ?? 0) + 1
    if (unanswered > pipelinedMax) {
      socket.destroy()
      return false
    }
    this.#unanswered.set(socket, unanswered)
    response.once('close', () => this.#unanswered.set(socket, this.#unanswered.get(socket)! - 1))
    return true
  }
}

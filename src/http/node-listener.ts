import type { IncomingHttpHeaders, IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { toNodeHandler } from 'h3'
import { WbError } from '../contract/errors.ts'
import type { App } from './app.ts'
import { smallBodyBytes } from './body-memory.ts'
import { FairScheduler, workOwner } from './fair-scheduler.ts'
import { createHeadCheck } from './request-head.ts'
import { joinSmallChunks } from './small-chunks.ts'
import { UnreadBodies } from './unread-bodies.ts'
import { rejectRequest } from './wire-errors.ts'

/** Maximum number of requests with a small body, or without a body, that start in one event loop tick. */
const startsPerTick = 8

/**
 * Number of small requests that a request with a large body counts as. It also applies to rejected requests, because
 * their bodies are read, too.
 */
const largeBodyCost = 4

/**
 * Returns a listener for Node's HTTP server that passes requests to an application. An exception affects only its
 * connection: it is logged, and the client gets status 500 if no response has started.
 */
export function createNodeListener(app: App, countAccepted: () => number): RequestListener {
  const handle = toNodeHandler(app.h3)
  const checkHead = createHeadCheck()
  const unreadBodies = new UnreadBodies(countAccepted)
  const pipelines = new PipelineLimiter()
  const scheduler = new FairScheduler(startsPerTick, countAccepted)
  return (request, response) => {
    if (!pipelines.admit(response)) return
    const isLarge = hasLargeBody(request.headers)
    if (isLarge) joinSmallChunks(request)
    const start = () => {
      if (!response.closed) void serve(request, response)
    }
    const { address, credential } = workOwner(request)
    // Large bodies have a separate queue, so small requests of the same caller can overtake them.
    if (isLarge) scheduler.run({ address, credential: `large ${credential}` }, start, largeBodyCost)
    else scheduler.run({ address, credential }, start)
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const handleFailure = (error: unknown) => {
      app.log.error({ error }, 'a request failed outside the application')
      endWithError(response, app)
    }
    response.on('error', handleFailure)
    try {
      const error = checkHead(request)
      if (error) rejectRequest(response, error, app)
      else {
        unreadBodies.watch(request, response)
        await handle(request, response)
      }
    } catch (error) {
      handleFailure(error)
    }
  }
}

function hasLargeBody(headers: IncomingHttpHeaders): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > smallBodyBytes
}

function endWithError(response: ServerResponse, app: App): void {
  if (response.headersSent) response.destroy()
  else
    rejectRequest(response, new WbError('internal_error', 'the runtime could not process this request'), app)
}

/**
 * Maximum number of pipelined requests that wait for a response on one connection. It is low, because a small
 * request can have a large response.
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

import { type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Log } from '../base/log.ts'
import { WbError } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import { toErrorReply } from './error-reply.ts'
import { commonHeaders, type HeaderPairs, replaceHeaders } from './headers.ts'
import { wellFormedHint } from './request-head.ts'
import { createTrace } from './trace.ts'

/** Settings and log of the application that serves a connection. */
export interface WireErrorContext {
  readonly settings: { readonly requestIdHeader: string; readonly production: boolean }
  readonly log: Log
}

/**
 * Time in milliseconds for which the connection of a rejected request stays open, so that the client can read the
 * response.
 */
const lingerMs = 2_000

/**
 * Makes Node's server send the error envelope instead of its default error responses: for invalid HTTP, headers over
 * the limit, a request timeout, and `CONNECT`. Requests with an unknown `Expect` header are passed to the application.
 *
 * @see docs/errors.md
 */
export function installWireErrors(server: Server, getContext: () => WireErrorContext): void {
  // Node reads these properties for each connection, although its types declare most of them as options only. The
  // application checks for a missing Host header and for too many headers, because Node would send an empty 400
  // response, or drop headers silently.
  Object.assign(server, {
    maxHeaderSize: limits.headerBytes,
    maxHeadersCount: limits.headerCount + 1,
    requireHostHeader: false,
  })
  // `100 Continue` is sent when the body is read.
  server.on('checkContinue', (request, response) => server.emit('request', request, response))
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code === 'ECONNRESET') socket.destroy()
    else rejectSocket(socket, toWireError(error.code), getContext())
  })
  server.on('connect', (_request, socket) => {
    // Node has removed its error listener from this socket, and a connection reset without a listener would crash
    // the process.
    socket.on('error', () => socket.destroy())
    // Node has also removed the listeners that complete a response in progress.
    if (pendingResponse(socket)) socket.destroy()
    else rejectSocket(socket, new WbError('not_found', 'CONNECT is not supported'), getContext())
  })
}

/** Sends an error response for a request that has not reached the application, and closes its connection. */
export function rejectRequest(response: ServerResponse, error: WbError, context: WireErrorContext): void {
  const { status, pairs, body } = wireReply(error, context)
  response.writeHead(status, pairs.flat()).end(response.req.method === 'HEAD' ? undefined : body)
}

function toWireError(code: string | undefined): WbError {
  if (code === 'HPE_HEADER_OVERFLOW')
    return new WbError('headers_too_large', `the headers are larger than ${limits.headerBytes} bytes`)
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new WbError('validation_error', 'the request took too long to arrive', { hint: wellFormedHint })
  return new WbError('validation_error', 'the request is not valid HTTP', { hint: wellFormedHint })
}

/**
 * Sends an error response on the socket and closes the connection. If a complete request is still waiting for its
 * response, closes the connection after that response instead. If a response has started, interrupts it.
 */
function rejectSocket(socket: Duplex, error: WbError, context: WireErrorContext): void {
  const pending = pendingResponse(socket)
  if (pending?.req.complete && !pending.headersSent) {
    pending.shouldKeepAlive = false
    return
  }
  if (!socket.writable || pending?.headersSent) {
    if (!socket.writableEnded) socket.destroy()
    return
  }
  const { status, pairs, body } = wireReply(error, context)
  const head = pairs.map(([name, value]) => `${name}: ${value}`)
  const isHead = pending?.req.method === 'HEAD'
  const lines = [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...head, '', isHead ? '' : body]
  socket.end(lines.join('\r\n'))
  socket.resume()
  setTimeout(() => socket.destroy(), lingerMs).unref()
}

/**
 * Returns the response in progress, which Node stores in an undocumented property of the socket. The property has
 * not changed since the first releases of Node.
 */
function pendingResponse(socket: Duplex): ServerResponse | undefined {
  return '_httpMessage' in socket ? ((socket._httpMessage as ServerResponse | null) ?? undefined) : undefined
}

interface WireReply {
  readonly status: number
  readonly pairs: HeaderPairs
  readonly body: string
}

function wireReply(error: WbError, { settings }: WireErrorContext): WireReply {
  const trace = createTrace(undefined, undefined)
  const { status, headers, envelope } = toErrorReply(error, trace.requestId)
  const body = JSON.stringify(envelope)
  const pairs: HeaderPairs = [
    ...commonHeaders(settings.production),
    [settings.requestIdHeader.toLowerCase(), trace.requestId],
    ['traceparent', trace.traceparent],
    ['content-type', 'application/json'],
    ['content-length', String(Buffer.byteLength(body))],
    ['connection', 'close'],
  ]
  return { status, pairs: replaceHeaders(pairs, headers), body }
}

import type { Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Log } from '../base/log.ts'
import { WbError } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import { toErrorReply } from './error-reply.ts'
import { commonHeaders, type HeaderPairs, replaceHeaders } from './headers.ts'
import { wellFormedHint } from './request-head.ts'
import { createTrace } from './trace.ts'

/** Settings and log of the application that serves a connection. */
export interface WireErrorParts {
  readonly settings: { readonly requestIdHeader: string; readonly production: boolean }
  readonly log: Log
}

/**
 * Time in milliseconds for which a refused connection may keep sending, so that the client reads the response
 * before the close.
 */
const lingerMs = 2_000

/**
 * Makes Node's server answer with the error envelope where it would send its own response: invalid HTTP,
 * headers over the limit, a request timeout, `CONNECT`. Unknown expectations go to the application.
 *
 * @see docs/errors.md
 */
export function installWireErrors(server: Server, parts: () => WireErrorParts): void {
  // Node reads these settings per connection, although its types list most of them as options only. The
  // application reports a missing Host and too many headers with the error envelope. Node would send an empty
  // 400, and silently drop headers.
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
    else refuseSocket(socket, wireError(error.code), parts())
  })
  server.on('connect', (_request, socket) => {
    // Node has taken its own error listener off this socket, and a reset without a listener ends the process.
    socket.on('error', () => socket.destroy())
    // Node has also removed the listeners that end a response that is not read, or send the rest of one.
    if (pendingResponse(socket)) socket.destroy()
    else refuseSocket(socket, new WbError('not_found', 'no route answers CONNECT'), parts())
  })
}

/** Answers a request that the application has not seen, and closes its connection. */
export function refuseRequest(response: ServerResponse, error: WbError, parts: WireErrorParts): void {
  const { status, pairs, body } = wireReply(error, parts)
  response.writeHead(status, pairs.flat()).end(response.req.method === 'HEAD' ? undefined : body)
}

function wireError(code: string | undefined): WbError {
  if (code === 'HPE_HEADER_OVERFLOW')
    return new WbError('headers_too_large', `the headers are larger than ${limits.headerBytes} bytes`)
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new WbError('validation_error', 'the request took too long to arrive', { hint: wellFormedHint })
  return new WbError('validation_error', 'the request is not valid HTTP', { hint: wellFormedHint })
}

/**
 * Answers on the socket itself, after a response in progress: a complete request still gets its own response,
 * then the connection closes. A started response can only be cut off.
 */
function refuseSocket(socket: Duplex, error: WbError, parts: WireErrorParts): void {
  const pending = pendingResponse(socket)
  if (pending?.req.complete && !pending.headersSent) {
    pending.shouldKeepAlive = false
    return
  }
  if (!socket.writable || pending?.headersSent) {
    if (!socket.writableEnded) socket.destroy()
    return
  }
  const { status, pairs, body } = wireReply(error, parts)
  const head = pairs.map(([name, value]) => `${name}: ${value}`)
  const isHead = pending?.req.method === 'HEAD'
  const lines = [`HTTP/1.1 ${status} ${reasonPhrases[status] ?? 'Error'}`, ...head, '', isHead ? '' : body]
  socket.end(lines.join('\r\n'))
  socket.resume()
  setTimeout(() => socket.destroy(), lingerMs).unref()
}

/**
 * Returns the response in progress, which Node stores on the socket. The field is undocumented, but has not
 * changed since Node's first releases.
 */
function pendingResponse(socket: Duplex): ServerResponse | undefined {
  return '_httpMessage' in socket ? ((socket._httpMessage as ServerResponse | null) ?? undefined) : undefined
}

interface WireReply {
  readonly status: number
  readonly pairs: HeaderPairs
  readonly body: string
}

function wireReply(error: WbError, { settings }: WireErrorParts): WireReply {
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

const reasonPhrases: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  404: 'Not Found',
  431: 'Request Header Fields Too Large',
}

import type { Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { WbError } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import { failureOf } from './envelope.ts'
import { commonHeaders, type HeaderPairs, withHeaders } from './headers.ts'
import { traceOf } from './trace.ts'

/** What a response below the application looks like. */
export interface WireSettings {
  readonly requestIdHeader: string
  readonly production: boolean
}

/** How long a connection that was refused may go on sending, so that it gets to read why. */
const lingerMs = 2_000

/**
 * Let Node's server refuse in the product's own form what it refuses on its own: what is no HTTP, headers beyond
 * their bound, a request that never ends, a tunnel. What it would answer without a body it passes on instead.
 *
 * @see specification 7.1, contract: below the framework
 */
export function installWireErrors(server: Server, settings: () => WireSettings): void {
  // Node reads both for each connection, though its types know them as options only. A missing Host would be answered
  // with an empty 400; the application answers it with an envelope.
  Object.assign(server, { maxHeaderSize: limits.headerBytes, requireHostHeader: false })
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code !== 'ECONNRESET') refuse(socket, wireError(error.code), settings())
    else socket.destroy()
  })
  server.on('connect', (_request, socket) => {
    refuse(socket, new WbError('not_found', 'no route answers CONNECT'), settings())
  })
}

const wellFormed = 'Send a well-formed HTTP/1.1 request.'

function wireError(code: string | undefined): WbError {
  if (code === 'HPE_HEADER_OVERFLOW')
    return new WbError('headers_too_large', `the headers are larger than ${limits.headerBytes} bytes`)
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new WbError('validation_error', 'the request took too long to arrive', { hint: wellFormed })
  return new WbError('validation_error', 'the request is not valid HTTP', { hint: wellFormed })
}

function refuse(socket: Duplex, error: WbError, settings: WireSettings): void {
  if (!socket.writable || hasBegunToAnswer(socket)) {
    if (!socket.writableEnded) socket.destroy()
    return
  }
  socket.end(responseText(error, settings))
  socket.resume()
  setTimeout(() => socket.destroy(), lingerMs).unref()
}

/** A second head in the middle of a response would be read as its body. */
function hasBegunToAnswer(socket: Duplex): boolean {
  return 'bytesWritten' in socket && '_httpMessage' in socket
    ? Boolean((socket._httpMessage as { headersSent?: boolean } | null)?.headersSent)
    : false
}

function responseText(error: WbError, settings: WireSettings): string {
  const trace = traceOf(undefined, undefined)
  const { status, headers, envelope } = failureOf(error, trace.requestId)
  const body = JSON.stringify(envelope)
  const pairs: HeaderPairs = [
    ...commonHeaders(settings.production),
    [settings.requestIdHeader.toLowerCase(), trace.requestId],
    ['traceparent', trace.traceparent],
    ['content-type', 'application/json'],
    ['content-length', String(Buffer.byteLength(body))],
    ['connection', 'close'],
  ]
  const head = withHeaders(pairs, headers).map(([name, value]) => `${name}: ${value}`)
  return [`HTTP/1.1 ${status} ${reasons[status] ?? 'Error'}`, ...head, '', body].join('\r\n')
}

const reasons: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  404: 'Not Found',
  431: 'Request Header Fields Too Large',
}

import { Readable } from 'node:stream'
import type { Fetch, IncomingResponse, OutgoingRequest } from '../fetch.ts'
import { speaksTlsCode, Unreachable, unexpectedResponse } from '../unreachable.ts'
import type { ConnectionPool, PoolResponse } from './connection-pool.ts'
import { countBytes } from './count-bytes.ts'
import type { NetworkOptions, Proxies } from './network-options.ts'
import { brokenConnectionCodes } from './retry-options.ts'
import { requestTimeouts, type Timeouts } from './timeouts.ts'

export interface Network {
  readonly fetch: Fetch
  /** Closes the connections; requests in progress fail. */
  close(): Promise<void>
}

/**
 * Maximum size of a response, in bytes. The largest response has about 200 MB: a thousand hits with vectors of
 * 16,384 numbers.
 */
const responseBytesMax = 256_000_000

/**
 * Opens a transport over the network, with persistent connections. Requests with a temporary failure are retried if
 * that is safe. Streams are not retried.
 *
 * A request throws Unreachable if it cannot connect, or if the connection breaks.
 *
 * @see docs/decisions/0020-transport.md
 */
export function openNetwork(options: NetworkOptions = {}): Network {
  const pools = new Map<string, Promise<ConnectionPool>>()
  const poolFor = (protocol: string) => {
    const pool =
      pools.get(protocol) ??
      import('./connection-pool.ts').then(({ openConnectionPool }) => openConnectionPool(protocol, options))
    pools.set(protocol, pool)
    return pool
  }
  return {
    async fetch(address, outgoing) {
      const url = new URL(address)
      return send(await poolFor(url.protocol), url, outgoing, options)
    },
    async close() {
      for (const pool of pools.values()) await (await pool).close()
    },
  }
}

function send(
  pool: ConnectionPool,
  url: URL,
  outgoing: OutgoingRequest,
  options: NetworkOptions,
): Promise<IncomingResponse> {
  const { method, signal, onSent } = outgoing
  const headers = { ...(options.userAgent && { 'user-agent': options.userAgent }), ...outgoing.headers }
  const request = {
    origin: url.origin,
    path: url.pathname + url.search,
    method,
    headers,
    signal,
    ...requestTimeouts(outgoing, options.idleTimeoutMs),
  }
  const proxy = proxyFor(url, options.proxies)
  const toCallerError = (error: Error) =>
    signal?.aborted ? signal.reason : unreachableError(url, error, { proxy, ...request })
  return new Promise((resolve, reject) => {
    let hasResponse = false
    const retryContext = { method, signal, hasResponse: () => hasResponse, onRetry: options.onRetry, onSent }
    pool.send(
      { ...request, body: encodeBody(outgoing) },
      isStream(outgoing) ? undefined : retryContext,
      (error, response) => {
        hasResponse = true
        if (!error) return resolve(toIncomingResponse(url, response, toCallerError))
        if (proxy || signal?.aborted) return reject(toCallerError(error))
        void explainBrokenConnection(url, error).then(explained => reject(toCallerError(explained)))
      },
    )
  })
}

/**
 * Returns a more precise error for a broken connection if the server requires TLS. Such a server closes an
 * unencrypted connection without a message.
 */
async function explainBrokenConnection(url: URL, error: Error & { code?: string }): Promise<Error> {
  if (url.protocol !== 'http:' || !brokenConnectionCodes.has(error.code ?? '')) return error
  const { speaksTls } = await import('./speaks-tls.ts')
  if (!(await speaksTls(url))) return error
  return Object.assign(new Error('the server requires TLS', { cause: error }), { code: speaksTlsCode })
}

/** Returns true if the request or its response is streamed. Streams are not retried; the caller must resume them. */
function isStream({ headers, body }: OutgoingRequest): boolean {
  return (
    (body !== undefined && typeof body !== 'string') || Boolean(headers.accept?.includes('text/event-stream'))
  )
}

function encodeBody({ body, onSent }: OutgoingRequest): string | Readable | undefined {
  if (body === undefined || typeof body === 'string') return body
  return onSent ? countBytes(body, onSent) : Readable.from(body, { objectMode: false })
}

function toIncomingResponse(
  url: URL,
  { statusCode, headers, body }: PoolResponse,
  toCallerError: (error: Error) => Error,
): IncomingResponse {
  // Without a listener, an error in an unread response would crash the process.
  body.on('error', () => {})
  return {
    url: url.href,
    status: statusCode,
    headers: {
      get: name => joinHeader(headers[name.toLowerCase()]),
      *[Symbol.iterator]() {
        for (const [name, value] of Object.entries(headers)) yield [name, joinHeader(value) ?? '']
      },
    },
    body,
    text: () => readText(url, body, toCallerError),
  }
}

/** @throws Unreachable  the response is interrupted, or is too large */
async function readText(
  url: URL,
  body: PoolResponse['body'],
  toCallerError: (error: Error) => Error,
): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of body) {
      size += (chunk as Buffer).length
      if (size > responseBytesMax) break
      chunks.push(chunk as Buffer)
    }
  } catch (error) {
    throw toCallerError(error as Error)
  }
  if (size > responseBytesMax)
    throw unexpectedResponse(`${url.origin} sent more than ${responseBytesMax} bytes`)
  // undici releases the connection in the next turn of the event loop. A request before that would open another
  // connection.
  await new Promise(resolve => setImmediate(resolve))
  return Buffer.concat(chunks).toString('utf8')
}

function joinHeader(value: string | string[] | undefined): string | null {
  return Array.isArray(value) ? value.join(', ') : (value ?? null)
}

const reasonOfErrorCode: Record<string, string> = {
  [speaksTlsCode]: 'it uses https, not http',
  ECONNREFUSED: 'connection refused',
  ENOTFOUND: 'host not found',
  EAI_AGAIN: 'the host name cannot be resolved now',
  ECONNRESET: 'the connection was lost',
  EPIPE: 'the connection was lost',
  UND_ERR_SOCKET: 'the connection was lost',
  ETIMEDOUT: 'it does not respond',
  UND_ERR_CONNECT_TIMEOUT: 'it does not respond',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is not trusted',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate is not trusted',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate is not trusted',
  UNABLE_TO_GET_ISSUER_CERT: 'its certificate is not trusted',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its certificate is not trusted',
  ERR_SSL_WRONG_VERSION_NUMBER: 'it uses http, not https',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'it uses http, not https',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another host',
  UND_ERR_PRX_TLS: 'the certificate of the proxy is not trusted',
}

/**
 * Returns the address of the proxy for a protocol, without user information. The proxy is not used if the host is in
 * `NO_PROXY`, which is not checked here.
 */
function proxyFor({ protocol }: URL, { http, https }: Proxies = {}): string | undefined {
  const proxy = protocol === 'https:' ? (https ?? http) : http
  return proxy && `${new URL(proxy).protocol}//${new URL(proxy).host}`
}

function unreachableError(
  { origin }: URL,
  error: Error & { code?: string },
  { proxy, headersTimeout, bodyTimeout }: Timeouts & { proxy: string | undefined },
): Unreachable {
  if (error.code === 'UND_ERR_HEADERS_TIMEOUT')
    return idleTimeoutError(`${origin} did not respond within ${headersTimeout / 1_000} s`, error)
  if (error.code === 'UND_ERR_BODY_TIMEOUT')
    return idleTimeoutError(`${origin} stopped sending its response for ${bodyTimeout / 1_000} s`, error)
  return new Unreachable(
    `no runtime responds at ${origin}: ${describeError(error, proxy)}`,
    proxy
      ? `Check the address (--url, WB_URL) and the proxy ${proxy} (HTTPS_PROXY, HTTP_PROXY, NO_PROXY).`
      : 'Check the address (--url, WB_URL), or start a runtime there.',
    { cause: error },
  )
}

function idleTimeoutError(message: string, cause: Error): Unreachable {
  return new Unreachable(message, 'Try again, or raise WB_IDLE_TIMEOUT (seconds).', { cause })
}

/** Error codes that undici uses if a proxy refuses the connection. It has no specific code for this. */
const proxyRefusalCodes = ['UND_ERR_ABORTED', 'UND_ERR_INVALID_ARG']

function describeError({ code, message }: Error & { code?: string }, proxy: string | undefined): string {
  if (proxy && code && proxyRefusalCodes.includes(code)) return `the proxy refused the connection: ${message}`
  return (code && reasonOfErrorCode[code]) ?? code ?? message
}

import { Readable } from 'node:stream'
import type { Fetch, Incoming, Outgoing } from '../fetch.ts'
import { speaksTlsCode, Unreachable, unexpectedResponse } from '../unreachable.ts'
import { countBytes } from './count-bytes.ts'
import type { NetworkOptions, Proxies } from './network-options.ts'
import { brokenConnectionCodes } from './retry-options.ts'
import { type Timeouts, timeoutsOf } from './timeouts.ts'
import type { Wire, WireResponse } from './wire.ts'

export interface Network {
  readonly fetch: Fetch
  /** Closes the connections; requests in progress fail. */
  close(): Promise<void>
}

/**
 * Maximum size of a response, in bytes. The largest is about 200 MB: a thousand hits with vectors of 16,384
 * numbers.
 */
const responseBytesMax = 256_000_000

/**
 * Opens a transport over the network, with persistent connections. Requests that failed temporarily are sent
 * again if that is safe; streams are not.
 *
 * A request throws Unreachable when it cannot connect, or the connection breaks.
 *
 * @see docs/decisions/0020-transport.md
 */
export function openNetwork(options: NetworkOptions = {}): Network {
  const wires = new Map<string, Promise<Wire>>()
  const wireFor = (protocol: string) => {
    const wire =
      wires.get(protocol) ?? import('./wire.ts').then(({ openWire }) => openWire(protocol, options))
    wires.set(protocol, wire)
    return wire
  }
  return {
    async fetch(address, outgoing) {
      const url = new URL(address)
      return send(await wireFor(url.protocol), url, outgoing, options)
    },
    async close() {
      for (const wire of wires.values()) await (await wire).close()
    },
  }
}

function send(wire: Wire, url: URL, outgoing: Outgoing, options: NetworkOptions): Promise<Incoming> {
  const { method, signal, onSent } = outgoing
  const headers = { ...(options.userAgent && { 'user-agent': options.userAgent }), ...outgoing.headers }
  const request = {
    origin: url.origin,
    path: url.pathname + url.search,
    method,
    headers,
    signal,
    ...timeoutsOf(outgoing, options.idleTimeoutMs),
  }
  const proxy = proxyFor(url, options.proxies)
  const fail = (error: Error) =>
    signal?.aborted ? signal.reason : unreachableError(url, error, { proxy, ...request })
  return new Promise((resolve, reject) => {
    let answered = false
    const retryContext = { method, signal, hasAnswered: () => answered, onRetry: options.onRetry, onSent }
    wire.send(
      { ...request, body: encodeBody(outgoing) },
      isStream(outgoing) ? undefined : retryContext,
      (error, answer) => {
        answered = true
        if (!error) return resolve(toIncoming(url, answer, fail))
        if (proxy || signal?.aborted) return reject(fail(error))
        void explainBrokenConnection(url, error).then(found => reject(fail(found)))
      },
    )
  })
}

/**
 * Explains a broken connection: a TLS server closes it without a message if the client does not speak TLS.
 */
async function explainBrokenConnection(url: URL, error: Error & { code?: string }): Promise<Error> {
  if (url.protocol !== 'http:' || !brokenConnectionCodes.has(error.code ?? '')) return error
  const { speaksTls } = await import('./speaks-tls.ts')
  if (!(await speaksTls(url))) return error
  return Object.assign(new Error('the server requires TLS', { cause: error }), { code: speaksTlsCode })
}

/** Returns true for a request or response that is streamed. The caller must resume it. */
function isStream({ headers, body }: Outgoing): boolean {
  return (
    (body !== undefined && typeof body !== 'string') || Boolean(headers.accept?.includes('text/event-stream'))
  )
}

function encodeBody({ body, onSent }: Outgoing): string | Readable | undefined {
  if (body === undefined || typeof body === 'string') return body
  return onSent ? countBytes(body, onSent) : Readable.from(body, { objectMode: false })
}

function toIncoming(
  url: URL,
  { statusCode, headers, body }: WireResponse,
  fail: (error: Error) => Error,
): Incoming {
  // Without a listener, an error of an unread response would end the process.
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
    text: () => readText(url, body, fail),
  }
}

/** @throws Unreachable  when the response breaks off, or is too large */
async function readText(
  url: URL,
  body: WireResponse['body'],
  fail: (error: Error) => Error,
): Promise<string> {
  const parts: Buffer[] = []
  let size = 0
  try {
    for await (const part of body) {
      size += (part as Buffer).length
      if (size > responseBytesMax) break
      parts.push(part as Buffer)
    }
  } catch (error) {
    throw fail(error as Error)
  }
  if (size > responseBytesMax)
    throw unexpectedResponse(`${url.origin} sent more than ${responseBytesMax} bytes`)
  // undici releases a connection one turn of the event loop later; an earlier request would open another one.
  await new Promise(resolve => setImmediate(resolve))
  return Buffer.concat(parts).toString('utf8')
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
 * Returns the proxy for a protocol, without the user information in its address. The host may still be
 * excepted from the proxy.
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

/** Error codes of undici when a proxy refuses. There is no specific one. */
const proxyRefusalCodes = ['UND_ERR_ABORTED', 'UND_ERR_INVALID_ARG']

function describeError({ code, message }: Error & { code?: string }, proxy: string | undefined): string {
  if (proxy && code && proxyRefusalCodes.includes(code)) return `the proxy refused the connection: ${message}`
  return (code && reasonOfErrorCode[code]) ?? code ?? message
}

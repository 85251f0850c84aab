import { lookup } from 'node:dns/promises'
import { isIP, type LookupFunction } from 'node:net'
import type { Readable } from 'node:stream'
import type { Agent, buildConnector } from 'undici'
import { type EndpointGuard, normalizeHost } from './endpoint-guard.ts'

export interface OutboundRequest {
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | null
  readonly signal: AbortSignal | null
}

/** The response to an outbound request. */
export interface OutboundResponse {
  readonly status: number
  readonly headers: { get(name: string): string | null }
  readonly body: AsyncIterable<Uint8Array> | null
}

/** Sends a request to another host. Does not follow redirects: a 3xx response is returned. */
export type Outbound = (url: URL, request: OutboundRequest) => Promise<OutboundResponse>

/** A pool of connections, each of which is used for several requests. */
export interface OutboundNetwork {
  readonly send: Outbound
  /** Like `send`, for libraries that need a `fetch`. */
  readonly fetch: typeof fetch
  /** Closes all connections. Requests in progress fail. */
  close(): Promise<void>
}

/**
 * Maximum number of connections to one host. If all are in use, further requests wait. A streamed response can occupy a
 * connection for minutes, so the limit is higher than the expected number of streams.
 */
const connectionsPerHost = 4_096
const connectTimeoutMs = 10_000
/** Time after which an idle connection is closed. It is longer than the pause between two batches of an ingest job. */
const keepAliveMs = 10_000

/** Resolves a host name to addresses. */
export type ResolveHost = (host: string) => Promise<readonly string[]>

export const systemResolve: ResolveHost = async host =>
  (await lookup(host, { all: true, verbatim: true })).map(({ address }) => address)

export interface OutboundNetworkDependencies {
  readonly guard: Pick<EndpointGuard, 'check' | 'resolutionFailure'>
  readonly resolve?: ResolveHost
}

type Undici = typeof import('undici')

/**
 * Creates a network with an undici dispatcher. It checks every connection with the guard, and ignores the environment
 * variables for proxies.
 *
 * Only connecting has a timeout. For the rest of a request, callers limit the time with the signal, because undici's
 * default timeout of 300 seconds would abort models that reason for longer. `send` does not use `fetch`, because that
 * takes twice as long.
 *
 * If the guard refuses a connection, the request fails. `endpointRefusalIn` returns the reason.
 *
 * @see docs/security.md#rule-14, docs/decisions/0009-connections.md
 */
export function openOutboundNetwork(deps: OutboundNetworkDependencies): OutboundNetwork {
  let opening: Promise<{ agent: Agent; undici: Undici }> | undefined
  const open = async () => {
    const undici = await import('undici')
    const agent = new undici.Agent({
      connections: connectionsPerHost,
      keepAliveTimeout: keepAliveMs,
      connect: guardedConnector(undici, deps),
      headersTimeout: 0,
      bodyTimeout: 0,
    })
    return { agent, undici }
  }
  return {
    fetch: (async (input: string | URL, init?: RequestInit) => {
      opening ??= open()
      const {
        agent,
        undici: { fetch },
      } = await opening
      const options = { ...init, redirect: 'manual', dispatcher: agent } as Parameters<typeof fetch>[1]
      return fetch(input, options)
    }) as unknown as typeof globalThis.fetch,
    async send(url, request) {
      opening ??= open()
      const { agent, undici } = await opening
      const headers = { 'accept-encoding': 'identity', ...request.headers }
      const response = await undici.request(url, { ...request, headers, dispatcher: agent })
      return {
        status: response.statusCode,
        headers: headersOf(response.headers),
        body: bodyOf(response.body),
      }
    },
    async close() {
      await (await opening)?.agent.destroy()
    },
  }
}

function headersOf(all: Record<string, string | string[] | undefined>): OutboundResponse['headers'] {
  return {
    get(name) {
      const value = all[name]
      return value === undefined ? null : [value].flat().join(', ')
    },
  }
}

/**
 * Returns a body that ends the request when its consumer stops reading, even before the first part. The iterator of a
 * stream would leak the connection if the consumer stops before the first part.
 */
function bodyOf(body: Readable): AsyncIterable<Uint8Array> {
  // The iterator throws these errors to the consumer. If nothing reads the body, they can be ignored.
  body.on('error', () => {})
  return {
    [Symbol.asyncIterator]() {
      const iterator = body[Symbol.asyncIterator]() as AsyncGenerator<Uint8Array, undefined, undefined>
      return {
        next: () => iterator.next(),
        return() {
          body.destroy()
          return iterator.return(undefined)
        },
      }
    },
  }
}

/** Returns a connector that resolves a host once, checks all addresses, and connects only to these addresses. */
function guardedConnector(
  { buildConnector }: Undici,
  { guard, resolve = systemResolve }: OutboundNetworkDependencies,
): buildConnector.connector {
  const defaultConnector = buildConnector({ timeout: connectTimeoutMs })
  return (options, done) => {
    const host = normalizeHost(options.hostname)
    const port = Number(options.port) || (options.protocol === 'https:' ? 443 : 80)
    const isAddress = isIP(host) !== 0
    const resolveAddresses = () =>
      resolve(host).catch((error: unknown) => {
        throw guard.resolutionFailure({ host, port }, error)
      })
    const selectConnector = async () => {
      const addresses = isAddress ? [host] : await resolveAddresses()
      guard.check({ host, port }, addresses)
      if (isAddress) return defaultConnector
      return buildConnector({ timeout: connectTimeoutMs, lookup: fixedLookup(addresses) })
    }
    selectConnector()
      .then(connect => connect(options, done))
      .catch(error => done(error, null))
  }
}

/** Returns a lookup function that always returns the given addresses. */
function fixedLookup(addresses: readonly string[]): LookupFunction {
  const results = addresses.map(address => ({ address, family: isIP(address) }))
  return (_host, options, done) => {
    if (options.all) done(null, results)
    else done(null, results[0]!.address, results[0]!.family)
  }
}

/**
 * Returns the delay in milliseconds that a response requests before a retry; undefined if it requests none. If the
 * response contains a date, the delay is computed from the date of the response.
 *
 * @see RFC 9110 section 10.2.3
 */
export function requestedDelayMs(headers: OutboundResponse['headers']): number | undefined {
  const text = headers.get('retry-after')
  if (text === null) return undefined
  const waitMs = /^\d+$/.test(text)
    ? Number(text) * 1_000
    : Date.parse(text) - Date.parse(headers.get('date') ?? '')
  return Number.isNaN(waitMs) ? undefined : Math.max(0, waitMs)
}

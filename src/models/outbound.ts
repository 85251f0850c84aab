import { lookup } from 'node:dns/promises'
import { isIP, type LookupFunction } from 'node:net'
import type { Readable } from 'node:stream'
import type { Agent, buildConnector } from 'undici'
import { type EndpointGuard, plainHost } from './guard.ts'

export interface OutboundRequest {
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | null
  readonly signal: AbortSignal | null
}

/** The part of a `Response` that is read. */
export interface OutboundAnswer {
  readonly status: number
  readonly headers: { get(name: string): string | null }
  readonly body: AsyncIterable<Uint8Array> | null
}

/** What carries a request to another host. It follows no redirect: a 3xx is an answer like any other. */
export type Outbound = (url: URL, request: OutboundRequest) => Promise<OutboundAnswer>

/** Connections that are kept between requests. */
export interface Network {
  readonly send: Outbound
  /** The same for libraries that want a `fetch`; it follows no redirect either. */
  readonly fetch: typeof fetch
  /** Let go of them; what is under way fails. */
  close(): Promise<void>
}

/**
 * Connections to one host; more requests wait for one. Each streamed answer holds a connection for minutes, so this is
 * above the streams that several callers may have open.
 */
const connectionsPerHost = 4_096
const connectTimeoutMs = 10_000
/** Longer than the pause between two batches of one ingest. */
const keepAliveMs = 10_000

/** The addresses of a name, as this machine resolves it. */
export type Resolve = (host: string) => Promise<readonly string[]>

const systemResolve: Resolve = async host =>
  (await lookup(host, { all: true, verbatim: true })).map(({ address }) => address)

export interface NetworkParts {
  readonly guard: EndpointGuard
  readonly resolve?: Resolve
}

type Undici = typeof import('undici')

/**
 * The network, by an undici dispatcher of the runtime's own, which asks the guard for every connection and reads no
 * proxy variables.
 *
 * The silence that it bears is for the caller to end, by the signal: the platform's `fetch` gives a model that thinks
 * longer than 300 seconds up, whatever the service allows. `send` is no `fetch`, which takes twice as long.
 *
 * A dial that the guard refuses fails the request; `refusalIn` finds the reason in the failure.
 *
 * @see docs/security.md#rule-14, docs/decisions/connections.md
 */
export function openNetwork(parts: NetworkParts): Network {
  let opening: Promise<{ agent: Agent; undici: Undici }> | undefined
  const open = async () => {
    const undici = await import('undici')
    const agent = new undici.Agent({
      connections: connectionsPerHost,
      keepAliveTimeout: keepAliveMs,
      connect: guardedConnector(undici, parts),
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
      const answer = await undici.request(url, { ...request, headers, dispatcher: agent })
      return { status: answer.statusCode, headers: headersOf(answer.headers), body: bodyOf(answer.body) }
    },
    async close() {
      await (await opening)?.agent.destroy()
    },
  }
}

function headersOf(all: Record<string, string | string[] | undefined>): OutboundAnswer['headers'] {
  return {
    get(name) {
      const value = all[name]
      return value === undefined ? null : [value].flat().join(', ')
    },
  }
}

/**
 * A body whose reader ends the request by leaving, also before the first part: the `return` of a stream's own iterator
 * does nothing then, and the connection would be held for ever.
 */
function bodyOf(body: Readable): AsyncIterable<Uint8Array> {
  // What fails is told to the reader; where there is none, nobody misses it.
  body.on('error', () => {})
  return {
    [Symbol.asyncIterator]() {
      const parts = body[Symbol.asyncIterator]() as AsyncGenerator<Uint8Array, undefined, undefined>
      return {
        next: () => parts.next(),
        return() {
          body.destroy()
          return parts.return(undefined)
        },
      }
    },
  }
}

/** Resolves a host once, has every address checked, and dials these addresses and no others. */
function guardedConnector(
  { buildConnector }: Undici,
  { guard, resolve = systemResolve }: NetworkParts,
): buildConnector.connector {
  const usual = buildConnector({ timeout: connectTimeoutMs })
  return (options, done) => {
    const host = plainHost(options.hostname)
    const port = Number(options.port) || (options.protocol === 'https:' ? 443 : 80)
    const isAddress = isIP(host) !== 0
    const addressesOf = () =>
      resolve(host).catch((error: unknown) => {
        throw guard.unresolved({ host, port }, error)
      })
    const dial = async () => {
      const addresses = isAddress ? [host] : await addressesOf()
      guard.check({ host, port }, addresses)
      if (isAddress) return usual
      return buildConnector({ timeout: connectTimeoutMs, lookup: answering(addresses) })
    }
    dial()
      .then(connect => connect(options, done))
      .catch(error => done(error, null))
  }
}

/** Looks nothing up: the addresses are known. */
function answering(addresses: readonly string[]): LookupFunction {
  const known = addresses.map(address => ({ address, family: isIP(address) }))
  return (_host, options, done) => {
    if (options.all) done(null, known)
    else done(null, known[0]!.address, known[0]!.family)
  }
}

/**
 * How long an answer asks to wait before the next try, in milliseconds. A date counts from the answer's own clock.
 *
 * @see RFC 9110 section 10.2.3
 */
export function retryAfterMs(headers: OutboundAnswer['headers']): number | undefined {
  const text = headers.get('retry-after')
  if (text === null) return undefined
  const waitMs = /^\d+$/.test(text)
    ? Number(text) * 1_000
    : Date.parse(text) - Date.parse(headers.get('date') ?? '')
  return Number.isNaN(waitMs) ? undefined : Math.max(0, waitMs)
}

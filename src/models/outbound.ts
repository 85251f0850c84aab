import type { Agent } from 'undici'

export interface OutboundRequest {
  readonly method: 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
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

/** More requests to one host wait for each other. */
const connectionsPerHost = 8
const connectTimeoutMs = 10_000
/** Longer than the pause between two batches of one ingest. */
const keepAliveMs = 10_000

/**
 * The network, by an undici dispatcher of the runtime's own, without a look at where an address leads.
 *
 * The silence that it bears is for the caller to end, by the signal: the platform's `fetch` gives a model that thinks
 * longer than 300 seconds up, whatever the service allows.
 *
 * @see docs/decisions/connections.md
 */
export function openNetwork(): Network {
  let opening: Promise<{ agent: Agent; fetch: typeof import('undici').fetch }> | undefined
  const open = async () => {
    const { Agent, fetch } = await import('undici')
    const agent = new Agent({
      connections: connectionsPerHost,
      keepAliveTimeout: keepAliveMs,
      connect: { timeout: connectTimeoutMs },
      headersTimeout: 0,
      bodyTimeout: 0,
    })
    return { agent, fetch }
  }
  return {
    fetch: (async (input: string | URL, init?: RequestInit) => {
      opening ??= open()
      const { agent, fetch } = await opening
      const options = { ...init, redirect: 'manual', dispatcher: agent } as Parameters<typeof fetch>[1]
      return fetch(input, options)
    }) as unknown as typeof globalThis.fetch,
    async send(url, request) {
      opening ??= open()
      const { agent, fetch } = await opening
      return fetch(url, { ...request, redirect: 'manual', dispatcher: agent })
    },
    async close() {
      await (await opening)?.agent.destroy()
    },
  }
}

/**
 * The whole body of an answer.
 *
 * @throws Error over `bytesMax`; the rest of the body is not read
 */
export async function readWhole(answer: OutboundAnswer, bytesMax: number): Promise<Buffer> {
  const parts: Uint8Array[] = []
  let length = 0
  for await (const part of answer.body ?? []) {
    length += part.length
    if (length > bytesMax) throw new Error(`answer of more than ${bytesMax} bytes`)
    parts.push(part)
  }
  return Buffer.concat(parts, length)
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

import { lookup } from 'node:dns'
import type { LookupFunction } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import { setFlagsFromString } from 'node:v8'
import type { Dispatcher } from 'undici'
import request from 'undici/lib/api/api-request.js'
import Agent from 'undici/lib/dispatcher/agent.js'
import retry from 'undici/lib/interceptor/retry.js'
import { cutIntoPieces } from '../cut-into-pieces.ts'
import { countBytes } from './count-bytes.ts'
import type { NetworkOptions, Proxies } from './network-options.ts'
import { type RetryContext, retryOptions } from './retry-options.ts'

const connectTimeoutMs = 10_000
const connectionsMax = 16

/**
 * Number of executed bytes after which V8 optimizes a WebAssembly function. undici's parser is one large
 * function that reaches the default after a few responses. A process cannot exit before the optimization is
 * done, 200 ms later.
 */
const wasmBudget = 1_000_000_000

export type WireResponse = Dispatcher.ResponseData
type WireRequest = Omit<Dispatcher.RequestOptions, 'method'> & { method: string }

/** Connections of one protocol. */
export interface Wire {
  /** @param sending  decides about retries; without it, there are none */
  send(
    asked: WireRequest,
    sending: RetryContext | undefined,
    done: (error: Error | null, answer: WireResponse) => void,
  ): void
  close(): Promise<void>
}

/** Loads undici, and only those parts that the options need. It does not connect yet. */
export async function openWire(protocol: string, options: NetworkOptions): Promise<Wire> {
  setFlagsFromString(`--wasm-tiering-budget=${wasmBudget}`)
  const tls = protocol === 'https:' ? await trustOptions(options) : {}
  const dispatcher = await createDispatcher(
    { timeout: connectTimeoutMs, lookup: lookUpHost, ...tls },
    options.proxies,
  )
  return {
    send(asked, sending, done) {
      const by = sending
        ? dispatcher.compose(countTextBody(sending), retry(retryOptions(sending)))
        : dispatcher
      request.call(by, asked as Dispatcher.RequestOptions, done)
    },
    close: () => dispatcher.destroy(),
  }
}

/**
 * Returns an interceptor that sends a text body in pieces to count them. It must be below the retries,
 * because a body in pieces can be read only once.
 */
function countTextBody({ onSent }: RetryContext): Dispatcher.DispatcherComposeInterceptor {
  return dispatch => (options, handler) => {
    if (!onSent || typeof options.body !== 'string') return dispatch(options, handler)
    const bytes = Buffer.from(options.body)
    const headers = { ...options.headers, 'content-length': String(bytes.length) }
    return dispatch({ ...options, headers, body: countBytes(cutIntoPieces(bytes), onSent) }, handler)
  }
}

/**
 * Resolves a name below `localhost` to this machine, whatever a resolver would return.
 *
 * @see RFC 6761 section 6.3
 */
const lookUpHost: LookupFunction = (host, options, done) =>
  lookup(host.endsWith('.localhost') ? 'localhost' : host, options, done)

type ConnectorOptions = ConnectionOptions & { timeout: number }

async function createDispatcher(
  connect: ConnectorOptions,
  proxies: Proxies | undefined,
): Promise<Dispatcher> {
  const options = { connections: connectionsMax, connect }
  if (!proxies?.http && !proxies?.https) return new Agent(options)
  const { createProxyDispatcher } = await import('./proxy-dispatcher.ts')
  return createProxyDispatcher(options, proxies)
}

/** Prepares the additional trusted certificates once for all connections. */
async function trustOptions({ certificate, authorities = [] }: NetworkOptions): Promise<ConnectionOptions> {
  if (certificate !== undefined) return trustOnly(certificate)
  if (authorities.length === 0) return {}
  const { createSecureContext, rootCertificates } = await import('node:tls')
  return { secureContext: createSecureContext({ ca: [...rootCertificates, ...authorities] }) }
}

/**
 * Trusts one certificate, under any host name. No other certificate is trusted, not even one of the same
 * authority.
 *
 * @param certificate  PEM, optionally followed by its chain
 */
async function trustOnly(certificate: string): Promise<ConnectionOptions> {
  const [{ createSecureContext }, { X509Certificate }] = await Promise.all([
    import('node:tls'),
    import('node:crypto'),
  ])
  const ca = new X509Certificate(certificate).toString()
  const secureContext = createSecureContext({ ca, allowPartialTrustChain: true })
  return { secureContext, checkServerIdentity: () => undefined }
}

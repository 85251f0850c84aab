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
 * Number of executed bytes after which V8 optimizes a WebAssembly function. Set high to prevent the optimization of
 * undici's parser, a large function that reaches the default after a few responses. The optimization takes 200 ms,
 * and a process cannot exit before it is done.
 */
const wasmTieringBudget = 1_000_000_000

export type PoolResponse = Dispatcher.ResponseData
type PoolRequest = Omit<Dispatcher.RequestOptions, 'method'> & { method: string }

/** Connections that use one protocol, `http:` or `https:`. */
export interface ConnectionPool {
  /**
   * Sends a request.
   *
   * @param retryContext  enables retries; undefined to send the request only once
   */
  send(
    poolRequest: PoolRequest,
    retryContext: RetryContext | undefined,
    done: (error: Error | null, response: PoolResponse) => void,
  ): void
  close(): Promise<void>
}

/** Loads the undici modules that the options require. Does not connect yet. */
export async function openConnectionPool(protocol: string, options: NetworkOptions): Promise<ConnectionPool> {
  setFlagsFromString(`--wasm-tiering-budget=${wasmTieringBudget}`)
  const tls = protocol === 'https:' ? await tlsOptions(options) : {}
  const dispatcher = await createDispatcher(
    { timeout: connectTimeoutMs, lookup: lookUpHost, ...tls },
    options.proxies,
  )
  return {
    send(poolRequest, retryContext, done) {
      const composed = retryContext
        ? dispatcher.compose(reportStringBodyProgress(retryContext), retry(retryOptions(retryContext)))
        : dispatcher
      request.call(composed, poolRequest as Dispatcher.RequestOptions, done)
    },
    close: () => dispatcher.destroy(),
  }
}

/**
 * Returns an interceptor that sends a string body in pieces to report progress. It must run inside the retry
 * interceptor, so that each attempt gets a new stream of pieces.
 */
function reportStringBodyProgress({ onSent }: RetryContext): Dispatcher.DispatcherComposeInterceptor {
  return dispatch => (options, handler) => {
    if (!onSent || typeof options.body !== 'string') return dispatch(options, handler)
    const bytes = Buffer.from(options.body)
    const headers = { ...options.headers, 'content-length': String(bytes.length) }
    return dispatch({ ...options, headers, body: countBytes(cutIntoPieces(bytes), onSent) }, handler)
  }
}

/**
 * Resolves names that end in `.localhost` like `localhost`, because a resolver could return another address.
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

/** Returns TLS options with the trusted certificates, which are parsed once for all connections. */
async function tlsOptions({ certificate, authorities = [] }: NetworkOptions): Promise<ConnectionOptions> {
  if (certificate !== undefined) return trustSingleCertificate(certificate)
  if (authorities.length === 0) return {}
  const { createSecureContext, rootCertificates } = await import('node:tls')
  return { secureContext: createSecureContext({ ca: [...rootCertificates, ...authorities] }) }
}

/**
 * Returns TLS options that trust one certificate, for any host name. No other certificate is trusted, even if the
 * same authority issued it.
 *
 * @param certificate  PEM, optionally followed by its chain
 */
async function trustSingleCertificate(certificate: string): Promise<ConnectionOptions> {
  const [{ createSecureContext }, { X509Certificate }] = await Promise.all([
    import('node:tls'),
    import('node:crypto'),
  ])
  const ca = new X509Certificate(certificate).toString()
  const secureContext = createSecureContext({ ca, allowPartialTrustChain: true })
  return { secureContext, checkServerIdentity: () => undefined }
}

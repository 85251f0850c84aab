import { lookup } from 'node:dns'
import type { LookupFunction } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import { setFlagsFromString } from 'node:v8'
import type { Dispatcher } from 'undici'
import request from 'undici/lib/api/api-request.js'
import Agent from 'undici/lib/dispatcher/agent.js'
import retry from 'undici/lib/interceptor/retry.js'
import { counted } from './counted.ts'
import type { NetworkOptions, Proxies } from './network-options.ts'
import { inPieces } from './pieces.ts'
import { retries, type Sending } from './retries.ts'

const connectTimeoutMs = 10_000
const connectionsMax = 16

/**
 * What V8 lets WebAssembly run before it optimises it, in bytes executed. undici's parser is one large function, which
 * a few answers make due; a process does not end before that is done, 200 ms later.
 */
const wasmBudget = 1_000_000_000

export type Answer = Dispatcher.ResponseData
type Asked = Omit<Dispatcher.RequestOptions, 'method'> & { method: string }

/** Connections of one protocol. */
export interface Wire {
  /** @param sending  says when to send again; without it, it is sent once */
  send(asked: Asked, sending: Sending | undefined, done: (error: Error | null, answer: Answer) => void): void
  close(): Promise<void>
}

/** Load undici, and what the options ask for beside it; nothing is connected yet. */
export async function openWire(protocol: string, options: NetworkOptions): Promise<Wire> {
  setFlagsFromString(`--wasm-tiering-budget=${wasmBudget}`)
  const tls = protocol === 'https:' ? await trusting(options) : {}
  const dispatcher = await dispatcherFor(
    { timeout: connectTimeoutMs, lookup: lookedUp, ...tls },
    options.proxies,
  )
  return {
    send(asked, sending, done) {
      const by = sending ? dispatcher.compose(textCounted(sending), retry(retries(sending))) : dispatcher
      request.call(by, asked as Dispatcher.RequestOptions, done)
    },
    close: () => dispatcher.destroy(),
  }
}

/** A text that somebody counts goes in pieces. Below the retries, as a body in pieces is read once. */
function textCounted({ onSent }: Sending): Dispatcher.DispatcherComposeInterceptor {
  return dispatch => (options, handler) => {
    if (!onSent || typeof options.body !== 'string') return dispatch(options, handler)
    const bytes = Buffer.from(options.body)
    const headers = { ...options.headers, 'content-length': String(bytes.length) }
    return dispatch({ ...options, headers, body: counted(inPieces(bytes), onSent) }, handler)
  }
}

/** A name below `localhost` is this machine, whatever a resolver would say. @see RFC 6761 section 6.3 */
const lookedUp: LookupFunction = (host, options, done) =>
  lookup(host.endsWith('.localhost') ? 'localhost' : host, options, done)

type Connecting = ConnectionOptions & { timeout: number }

async function dispatcherFor(connect: Connecting, proxies: Proxies | undefined): Promise<Dispatcher> {
  const options = { connections: connectionsMax, connect }
  if (!proxies?.http && !proxies?.https) return new Agent(options)
  const { byProxy } = await import('./proxied.ts')
  return byProxy(options, proxies)
}

/** Trust beside the roots of Node, prepared once for all connections. */
async function trusting({ certificate, authorities = [] }: NetworkOptions): Promise<ConnectionOptions> {
  if (certificate !== undefined) return trustingOnly(certificate)
  if (authorities.length === 0) return {}
  const { createSecureContext, rootCertificates } = await import('node:tls')
  return { secureContext: createSecureContext({ ca: [...rootCertificates, ...authorities] }) }
}

/**
 * Trust one certificate, under whatever name, and none that an authority has signed, also not another one of the
 * authority that has signed it.
 *
 * @param certificate  PEM; those of its chain may follow
 */
async function trustingOnly(certificate: string): Promise<ConnectionOptions> {
  const [{ createSecureContext }, { X509Certificate }] = await Promise.all([
    import('node:tls'),
    import('node:crypto'),
  ])
  const ca = new X509Certificate(certificate).toString()
  const secureContext = createSecureContext({ ca, allowPartialTrustChain: true })
  return { secureContext, checkServerIdentity: () => undefined }
}

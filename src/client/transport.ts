import http from 'node:http'
import type https from 'node:https'
import { Readable } from 'node:stream'
import { notOurs, Unreachable } from './unreachable.ts'

/** What a client sends: the part of `RequestInit` that it uses. */
export interface Outgoing {
  method: string
  headers: Record<string, string>
  body?: string | AsyncIterable<Uint8Array>
  signal?: AbortSignal
}

/** What a client reads: the part of `Response` that it uses. */
export interface Incoming {
  /** Where it came from; empty inside the process. */
  readonly url: string
  readonly status: number
  readonly headers: { get(name: string): string | null }
  readonly body: AsyncIterable<Uint8Array> | null
  text(): Promise<string>
}

/** How requests leave: over the network, or into a runtime in this process. Follows no redirect. */
export type Fetch = (url: string, request: Outgoing) => Promise<Incoming>

/** A connection that says nothing for this long is given up; a synchronous ingest may take minutes. */
const idleTimeoutMs = 300_000
/** More than any route answers: a thousand hits with vectors of 16,384 numbers are 200 MB. */
const answerBytesMax = 256_000_000
const pool = { keepAlive: true, maxSockets: 16 }

/**
 * Requests over the network, on connections that are kept open.
 *
 * Node's own `http`: it loads in 14 ms where the global `fetch` takes 100 ms and the undici package 170 ms (medians
 * of 15), and a command mostly makes three requests.
 *
 * @param options.certificate  certificate (PEM) of a server on this machine, to trust under whatever name it has
 * @throws Unreachable when there is no connection, or it breaks
 */
export function network(options: { certificate?: string } = {}): Fetch {
  const plain = { request: http.request, agent: new http.Agent(pool) }
  let secure: Promise<Protocol> | undefined
  return async (address, outgoing) => {
    const url = new URL(address)
    if (url.protocol !== 'https:') return send(plain, url, outgoing)
    secure ??= secureProtocol(options.certificate)
    return send(await secure, url, outgoing)
  }
}

interface Protocol {
  request: typeof http.request | typeof https.request
  agent: http.Agent
}

/** TLS is loaded when it is needed. */
async function secureProtocol(certificate: string | undefined): Promise<Protocol> {
  const [{ Agent, request }, { rootCertificates }] = await Promise.all([
    import('node:https'),
    import('node:tls'),
  ])
  const trust = certificate && {
    ca: [...rootCertificates, certificate],
    checkServerIdentity: () => undefined,
  }
  return { request, agent: new Agent({ ...pool, ...trust }) }
}

function send({ request, agent }: Protocol, url: URL, outgoing: Outgoing): Promise<Incoming> {
  const { method, headers, signal, body } = outgoing
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers, signal, agent, timeout: idleTimeoutMs }, message =>
      resolve(incoming(url, message, signal)),
    )
    sent.on('timeout', () => sent.destroy(new Error(`silent for ${idleTimeoutMs / 1000} s`)))
    sent.on('error', error => reject(signal?.aborted ? signal.reason : unreachable(url, error)))
    if (body === undefined || typeof body === 'string') sent.end(body)
    else
      Readable.from(body, { objectMode: false })
        .on('error', error => sent.destroy(error))
        .pipe(sent)
  })
}

function incoming(url: URL, message: http.IncomingMessage, signal: AbortSignal | undefined): Incoming {
  return {
    url: url.href,
    status: message.statusCode ?? 0,
    headers: { get: name => header(message.headers[name.toLowerCase()]) },
    body: message,
    text: () =>
      wholeText(url, message).catch(error => Promise.reject(signal?.aborted ? signal.reason : error)),
  }
}

/** @throws Unreachable  the answer breaks off, or never ends */
async function wholeText(url: URL, message: http.IncomingMessage): Promise<string> {
  const parts: Buffer[] = []
  let size = 0
  const rest = message.on('error', () => {}).iterator()
  try {
    for await (const part of rest) {
      size += (part as Buffer).length
      if (size > answerBytesMax) break
      parts.push(part as Buffer)
    }
  } catch (error) {
    throw unreachable(url, error as Error)
  }
  if (size > answerBytesMax) throw notOurs(`${url.origin} sent more than ${answerBytesMax} bytes`)
  return Buffer.concat(parts).toString('utf8')
}

function header(value: string | string[] | undefined): string | null {
  return Array.isArray(value) ? value.join(', ') : (value ?? null)
}

const reasons: Record<string, string> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'the name is not known',
  EAI_AGAIN: 'the name cannot be looked up now',
  ECONNRESET: 'the connection broke',
  ETIMEDOUT: 'no answer in time',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is not trusted',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate is not trusted',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate is not trusted',
  CERT_HAS_EXPIRED: 'its certificate has expired',
}

function unreachable(url: URL, error: Error & { code?: string }): Unreachable {
  const reason = (error.code && reasons[error.code]) ?? error.code ?? error.message
  return new Unreachable(
    `no runtime answers at ${url.origin}: ${reason}`,
    'Check the address (--url, WB_URL), or start a runtime there with `wb serve`.',
    { cause: error },
  )
}

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { H3Event } from 'h3'
import type { AuthContext } from '../access/subject.ts'
import { WbError } from '../contract/errors.ts'
import type { Source } from './body.ts'
import type { Arrival } from './origin.ts'
import type { Forwarded } from './proxies.ts'

/** The other end of a connection. A request of this process has none. */
export interface Peer {
  readonly encrypted: boolean
  /** IP address. */
  readonly address?: string
}

/** What only this process can say of a request: no header and no connection becomes part of it. */
export interface Within {
  /** Stands for a connection, in tests. */
  readonly peer?: Peer
  /** Who asks, where it is the owner of the data directory. @see security decision 8 */
  readonly operator?: AuthContext
}

/**
 * A request, by a connection or from within this process, read without copying its headers: `Headers` of ten entries
 * cost a fifth of a trivial request.
 */
export class Incoming implements Arrival, Forwarded {
  readonly #event: H3Event
  readonly #message: IncomingMessage | undefined
  readonly #response: ServerResponse | undefined

  constructor(event: H3Event) {
    this.#event = event
    const node = event.runtime?.node
    this.#message = node?.req as IncomingMessage | undefined
    this.#response = node?.res as ServerResponse | undefined
  }

  get request(): Request {
    return this.#event.req
  }
  get method(): string {
    return this.#message?.method ?? this.#event.req.method
  }
  get path(): string {
    return this.#event.url.pathname
  }
  get search(): string {
    return this.#event.url.search
  }
  get params(): Readonly<Record<string, string>> | undefined {
    return this.#event.context.params
  }
  get headers(): Headers {
    return this.#event.req.headers
  }
  get signal(): AbortSignal {
    return this.#event.req.signal
  }
  /** Nobody waits for the answer any more. */
  get isAbandoned(): boolean {
    return this.#response ? this.#response.destroyed : this.#event.req.signal.aborted
  }
  get source(): Source | null {
    return this.#message ?? this.#event.req.body
  }
  /** A body was announced, be it an empty one. @see RFC 9112 6.3 */
  get hasBody(): boolean {
    if (!this.#message) return this.#event.req.body !== null
    return this.header('transfer-encoding') !== null || Number(this.header('content-length')) > 0
  }

  /** It came from outside this process. */
  get isFromOutside(): boolean {
    return this.#message !== undefined || this.#within.peer !== undefined
  }
  get encrypted(): boolean {
    if (this.#message) return 'encrypted' in this.#message.socket
    return this.#within.peer?.encrypted ?? false
  }
  /** IP address of the other end of the connection; empty within this process. */
  get address(): string {
    return this.#message?.socket.remoteAddress ?? this.#within.peer?.address ?? ''
  }
  get operator(): AuthContext | undefined {
    return this.#message ? undefined : this.#within.operator
  }
  get #within(): Within {
    return this.#event.context as Within
  }
  get host(): string | null {
    return this.header('host')
  }
  get origin(): string | null {
    return this.header('origin')
  }
  get fetchSite(): string | null {
    return this.header('sec-fetch-site')
  }
  get referer(): string | null {
    return this.header('referer')
  }
  get authorization(): string | null {
    return this.header('authorization')
  }
  get cookie(): string | null {
    return this.header('cookie')
  }

  /** @param name  in lower case */
  header(name: string): string | null {
    if (!this.#message) return this.#event.req.headers.get(name)
    const value = this.#message.headers[name]
    return typeof value === 'string' ? value : (value?.join(', ') ?? null)
  }

  /**
   * Refuse what two readers could read differently.
   *
   * @throws validation_error the target is no path or has a step (`..`) in it, `Host` is missing, or one of `Host`,
   *   `Authorization`, `Content-Length` came twice
   */
  checkHead(): void {
    const message = this.#message
    if (!message) return
    if (!isTarget(message.url ?? '')) throw new WbError('validation_error', 'the request target is not valid')
    if (message.headers.host === undefined && message.httpVersion === '1.1')
      throw new WbError('validation_error', 'the Host header is missing')
    const doubled = doubledHeader(message.rawHeaders)
    if (doubled) throw new WbError('validation_error', `the header ${doubled} was sent more than once`)
  }
}

/**
 * A path, the whole server, or a whole URL as proxies send it; without steps, and without the backslash that a URL takes
 * for a slash and a proxy does not.
 *
 * @see RFC 9112 3.2
 */
function isTarget(target: string): boolean {
  const isForm =
    target.startsWith('/') || target === '*' || (/^https?:/i.test(target) && URL.canParse(target))
  return isForm && !step.test(target) && !/^[^?#]*\\/.test(target)
}

/** `.` or `..` as a part of the path, however spelt: a URL takes it for a step, so a record `..` would be its parent. */
const step = /^[^?#]*[/\\](?:\.|%2e){1,2}(?:[/\\?#]|$)/i

const singleHeaders: readonly string[] = ['host', 'authorization', 'content-length']
const singleLengths = new Set(singleHeaders.map(name => name.length))

/** One pass that compares lengths before names, as it is made for every request. */
function doubledHeader(rawHeaders: readonly string[]): string | undefined {
  const seen: string[] = []
  for (let at = 0; at < rawHeaders.length; at += 2) {
    if (!singleLengths.has(rawHeaders[at]!.length)) continue
    const name = rawHeaders[at]!.toLowerCase()
    if (!singleHeaders.includes(name)) continue
    if (seen.includes(name)) return name
    seen.push(name)
  }
  return undefined
}

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { H3Event } from 'h3'
import type { AuthContext } from '../access/subject.ts'
import type { OriginFacts } from './origin-rule.ts'
import type { ForwardedRequest } from './proxy-resolver.ts'
import type { BodySource } from './request-bytes.ts'

/** Time without progress after which a client that does not read its response is disconnected. */
const stalledReaderMs = 60_000

/** The remote end of a connection. Requests from this process have none. */
export interface ConnectionPeer {
  readonly encrypted: boolean
  /** IP address. */
  readonly address?: string
}

/** Facts about a request that only code in this process can set, not a client. */
export interface LocalFacts {
  /** Simulated connection for tests. */
  readonly peer?: ConnectionPeer
  /**
   * Subject of a request from the owner of the data directory.
   *
   * @see docs/security.md#rule-8
   */
  readonly operator?: AuthContext
}

/**
 * A request, either over a connection or from this process. Headers are read without copying them, because
 * creating `Headers` with ten entries takes a fifth of the time of a trivial request.
 */
export class IncomingRequest implements OriginFacts, ForwardedRequest {
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
  /** True if the client has disconnected or canceled the request. */
  get isAbandoned(): boolean {
    return this.#response ? this.#response.destroyed : this.#event.req.signal.aborted
  }
  /**
   * Calls a function once the client has read the whole response or has disconnected. A client that reads nothing
   * for a minute is disconnected.
   */
  onceSent(callback: () => void): void {
    const response = this.#response
    if (response && !response.destroyed) response.setTimeout(stalledReaderMs).once('close', callback)
    else callback()
  }
  /** Returns the body, after sending `100 Continue` to a client that expects it (RFC 9110 section 10.1.1). */
  openBody(): BodySource | null {
    if (!this.#message) return this.#event.req.body
    if (this.header('expect')?.toLowerCase() === '100-continue') this.#response?.writeContinue()
    return this.#message
  }
  /**
   * True if the headers announce a body. The body can still be empty.
   *
   * @see RFC 9112 section 6.3
   */
  get hasBody(): boolean {
    if (!this.#message) return this.#event.req.body !== null
    return this.header('transfer-encoding') !== null || Number(this.header('content-length')) > 0
  }

  /** Content-Length in bytes; null for a chunked body, and for requests from this process. */
  get declaredBytes(): number | null {
    const length = this.#message?.headers['content-length']
    return length === undefined ? null : Number(length)
  }

  /** True for a request from outside this process. */
  get isFromOutside(): boolean {
    return this.#message !== undefined || this.#localFacts.peer !== undefined
  }
  get encrypted(): boolean {
    if (this.#message) return 'encrypted' in this.#message.socket
    return this.#localFacts.peer?.encrypted ?? false
  }
  /** IP address of the remote end of the connection; empty for requests from this process. */
  get address(): string {
    return this.#message?.socket.remoteAddress ?? this.#localFacts.peer?.address ?? ''
  }
  get operator(): AuthContext | undefined {
    return this.#message ? undefined : this.#localFacts.operator
  }
  get #localFacts(): LocalFacts {
    return this.#event.context as LocalFacts
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
}

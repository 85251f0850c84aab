import type { Retry } from './retry-options.ts'

/** Addresses of proxies, by the protocol of the request. */
export interface Proxies {
  readonly http?: string
  /** Proxy for https requests; `http` by default. */
  readonly https?: string
  /** Hosts to connect to without a proxy, in the format of `NO_PROXY`. */
  readonly except?: string
}

export interface NetworkOptions {
  readonly userAgent?: string
  /** Certificate (PEM) of a server on this machine, trusted for any host name. */
  readonly certificate?: string
  /** Certificates (PEM) of authorities to trust in addition to Node's authorities. */
  readonly authorities?: readonly string[]
  readonly proxies?: Proxies
  /** Maximum time without data, in milliseconds, for all requests. The defaults are in `timeouts.ts`. */
  readonly idleTimeoutMs?: number
  /** Called before a request is sent again. */
  readonly onRetry?: (retry: Retry) => void
}

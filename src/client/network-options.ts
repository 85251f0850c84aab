import type { Retry } from './retries.ts'

/** Addresses of proxies, by the protocol of what is asked for. */
export interface Proxies {
  readonly http?: string
  /** What is asked for over https goes by `http` where this is left out. */
  readonly https?: string
  /** Hosts that are reached without one, as in `NO_PROXY`. */
  readonly except?: string
}

export interface NetworkOptions {
  readonly userAgent?: string
  /** Certificate (PEM) of a server on this machine, to trust under whatever name it has. */
  readonly certificate?: string
  /** Certificates (PEM) of authorities, to trust beside those that Node knows. */
  readonly authorities?: readonly string[]
  readonly proxies?: Proxies
  /** Time without data after which any request ends; `timeouts.ts` has the defaults. */
  readonly idleTimeoutMs?: number
  /** Told before a request is sent again. */
  readonly onRetry?: (retry: Retry) => void
}

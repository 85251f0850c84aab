/** Parts of `RequestInit` that the client uses. */
export interface OutgoingRequest {
  method: string
  headers: Record<string, string>
  body?: string | AsyncIterable<Uint8Array>
  signal?: AbortSignal
  /**
   * Called with the number of bytes of the body sent so far. The number restarts from 0 when the request is
   * retried.
   */
  onSent?(bytes: number): void
}

/** Parts of `Response` that the client uses. */
export interface IncomingResponse {
  /** URL of the response; empty for a runtime in this process. */
  readonly url: string
  readonly status: number
  readonly headers: { get(name: string): string | null } & Iterable<[name: string, value: string]>
  readonly body: AsyncIterable<Uint8Array> | null
  text(): Promise<string>
}

/** Sends a request over the network, or to a runtime in this process. Does not follow redirects. */
export type Fetch = (url: string, request: OutgoingRequest) => Promise<IncomingResponse>

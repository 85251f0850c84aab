/** What carries a request to another host. It follows no redirect: a 3xx is an answer like any other. */
export type Outbound = (url: URL, init: RequestInit) => Promise<Response>

/** The platform's own `fetch`, without a look at where an address leads. */
export const directOutbound: Outbound = (url, init) => fetch(url, { ...init, redirect: 'manual' })

/**
 * The whole body of an answer.
 *
 * @throws Error over `bytesMax`; the rest of the body is not read
 */
export async function readWhole(response: Response, bytesMax: number): Promise<Buffer> {
  const parts: Uint8Array[] = []
  let length = 0
  for await (const part of response.body ?? []) {
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
export function retryAfterMs(headers: Headers): number | undefined {
  const text = headers.get('retry-after')
  if (text === null) return undefined
  const waitMs = /^\d+$/.test(text)
    ? Number(text) * 1_000
    : Date.parse(text) - Date.parse(headers.get('date') ?? '')
  return Number.isNaN(waitMs) ? undefined : Math.max(0, waitMs)
}

/** Whether a host of a URL is this machine, so that what is sent there crosses no network. */
export function isLoopback(hostname: string): boolean {
  return /^(?:localhost|.+\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname)
}

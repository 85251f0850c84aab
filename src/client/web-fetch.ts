import type { Fetch, IncomingResponse } from './fetch.ts'
import { Unreachable } from './unreachable.ts'

/**
 * Adapts the `fetch` of a browser. Sends a streamed body in one piece, because most browsers cannot stream it.
 * Adds no retries or timeouts to those of the browser.
 *
 * The returned function throws Unreachable when no response arrives, and for a redirect.
 */
export function webFetch(fetch: typeof globalThis.fetch): Fetch {
  return async (url, { method, headers, body, signal, onSent }) => {
    const bufferedBody = body === undefined || typeof body === 'string' ? body : await readBlob(body)
    try {
      const response = await fetch(url, { method, headers, body: bufferedBody, signal, redirect: 'error' })
      if (bufferedBody !== undefined) onSent?.(new Blob([bufferedBody]).size)
      return toIncoming(response)
    } catch (cause) {
      signal?.throwIfAborted()
      throw new Unreachable(`no runtime responds at ${new URL(url).origin}`, 'Check the address.', { cause })
    }
  }
}

async function readBlob(body: AsyncIterable<Uint8Array>): Promise<Blob> {
  const chunks: Uint8Array<ArrayBuffer>[] = []
  for await (const chunk of body) chunks.push(new Uint8Array(chunk))
  return new Blob(chunks)
}

function toIncoming(response: Response): IncomingResponse {
  const { url, status, headers, body } = response
  return { url, status, headers, body: body && readChunks(body), text: () => response.text() }
}

/** Yields the chunks of a stream. Safari cannot iterate streams. */
async function* readChunks(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader()
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value
  } finally {
    await reader.cancel()
  }
}

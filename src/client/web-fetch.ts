import type { Fetch, Incoming } from './fetch.ts'
import { Unreachable } from './unreachable.ts'

/**
 * Adapts the `fetch` of a browser. Streamed bodies are sent in one piece, because most browsers cannot stream
 * them. Browsers retry and time out by their own rules.
 *
 * The returned function throws Unreachable when no response arrives, and for a redirect.
 */
export function webFetch(fetch: typeof globalThis.fetch): Fetch {
  return async (url, { method, headers, body, signal, onSent }) => {
    const sent = body === undefined || typeof body === 'string' ? body : await readBlob(body)
    try {
      const answer = await fetch(url, { method, headers, body: sent, signal, redirect: 'error' })
      if (sent !== undefined) onSent?.(new Blob([sent]).size)
      return toIncoming(answer)
    } catch (cause) {
      signal?.throwIfAborted()
      throw new Unreachable(`no runtime answers at ${new URL(url).origin}`, 'Check the address.', { cause })
    }
  }
}

async function readBlob(body: AsyncIterable<Uint8Array>): Promise<Blob> {
  const parts: Uint8Array<ArrayBuffer>[] = []
  for await (const part of body) parts.push(new Uint8Array(part))
  return new Blob(parts)
}

function toIncoming(answer: Response): Incoming {
  const { url, status, headers, body } = answer
  return { url, status, headers, body: body && readChunks(body), text: () => answer.text() }
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

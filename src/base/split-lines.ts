import { GrowingBuffer } from './growing-buffer.ts'

const newline = 0x0a

interface SplitOptions {
  /** Called for each chunk, with the size of the current incomplete line plus the chunk, in bytes. */
  onChunk?(bytes: number): void
}

/**
 * Yields the lines of a stream without their line feeds. Each line is a separate allocation. Empty lines are included,
 * except after the last line feed.
 *
 * @param options.bytesMax  maximum length of a line; yields undefined for a longer line, as soon as it is too long
 */
export function splitLines(
  stream: AsyncIterable<Uint8Array>,
  options?: SplitOptions,
): AsyncGenerator<Uint8Array<ArrayBuffer>>
export function splitLines(
  stream: AsyncIterable<Uint8Array>,
  options: SplitOptions & { readonly bytesMax: number },
): AsyncGenerator<Uint8Array<ArrayBuffer> | undefined>
export async function* splitLines(
  stream: AsyncIterable<Uint8Array>,
  { bytesMax = Number.POSITIVE_INFINITY, onChunk }: SplitOptions & { readonly bytesMax?: number } = {},
): AsyncGenerator<Uint8Array<ArrayBuffer> | undefined> {
  const line = new GrowingBuffer()
  let isTooLong = false
  for await (const chunk of stream) {
    onChunk?.(line.size + chunk.length)
    for (let from = 0; from < chunk.length; ) {
      const end = chunk.indexOf(newline, from)
      const part = chunk.subarray(from, end < 0 ? undefined : end)
      if (!isTooLong && line.size + part.length > bytesMax) {
        isTooLong = true
        line.take()
        yield undefined
      }
      if (!isTooLong) line.append(part)
      if (end < 0) break
      if (!isTooLong) yield line.take()
      isTooLong = false
      from = end + 1
    }
  }
  if (line.size > 0) yield line.take()
}

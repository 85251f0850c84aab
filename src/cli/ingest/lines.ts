/** A line of a file, numbered from 1. Bytes are undefined if the line is too long. */
export interface NumberedLine {
  readonly number: number
  readonly bytes: Uint8Array | undefined
}

const newline = 0x0a

/**
 * Yields the lines of a stream. A line over `bytesMax` is yielded without its bytes as soon as it exceeds the
 * limit.
 */
export async function* linesOf(
  stream: AsyncIterable<Uint8Array>,
  bytesMax: number,
): AsyncGenerator<NumberedLine> {
  let held: Uint8Array[] = []
  let size = 0
  let number = 1
  for await (const bytes of stream) {
    for (let from = 0; from < bytes.length; ) {
      const end = bytes.indexOf(newline, from)
      const part = bytes.subarray(from, end < 0 ? bytes.length : end)
      const wasTold = size > bytesMax
      size += part.length
      if (size <= bytesMax) held.push(part)
      else held = []
      if (size > bytesMax && !wasTold) yield { number, bytes: undefined }
      if (end < 0) break
      if (size <= bytesMax) yield { number, bytes: joined(held) }
      held = []
      size = 0
      number++
      from = end + 1
    }
  }
  if (size > 0 && size <= bytesMax) yield { number, bytes: joined(held) }
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  return parts.length === 1 ? parts[0]! : Buffer.concat(parts)
}

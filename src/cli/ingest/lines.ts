/** A line of a file, counted from 1; undefined text is a line that is too long to be held. */
export interface NumberedLine {
  readonly number: number
  readonly bytes: Uint8Array | undefined
}

const newline = 0x0a

/** The lines of a stream of bytes. A line over `bytesMax` is told and let go. */
export async function* linesOf(
  stream: AsyncIterable<Uint8Array>,
  bytesMax: number,
): AsyncGenerator<NumberedLine> {
  let held: Uint8Array[] = []
  let size = 0
  let number = 1
  const take = (part: Uint8Array) => {
    size += part.length
    if (size > bytesMax) held = []
    else held.push(part)
  }
  const finished = (): NumberedLine => {
    const line = { number: number++, bytes: size > bytesMax ? undefined : joined(held) }
    held = []
    size = 0
    return line
  }
  for await (const bytes of stream) {
    let from = 0
    for (let end = bytes.indexOf(newline); end >= 0; end = bytes.indexOf(newline, from)) {
      take(bytes.subarray(from, end))
      yield finished()
      from = end + 1
    }
    if (from < bytes.length) take(bytes.subarray(from))
  }
  if (size > 0) yield finished()
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  return parts.length === 1 ? parts[0]! : Buffer.concat(parts)
}

import type { Buffer as Bytes } from 'node:buffer'
import { WbError } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import type { Line } from '../contract/route.ts'
import { chunksOf, type Source } from './body.ts'
import type { BodyHold } from './body-memory.ts'
import type { Decoded } from './decode.ts'
import { GrowingBuffer } from './growing-buffer.ts'

const newline = 0x0a

export interface LinesParts {
  readonly source: Source | null
  readonly decode: (bytes: Bytes) => Decoded | Promise<Decoded>
  readonly limitBytes: number
  readonly hold: BodyHold
}

/**
 * Reads the lines of an NDJSON body as they are asked for. A line that is refused is given with its error; the lines
 * after it go on. Blank lines are counted, not given.
 *
 * The hold covers the line that arrives and the last lines given, as many as a handler works on at once.
 *
 * @throws payload_too_large  the lines together are larger than allowed; those before were given
 * @throws overloaded         the memory for bodies is spent; the lines before were given
 */
export async function* readLines(parts: LinesParts): AsyncGenerator<Line<unknown>, void, undefined> {
  const { source, decode, limitBytes, hold } = parts
  const given: number[] = []
  let givenBytes = 0
  let line = 0
  try {
    const arriving = (bytes: number) => hold.resize(givenBytes + bytes)
    for await (const bytes of splitLines(chunksOf(source, limitBytes), arriving)) {
      line++
      if (isBlank(bytes)) continue
      givenBytes += bytes.length
      given.push(bytes.length)
      if (given.length > limits.batchLinesInProgress) givenBytes -= given.shift()!
      yield await readLine(bytes, line, decode)
    }
  } finally {
    hold.release()
  }
}

async function readLine(bytes: Bytes, line: number, decode: LinesParts['decode']): Promise<Line<unknown>> {
  try {
    return { line, value: (await decode(bytes)).value }
  } catch (error) {
    if (error instanceof WbError) return { line, error }
    throw error
  }
}

function isBlank(bytes: Bytes): boolean {
  return bytes.every(byte => byte === 0x20 || byte === 0x09 || byte === 0x0d)
}

/** @param arriving  is given the size of the incomplete line in bytes, with each piece of it */
async function* splitLines(chunks: AsyncIterable<Uint8Array>, arriving: (bytes: number) => void) {
  const line = new GrowingBuffer()
  for await (const raw of chunks) {
    arriving(line.size + raw.byteLength)
    const chunk = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
    let from = 0
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, from)) {
      line.append(chunk.subarray(from, end))
      yield line.take()
      from = end + 1
    }
    line.append(chunk.subarray(from))
  }
  if (line.size > 0) yield line.take()
}

/**
 * Objects as a stream of lines. The next one is asked for when the reader has taken the last, and the iteration is
 * ended when the reader goes away.
 *
 * @param failed  the last line when the iteration breaks, as the status is long sent
 * @param done    called once, however it ends
 */
export function writeLines(
  objects: AsyncIterator<object>,
  first: IteratorResult<object>,
  failed: (error: unknown) => object,
  done: () => void,
): ReadableStream<Uint8Array> {
  const encode = (object: object) => Buffer.from(`${JSON.stringify(object)}\n`)
  let waiting: IteratorResult<object> | undefined = first
  let left = false

  async function pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    try {
      const { done: ended, value } = waiting ?? (await objects.next())
      waiting = undefined
      if (left) return
      if (!ended) return controller.enqueue(encode(value))
    } catch (error) {
      if (left) return
      controller.enqueue(encode(failed(error)))
    }
    controller.close()
    done()
  }

  async function cancel(): Promise<void> {
    left = true
    done()
    await objects.return?.()
  }

  return new ReadableStream({ pull, cancel }, { highWaterMark: 0 })
}

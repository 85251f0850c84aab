import type { Buffer as Bytes } from 'node:buffer'
import { splitLines } from '../base/split-lines.ts'
import { WbError } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import type { NdjsonLine } from '../contract/route.ts'
import type { BodyReservation } from './body-memory.ts'
import type { DecodedBody } from './decoder.ts'
import { type BodySource, readChunks } from './request-bytes.ts'

export interface LinesParts {
  readonly source: BodySource | null
  readonly decode: (bytes: Bytes) => DecodedBody | Promise<DecodedBody>
  readonly limitBytes: number
  readonly hold: BodyReservation
}

/**
 * Reads the lines of an NDJSON body on demand. An invalid line is yielded with its error, and reading
 * continues. Blank lines count for line numbers but are not yielded.
 *
 * The hold covers the line being received and the last `limits.batchLinesInProgress` lines, which the handler
 * may still process.
 *
 * @throws payload_too_large  when the body is larger than allowed; earlier lines were yielded
 * @throws overloaded         when the memory for bodies is used up; earlier lines were yielded
 */
export async function* readNdjsonLines(
  parts: LinesParts,
): AsyncGenerator<NdjsonLine<unknown>, void, undefined> {
  const { source, decode, limitBytes, hold } = parts
  const given: number[] = []
  let givenBytes = 0
  let line = 0
  try {
    const onChunk = (bytes: number) => hold.resize(givenBytes + bytes)
    for await (const lineBytes of splitLines(readChunks(source, limitBytes), { onChunk })) {
      const bytes = Buffer.from(lineBytes.buffer, 0, lineBytes.byteLength)
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

async function readLine(
  bytes: Bytes,
  line: number,
  decode: LinesParts['decode'],
): Promise<NdjsonLine<unknown>> {
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

/**
 * Returns a stream of objects as NDJSON. It requests the next object when the reader has taken the last one,
 * and ends the iteration when the reader disconnects.
 *
 * @param failed  returns the last line if the iteration fails, because the status has already been sent
 * @param done    called once at the end, with or without an error
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

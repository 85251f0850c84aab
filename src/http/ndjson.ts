import type { Buffer as Bytes } from 'node:buffer'
import { splitLines } from '../base/split-lines.ts'
import { WbError } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import type { NdjsonLine } from '../contract/route.ts'
import type { BodyReservation } from './body-memory.ts'
import type { DecodedBody } from './decoder.ts'
import { type BodySource, readChunks } from './request-bytes.ts'

export interface LineReaderOptions {
  readonly source: BodySource | null
  readonly decode: (bytes: Bytes) => DecodedBody | Promise<DecodedBody>
  readonly limitBytes: number
  readonly reservation: BodyReservation
}

/**
 * Reads the lines of an NDJSON body on demand. An invalid line is yielded with its error, and reading continues.
 * Blank lines are counted in line numbers, but not yielded.
 *
 * The reservation includes the line that is being received, and the last `limits.batchLinesInProgress` lines,
 * which the handler may still be processing.
 *
 * @throws payload_too_large  when the body is larger than allowed; earlier lines were yielded
 * @throws overloaded         when the memory for bodies is used up; earlier lines were yielded
 */
export async function* readNdjsonLines(
  options: LineReaderOptions,
): AsyncGenerator<NdjsonLine<unknown>, void, undefined> {
  const { source, decode, limitBytes, reservation } = options
  const recentSizes: number[] = []
  let recentBytes = 0
  let line = 0
  try {
    const onChunk = (bytes: number) => reservation.resize(recentBytes + bytes)
    for await (const lineBytes of splitLines(readChunks(source, limitBytes), { onChunk })) {
      const bytes = Buffer.from(lineBytes.buffer, 0, lineBytes.byteLength)
      line++
      if (isBlank(bytes)) continue
      recentBytes += bytes.length
      recentSizes.push(bytes.length)
      if (recentSizes.length > limits.batchLinesInProgress) recentBytes -= recentSizes.shift()!
      yield await readLine(bytes, line, decode)
    }
  } finally {
    reservation.release()
  }
}

async function readLine(
  bytes: Bytes,
  line: number,
  decode: LineReaderOptions['decode'],
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
 * Returns a stream of objects as NDJSON. It requests the next object when the client has read the previous one, and
 * ends the iteration when the client disconnects.
 *
 * @param toLastLine  converts an error of the iteration to the last line, because the status has already been sent
 * @param onEnd       called once when the stream ends, even after an error
 */
export function writeLines(
  objects: AsyncIterator<object>,
  first: IteratorResult<object>,
  toLastLine: (error: unknown) => object,
  onEnd: () => void,
): ReadableStream<Uint8Array> {
  const encode = (object: object) => Buffer.from(`${JSON.stringify(object)}\n`)
  let pending: IteratorResult<object> | undefined = first
  let isCancelled = false

  async function pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    try {
      const { done, value } = pending ?? (await objects.next())
      pending = undefined
      if (isCancelled) return
      if (!done) return controller.enqueue(encode(value))
    } catch (error) {
      if (isCancelled) return
      controller.enqueue(encode(toLastLine(error)))
    }
    controller.close()
    onEnd()
  }

  async function cancel(): Promise<void> {
    isCancelled = true
    onEnd()
    await objects.return?.()
  }

  return new ReadableStream({ pull, cancel }, { highWaterMark: 0 })
}

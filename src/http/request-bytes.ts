import type { Buffer as Bytes } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { Clock } from '../base/clock.ts'
import { GrowingBuffer } from '../base/growing-buffer.ts'
import { WbError } from '../contract/errors.ts'
import { type BodyReservation, smallBodyBytes } from './body-memory.ts'

/**
 * Body of a request: Node's message for a request over a connection, or the stream of a `Request`.
 */
export type BodySource = IncomingMessage | ReadableStream<Uint8Array>

export function bodyTooLarge(limitBytes: number): WbError {
  return new WbError('payload_too_large', `the body is larger than ${limitBytes} bytes`)
}

/**
 * Checks the headers that describe a body.
 *
 * @throws validation_error  when the content type is not `mediaType`, the charset is not UTF-8, or the body is
 *   compressed
 */
export function checkContentType(headers: Headers, mediaType: string): void {
  const [sentMediaType, ...parameters] = (headers.get('content-type') ?? '').toLowerCase().split(';')
  const charset = parameters.map(text => text.trim()).find(parameter => parameter.startsWith('charset='))
  if (sentMediaType!.trim() !== mediaType || (charset && !/^charset="?utf-?8"?$/.test(charset)))
    throw new WbError('validation_error', `the content type of the body must be ${mediaType}`, {
      hint: `Send the header Content-Type: ${mediaType}, and the body in UTF-8.`,
    })
  if ((headers.get('content-encoding') ?? 'identity') !== 'identity')
    throw new WbError('validation_error', 'the body must not be compressed')
}

/** Maximum time in milliseconds between two chunks of a large body. Its memory stays reserved while it is read. */
const bodyIdleMs = 15_000

/** Source of a body, and its limits. */
export interface BodyReadOptions {
  /** Opens the source. Called after the memory for the declared length has been reserved. */
  open(): BodySource | null
  /** Length from the Content-Length header; null if absent. */
  readonly declaredBytes: number | null
  readonly limitBytes: number
  /** Memory reservation of the request. It is increased before bytes are added to the buffer. */
  readonly reservation: BodyReservation
  readonly clock: Clock
}

/**
 * Reads a whole body.
 *
 * @throws validation_error   when a body from the network ends early, or a large one receives no data for too long
 * @throws payload_too_large  when the body exceeds the limit, even if its declared length is within the limit
 * @throws overloaded         when the memory for bodies is used up
 */
export async function readBodyBytes(options: BodyReadOptions): Promise<Bytes> {
  const collector = createCollector(options)
  const source = options.open()
  if (!source) return collector.toBuffer()
  if ('rawHeaders' in source) await readMessage(source, collector, options.clock)
  else for await (const chunk of source) collector.add(chunk)
  return collector.toBuffer()
}

/**
 * Reads a message with event listeners, because creating an iterator costs more than reading a small body. Stops
 * reading after an error.
 */
function readMessage(message: IncomingMessage, collector: BodyCollector, clock: Clock): Promise<void> {
  return new Promise((resolve, reject) => {
    let cancelIdle = () => {}
    const waitForMore = () => {
      cancelIdle()
      if (collector.isLarge) cancelIdle = clock.after(bodyIdleMs, () => finish(bodyStalled()))
    }
    const finish = (error?: WbError) => {
      cancelIdle()
      message.off('data', addChunk).off('end', end).off('error', fail).off('close', fail)
      if (error) reject(error)
      else resolve()
    }
    const fail = () => finish(bodyIncomplete())
    const end = () => finish()
    const addChunk = (chunk: Bytes) => {
      try {
        collector.add(chunk)
        waitForMore()
      } catch (error) {
        finish(error as WbError)
      }
    }
    if (message.destroyed) return reject(bodyIncomplete())
    waitForMore()
    message.on('data', addChunk).on('end', end).on('error', fail).on('close', fail)
  })
}

/** Collects the chunks of a body in one buffer. */
interface BodyCollector {
  readonly isLarge: boolean
  /** @throws payload_too_large, overloaded */
  add(chunk: Uint8Array): void
  toBuffer(): Bytes
}

/** @throws overloaded  when there is no memory for the declared length */
function createCollector({ declaredBytes, limitBytes, reservation }: BodyReadOptions): BodyCollector {
  if (declaredBytes !== null) reservation.resize(declaredBytes)
  const collected = new GrowingBuffer(declaredBytes ?? limitBytes)
  return {
    isLarge: declaredBytes === null || declaredBytes > smallBodyBytes,
    add(chunk) {
      const size = collected.size + chunk.length
      if (size > limitBytes) throw bodyTooLarge(limitBytes)
      if (declaredBytes === null) reservation.resize(size)
      collected.append(chunk)
    },
    toBuffer() {
      const { buffer, byteLength } = collected.take()
      return Buffer.from(buffer, 0, byteLength)
    },
  }
}

/**
 * Yields the chunks of a body. If the iteration stops early, the rest of the body is discarded, and the connection
 * stays open for the response.
 *
 * @throws payload_too_large  when the body is larger than allowed; earlier chunks were yielded
 */
export async function* readChunks(
  source: BodySource | null,
  limitBytes: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  let size = 0
  for await (const chunk of source ? sourceChunks(source) : []) {
    size += chunk.length
    if (size > limitBytes) throw bodyTooLarge(limitBytes)
    yield chunk
  }
}

async function* sourceChunks(source: BodySource): AsyncGenerator<Uint8Array, void, undefined> {
  if (!('rawHeaders' in source)) return yield* source
  try {
    yield* source.iterator({ destroyOnReturn: false }) as AsyncIterable<Bytes>
  } catch {
    throw bodyIncomplete()
  } finally {
    source.resume()
  }
}

function bodyStalled(): WbError {
  return new WbError('validation_error', `no part of the body arrived for ${bodyIdleMs / 1_000} seconds`)
}

/** Returns the error for an incomplete body. It only appears in logs, because the client has disconnected. */
function bodyIncomplete(): WbError {
  return new WbError('validation_error', 'the body ended before it was complete')
}

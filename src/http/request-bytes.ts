import type { Buffer as Bytes } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { Clock } from '../base/clock.ts'
import { GrowingBuffer } from '../base/growing-buffer.ts'
import { WbError } from '../contract/errors.ts'
import { type BodyReservation, smallBodyBytes } from './body-memory.ts'

/**
 * Bytes of a request: Node's stream for a request over a connection, otherwise the stream of the `Request`.
 */
export type BodySource = IncomingMessage | ReadableStream<Uint8Array>

export function bodyTooLarge(limitBytes: number): WbError {
  return new WbError('payload_too_large', `the body is larger than ${limitBytes} bytes`)
}

/**
 * Checks the headers of a body.
 *
 * @throws validation_error  when the content type is not `mediaType`, or the body is not UTF-8 or is
 *   compressed
 */
export function checkContentType(headers: Headers, mediaType: string): void {
  const [sent, ...parameters] = (headers.get('content-type') ?? '').toLowerCase().split(';')
  const charset = parameters.map(each => each.trim()).find(each => each.startsWith('charset='))
  if (sent!.trim() !== mediaType || (charset && !/^charset="?utf-?8"?$/.test(charset)))
    throw new WbError('validation_error', `the content type of the body must be ${mediaType}`, {
      hint: `Send the header Content-Type: ${mediaType}, and the body in UTF-8.`,
    })
  if ((headers.get('content-encoding') ?? 'identity') !== 'identity')
    throw new WbError('validation_error', 'the body must not be compressed')
}

/** Maximum time without data from a large body, in milliseconds. Then its memory is released. */
const bodyIdleMs = 15_000

/** Source of a body, and its limits. */
export interface BodyParts {
  /** Opens the source. Called after memory for the declared length is reserved. */
  open(): BodySource | null
  /** Length from the Content-Length header; null if absent. */
  readonly declaredBytes: number | null
  readonly limitBytes: number
  /** Reservation for the bytes, made before they are read. */
  readonly hold: BodyReservation
  readonly clock: Clock
}

/**
 * Reads a whole body.
 *
 * @throws validation_error   when the body ends early or stops arriving
 * @throws payload_too_large  when the body is larger than allowed, whatever its declared length
 * @throws overloaded         when the memory for bodies is used up
 */
export async function readBodyBytes(parts: BodyParts): Promise<Bytes> {
  const gathered = createCollector(parts)
  const source = parts.open()
  if (!source) return gathered.whole()
  if ('rawHeaders' in source) await readMessage(source, gathered, parts.clock)
  else for await (const chunk of source) gathered.add(chunk)
  return gathered.whole()
}

/**
 * Reads by events, because the iterator of a Node stream costs more than a small body. After an error, it
 * stops reading.
 */
function readMessage(message: IncomingMessage, gathered: BodyCollector, clock: Clock): Promise<void> {
  return new Promise((resolve, reject) => {
    let cancelIdle = () => {}
    const waitForMore = () => {
      cancelIdle()
      if (gathered.isLarge) cancelIdle = clock.after(bodyIdleMs, () => leave(bodyStalled()))
    }
    const leave = (error?: WbError) => {
      cancelIdle()
      message.off('data', take).off('end', end).off('error', cut).off('close', cut)
      if (error) reject(error)
      else resolve()
    }
    const cut = () => leave(bodyIncomplete())
    const end = () => leave()
    const take = (chunk: Bytes) => {
      try {
        gathered.add(chunk)
        waitForMore()
      } catch (error) {
        leave(error as WbError)
      }
    }
    if (message.destroyed) return reject(bodyIncomplete())
    waitForMore()
    message.on('data', take).on('end', end).on('error', cut).on('close', cut)
  })
}

/** Collects the chunks of a body in one buffer. */
interface BodyCollector {
  readonly isLarge: boolean
  /** @throws payload_too_large, overloaded */
  add(chunk: Uint8Array): void
  whole(): Bytes
}

/** @throws overloaded  when there is no memory for the declared length */
function createCollector({ declaredBytes, limitBytes, hold }: BodyParts): BodyCollector {
  if (declaredBytes !== null) hold.resize(declaredBytes)
  const whole = new GrowingBuffer(declaredBytes ?? limitBytes)
  return {
    isLarge: declaredBytes === null || declaredBytes > smallBodyBytes,
    add(chunk) {
      const size = whole.size + chunk.length
      if (size > limitBytes) throw bodyTooLarge(limitBytes)
      if (declaredBytes === null) hold.resize(size)
      whole.append(chunk)
    },
    whole() {
      const { buffer, byteLength } = whole.take()
      return Buffer.from(buffer, 0, byteLength)
    },
  }
}

/**
 * Yields a body in chunks. If iteration stops early, the rest is discarded and the connection stays open for
 * the response.
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

/** Returns the error for an incomplete body. The disconnected client does not receive it. */
function bodyIncomplete(): WbError {
  return new WbError('validation_error', 'the body ended before it was complete')
}

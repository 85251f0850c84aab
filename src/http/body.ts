import type { Buffer as Bytes } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { WbError } from '../contract/errors.ts'
import { parseJson } from './json.ts'

/** The bytes of a request: Node's own stream for a request that came by a connection, else the Request's. */
export type Source = IncomingMessage | ReadableStream<Uint8Array>

export function tooLarge(limitBytes: number): WbError {
  return new WbError('payload_too_large', `the body is larger than ${limitBytes} bytes`)
}

/**
 * Refuse a body that says by its headers that it cannot be read.
 *
 * @throws validation_error not `mediaType`, another charset than UTF-8, or compressed
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

/**
 * The value of a JSON body.
 *
 * @throws validation_error empty, or refused by `parseJson`
 * @throws payload_too_large more bytes came than allowed, whatever was announced
 */
export async function readJson(source: Source | null, limitBytes: number): Promise<unknown> {
  const bytes = source ? await readAll(source, limitBytes) : Buffer.alloc(0)
  if (bytes.length === 0) throw new WbError('validation_error', 'the body is empty; a JSON value is expected')
  return parseJson(bytes)
}

function readAll(source: Source, limitBytes: number): Promise<Bytes> {
  return 'rawHeaders' in source ? readMessage(source, limitBytes) : readStream(source, limitBytes)
}

/**
 * By events, as the iterator of a Node stream costs more than a small body. What comes after a refusal flows on and
 * is dropped, so that the sender gets to read why.
 */
function readMessage(message: IncomingMessage, limitBytes: number): Promise<Bytes> {
  return new Promise((resolve, reject) => {
    const chunks: Bytes[] = []
    let size = 0
    const leave = (error?: WbError) => {
      message.off('data', take).off('end', end).off('error', cut).off('close', cut)
      if (error) reject(error)
    }
    const cut = () => leave(cutShort())
    const take = (chunk: Bytes) => {
      size += chunk.length
      if (size > limitBytes) leave(tooLarge(limitBytes))
      else chunks.push(chunk)
    }
    const end = () => {
      leave()
      resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))
    }
    if (message.destroyed) return reject(cutShort())
    message.on('data', take).on('end', end).on('error', cut).on('close', cut)
  })
}

async function readStream(stream: ReadableStream<Uint8Array>, limitBytes: number): Promise<Bytes> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of stream) {
    size += chunk.length
    if (size > limitBytes) throw tooLarge(limitBytes)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/**
 * A body piece by piece. Leaving early keeps the connection and drops the rest, so that the answer can still be sent.
 *
 * @throws payload_too_large more bytes came than allowed; those before were given
 */
export async function* chunksOf(
  source: Source | null,
  limitBytes: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  let size = 0
  for await (const chunk of source ? piecesOf(source) : []) {
    size += chunk.length
    if (size > limitBytes) throw tooLarge(limitBytes)
    yield chunk
  }
}

async function* piecesOf(source: Source): AsyncGenerator<Uint8Array, void, undefined> {
  if (!('rawHeaders' in source)) return yield* source
  try {
    yield* source.iterator({ destroyOnReturn: false }) as AsyncIterable<Bytes>
  } catch {
    throw cutShort()
  } finally {
    source.resume()
  }
}

/** Nobody is left to read this. */
function cutShort(): WbError {
  return new WbError('validation_error', 'the body ended before it was complete')
}

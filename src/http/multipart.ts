import { createWriteStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { MIMEType } from 'node:util'
import { Busboy, type BusboyFileStream, type BusboyInstance } from '@fastify/busboy'
import { z } from 'zod'
import { createScratchFile, type ScratchFile } from '../base/scratch-file.ts'
import { WbError } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import type { MultipartBody, PendingForm, ReceivedForm, UploadedFile } from '../contract/route.ts'
import { diskFull, isDiskFull } from '../storage/disk-space.ts'
import type { BodyReservation } from './body-memory.ts'
import type { IncomingRequest } from './incoming-request.ts'
import { limitPartHeaders } from './limit-part-headers.ts'
import { readChunks } from './request-bytes.ts'
import { isSafeText, parseRequestJson } from './request-json.ts'
import { validate } from './validate.ts'

/** Name of the part that holds the file. */
const filePart = 'file'
const partHeaderBytesMax = 16_384

type FormTexts = Record<string, unknown>

/** Contents of a form: its texts by name, and the first file under the expected name. */
interface FormParts {
  readonly texts: ReadonlyMap<string, string>
  readonly file: UploadedFile | undefined
}

/**
 * Returns a function that receives the forms of a route. Files are written to disk as they arrive.
 *
 * @param folder  folder for uploaded files while their request is handled
 * @see RFC 7578
 */
export function createFormReader(
  body: MultipartBody,
  folder: string,
): (incoming: IncomingRequest, hold: BodyReservation) => PendingForm<FormTexts> {
  return (incoming, hold) => ({
    async receive(use) {
      const parser = createFormParser(incoming)
      const scratch = createUploadFile(folder)
      try {
        const parts = await readParts(parser, incoming, body, scratch, hold)
        return await use(toReceivedForm(parts, body))
      } finally {
        await scratch.remove()
      }
    },
  })
}

/** @throws control_plane_unavailable  when the folder cannot be created */
function createUploadFile(folder: string): ScratchFile {
  try {
    return createScratchFile(folder)
  } catch (error) {
    throw toFormError(error)
  }
}

/** @throws invalid_multipart  when the headers do not describe an uncompressed form */
function createFormParser({ headers }: IncomingRequest): BusboyInstance {
  const contentType = headers.get('content-type') ?? ''
  if (!/^multipart\/form-data\s*(?:;|$)/i.test(contentType))
    throw new WbError('invalid_multipart', 'the content type of the body must be multipart/form-data')
  if ((headers.get('content-encoding') ?? 'identity') !== 'identity')
    throw new WbError('invalid_multipart', 'the body must not be compressed')
  try {
    return new Busboy({
      headers: { 'content-type': contentType },
      preservePath: true,
      limits: {
        parts: limits.formParts,
        fieldSize: limits.formTextBytes,
        headerPairs: 16,
        // Longer headers are refused before they reach the parser, which would truncate them.
        headerSize: partHeaderBytesMax,
      },
    })
  } catch (cause) {
    throw missingBoundary(cause)
  }
}

/** @throws invalid_multipart  when there is no boundary */
function requireBoundary(headers: Headers): string {
  const boundary = new MIMEType(headers.get('content-type')!).params.get('boundary')
  if (boundary) return boundary
  throw missingBoundary()
}

function missingBoundary(cause?: unknown): WbError {
  return new WbError('invalid_multipart', 'the content type of the body names no boundary', {}, { cause })
}

/**
 * Reads the parts of a body.
 *
 * @throws invalid_multipart, payload_too_large, validation_error
 * @throws control_plane_unavailable  when the file cannot be written
 */
async function readParts(
  parser: BusboyInstance,
  incoming: IncomingRequest,
  { limitBytes, json }: MultipartBody,
  scratch: ScratchFile,
  hold: BodyReservation,
): Promise<FormParts> {
  const texts = new Map<string, string>()
  let textBytes = 0
  let refused: WbError | undefined
  let kept: { stream: BusboyFileStream; writing: Promise<UploadedFile> } | undefined
  parser.on('partsLimit', () => {
    refused ??= new WbError('invalid_multipart', `the form has more than ${limits.formParts} parts`)
  })
  const takeText = (name: string | undefined, text: string, isCut: boolean) => {
    if (name === undefined) return
    refused ??= textPartError(name, text, isCut, texts.has(name))
    if (refused) return
    textBytes += text.length
    refused = reserveBytes(hold, textBytes)
    texts.set(name, text)
  }
  parser.on('field', (name, text, _nameCut, isCut) => takeText(name, text, isCut))
  const reading: Promise<void>[] = []
  parser.on('file', (name, stream, fileName: string | undefined, _encoding, type) => {
    if (json.includes(name)) {
      const read = readTextPart(stream).then(({ text, isCut }) => takeText(name, text, isCut))
      read.catch(() => {})
      reading.push(read)
      return
    }
    if (name !== filePart || !fileName || kept) return discardPart(stream)
    const { path } = scratch
    const writing = storeFile(stream, path).then(sizeBytes => ({ name: fileName, type, sizeBytes, path }))
    // If writing fails, stop the parser with the reason.
    writing.catch(error => parser.destroy(error))
    kept = { stream, writing }
  })
  const bytes = readChunks(incoming.openBody(), limitBytes)
  const chunks = limitPartHeaders(bytes, requireBoundary(incoming.headers), partHeaderBytesMax)
  await pipeline(chunks, parser).catch(async error => {
    // The parser does not close an incomplete file.
    kept?.stream.destroy()
    await kept?.writing.catch(() => {})
    throw toFormError(error)
  })
  await Promise.all(reading)
  if (refused) throw refused
  // A small file may still be in the write buffer after the whole body has arrived.
  const file = await kept?.writing.catch(error => Promise.reject(toFormError(error)))
  // The handler reads the file into memory.
  hold.resize(textBytes + (file?.sizeBytes ?? 0))
  return { texts, file }
}

/** Returns the error if the bytes cannot be reserved, because handlers of parser events must not throw. */
function reserveBytes(hold: BodyReservation, bytes: number): WbError | undefined {
  try {
    hold.resize(bytes)
    return undefined
  } catch (error) {
    return toFormError(error)
  }
}

/**
 * Reads a JSON part that has a file name. Clients that send JSON fields of a form as Blobs produce such
 * parts.
 */
async function readTextPart(stream: BusboyFileStream): Promise<{ text: string; isCut: boolean }> {
  const chunks: Buffer[] = []
  let sizeBytes = 0
  for await (const chunk of stream) {
    sizeBytes += chunk.length
    if (sizeBytes <= limits.formTextBytes) chunks.push(chunk)
  }
  return { text: Buffer.concat(chunks).toString(), isCut: sizeBytes > limits.formTextBytes }
}

/** Discards a part, and ignores the error if the body ends early. */
function discardPart(stream: BusboyFileStream): void {
  stream.on('error', () => {})
  stream.resume()
}

/** Writes a file, and returns its size in bytes. */
async function storeFile(stream: BusboyFileStream, path: string): Promise<number> {
  const file = createWriteStream(path, { flags: 'wx', mode: 0o600 })
  const closed = new Promise<void>(resolve => file.once('close', () => resolve()))
  // After a failure, the file may still be about to be created; wait until it is closed.
  await pipeline(stream, file).finally(() => closed)
  return file.bytesWritten
}

function textPartError(name: string, text: string, isCut: boolean, isRepeated: boolean): WbError | undefined {
  if (isCut) return new WbError('payload_too_large', `${name}: is larger than ${limits.formTextBytes} bytes`)
  if (isRepeated) return new WbError('validation_error', `${name}: was sent more than once`)
  if (!isSafeText(text)) return new WbError('validation_error', `${name}: must not contain NUL characters`)
  return undefined
}

/** Returns the error for a failed body: a refusal, a disk error, or an invalid form. */
function toFormError(error: unknown): WbError {
  if (error instanceof WbError) return error
  if (isDiskFull(error)) return diskFull(error)
  if (error instanceof Error && 'syscall' in error)
    return new WbError(
      'control_plane_unavailable',
      'the file could not be written to the data directory',
      {},
      { cause: error },
    )
  return new WbError('invalid_multipart', 'the body is not a complete form', {}, { cause: error })
}

/**
 * @throws missing_file      when no part named `file` has a file name
 * @throws empty_file        when the file has no bytes
 * @throws validation_error  when the file name contains control characters or lone surrogates
 */
function toReceivedForm(
  { texts, file }: FormParts,
  { schema, json }: MultipartBody,
): ReceivedForm<FormTexts> {
  if (!file) throw new WbError('missing_file', 'the form has no part named file that has a file name')
  if (file.sizeBytes === 0) throw new WbError('empty_file', 'the file has no bytes')
  // A name in another charset than UTF-8 can produce characters that JSON bodies must not contain.
  if (/\p{Cc}/u.test(file.name) || !isSafeText(file.name))
    throw new WbError(
      'validation_error',
      'file: its name must not contain control characters or lone surrogates',
    )
  const known = Object.entries(schema.shape).filter(([name]) => texts.has(name))
  const sent = Object.fromEntries(
    known.map(([name]) => [name, json.includes(name) ? parseJsonOrText(texts.get(name)!) : texts.get(name)]),
  )
  return {
    file,
    ignored: [...texts.keys()].filter(name => !Object.hasOwn(schema.shape, name)),
    text: name => validate(z.object({ [name]: schema.shape[name]! }), sent)[name] as never,
    texts: () => validate(schema, sent),
  }
}

/** Parses a JSON text. Returns the text itself if it is invalid or not allowed in a body. */
function parseJsonOrText(text: string): unknown {
  try {
    return parseRequestJson(Buffer.from(text))
  } catch (error) {
    if (error instanceof WbError) return text
    throw error
  }
}

import { createWriteStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { MIMEType } from 'node:util'
import { Busboy, type BusboyFileStream, type BusboyInstance } from '@fastify/busboy'
import { z } from 'zod'
import { isSafeText, parseRequestJson } from '../base/request-json.ts'
import { createScratchFile, type ScratchFile } from '../base/scratch-file.ts'
import { WbError } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import type { MultipartBody, PendingForm, ReceivedForm, UploadedFile } from '../contract/route.ts'
import { diskFull, isDiskFull } from '../storage/disk-space.ts'
import type { BodyReservation } from './body-memory.ts'
import type { IncomingRequest } from './incoming-request.ts'
import { limitPartHeaders } from './limit-part-headers.ts'
import { readChunks } from './request-bytes.ts'
import { validate } from './validate.ts'

/** Name of the part that contains the file. */
const filePart = 'file'
const partHeaderBytesMax = 16_384

type FormTexts = Record<string, unknown>

/** Content of a form: the text fields by name, and the first file in the part `file`. */
interface FormParts {
  readonly texts: ReadonlyMap<string, string>
  readonly file: UploadedFile | undefined
}

/**
 * Returns a function that creates the form object of a request. The form is read when the handler calls its `receive`
 * method, and its file is written to disk as it arrives.
 *
 * @param folder  folder for uploaded files, which exist until their request ends
 * @see RFC 7578
 */
export function createFormReader(
  body: MultipartBody,
  folder: string,
): (incoming: IncomingRequest, reservation: BodyReservation) => PendingForm<FormTexts> {
  return (incoming, reservation) => ({
    async receive(use) {
      const parser = createFormParser(incoming)
      const scratch = createUploadFile(folder)
      try {
        const parts = await readParts(parser, incoming, body, scratch, reservation)
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

/** @throws invalid_multipart  when the request headers do not declare an uncompressed form */
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
        // `limitPartHeaders` rejects longer headers before the parser could truncate them.
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
  return new WbError('invalid_multipart', 'the content type of the body has no boundary', {}, { cause })
}

/**
 * Reads the parts of a form.
 *
 * @throws invalid_multipart, payload_too_large, validation_error
 * @throws control_plane_unavailable  when the file cannot be written
 */
async function readParts(
  parser: BusboyInstance,
  incoming: IncomingRequest,
  { limitBytes, json }: MultipartBody,
  scratch: ScratchFile,
  reservation: BodyReservation,
): Promise<FormParts> {
  const texts = new Map<string, string>()
  let textBytes = 0
  let formError: WbError | undefined
  let storedFile: { stream: BusboyFileStream; writing: Promise<UploadedFile> } | undefined
  parser.on('partsLimit', () => {
    formError ??= new WbError('invalid_multipart', `the form has more than ${limits.formParts} parts`)
  })
  const addText = (name: string | undefined, text: string, isTruncated: boolean) => {
    if (name === undefined) return
    formError ??= textPartError(name, text, isTruncated, texts.has(name))
    if (formError) return
    textBytes += text.length
    formError = reserveBytes(reservation, textBytes)
    texts.set(name, text)
  }
  parser.on('field', (name, text, _isNameTruncated, isTruncated) => addText(name, text, isTruncated))
  const reading: Promise<void>[] = []
  parser.on('file', (name, stream, fileName: string | undefined, _encoding, type) => {
    if (json.includes(name)) {
      const read = readTextPart(stream).then(({ text, isTruncated }) => addText(name, text, isTruncated))
      read.catch(() => {})
      reading.push(read)
      return
    }
    if (name !== filePart || !fileName || storedFile) return discardPart(stream)
    const { path } = scratch
    const writing = storeFile(stream, path).then(sizeBytes => ({ name: fileName, type, sizeBytes, path }))
    // A failed write stops the parser.
    writing.catch(error => parser.destroy(error))
    storedFile = { stream, writing }
  })
  const bytes = readChunks(incoming.openBody(), limitBytes)
  const chunks = limitPartHeaders(bytes, requireBoundary(incoming.headers), partHeaderBytesMax)
  await pipeline(chunks, parser).catch(async error => {
    // The parser does not close an incomplete file.
    storedFile?.stream.destroy()
    await storedFile?.writing.catch(() => {})
    throw toFormError(error)
  })
  await Promise.all(reading)
  // A small file may still be in the write buffer, or not created yet, after the whole body has arrived.
  const [stored] = await Promise.allSettled([storedFile?.writing])
  if (formError) throw formError
  if (stored.status === 'rejected') throw toFormError(stored.reason)
  const file = stored.value
  // The handler reads the file into memory.
  reservation.resize(textBytes + (file?.sizeBytes ?? 0))
  return { texts, file }
}

/** Reserves memory, and returns the error on failure, because event listeners of the parser must not throw. */
function reserveBytes(reservation: BodyReservation, bytes: number): WbError | undefined {
  try {
    reservation.resize(bytes)
    return undefined
  } catch (error) {
    return toFormError(error)
  }
}

/**
 * Reads a text field that the client sent as a file. Browsers send JSON this way if it was appended as a `Blob`.
 */
async function readTextPart(stream: BusboyFileStream): Promise<{ text: string; isTruncated: boolean }> {
  const chunks: Buffer[] = []
  let sizeBytes = 0
  for await (const chunk of stream) {
    sizeBytes += chunk.length
    if (sizeBytes <= limits.formTextBytes) chunks.push(chunk)
  }
  return { text: Buffer.concat(chunks).toString(), isTruncated: sizeBytes > limits.formTextBytes }
}

/** Discards a part. Ignores its error, because the parser also reports that the body ended early. */
function discardPart(stream: BusboyFileStream): void {
  stream.on('error', () => {})
  stream.resume()
}

/** Writes a file, and returns its size in bytes. */
async function storeFile(stream: BusboyFileStream, path: string): Promise<number> {
  const file = createWriteStream(path, { flags: 'wx', mode: 0o600 })
  const closed = new Promise<void>(resolve => file.once('close', () => resolve()))
  // After a failure, the file may not have been created yet. Wait until it is closed, so that it can be deleted.
  await pipeline(stream, file).finally(() => closed)
  return file.bytesWritten
}

function textPartError(
  name: string,
  text: string,
  isTruncated: boolean,
  isRepeated: boolean,
): WbError | undefined {
  if (isTruncated)
    return new WbError('payload_too_large', `${name}: is larger than ${limits.formTextBytes} bytes`)
  if (isRepeated) return new WbError('validation_error', `${name}: was sent more than once`)
  if (!isSafeText(text)) return new WbError('validation_error', `${name}: must not contain NUL characters`)
  return undefined
}

/** Returns the error to throw when reading a form has failed. */
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
 * Checks the file and prepares the text fields for validation.
 *
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
  // A name that is not in UTF-8 can decode to characters that are not allowed in JSON bodies.
  if (/\p{Cc}/u.test(file.name) || !isSafeText(file.name))
    throw new WbError(
      'validation_error',
      'file: its name must not contain control characters or lone surrogates',
    )
  const sentFields = Object.entries(schema.shape).filter(([name]) => texts.has(name))
  const sent = Object.fromEntries(
    sentFields.map(([name]) => [
      name,
      json.includes(name) ? parseJsonOrText(texts.get(name)!) : texts.get(name),
    ]),
  )
  return {
    file,
    ignored: [...texts.keys()].filter(name => !Object.hasOwn(schema.shape, name)),
    text: name => validate(z.object({ [name]: schema.shape[name]! }), sent)[name] as never,
    texts: () => validate(schema, sent),
  }
}

/** Parses JSON. Returns the string itself if it is not valid JSON or not allowed in a body. */
function parseJsonOrText(text: string): unknown {
  try {
    return parseRequestJson(Buffer.from(text))
  } catch (error) {
    if (error instanceof WbError) return text
    throw error
  }
}

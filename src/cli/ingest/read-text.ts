import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { sha256 } from '../../base/id.ts'
import { limits } from '../../contract/limits.ts'

/** A text, or the reason why it could not be read. */
export type ReadResult =
  | { readonly text: string; readonly sizeBytes: number }
  | { readonly failure: 'binary' | 'encoding' | 'too_long' | 'not_a_file' }
  | SystemFailure

/** Error of the operating system. */
export interface SystemFailure {
  readonly failure: 'system'
  readonly code: string
  readonly message: string
}

/** The bytes of a file. */
export interface ReadBytes {
  readonly bytes: Uint8Array<ArrayBuffer>
  /** SHA-256. */
  readonly hash: string
}

/** The reason why a file could not be read. */
export type ReadFailure = { readonly failure: 'not_a_file' | 'too_large' } | SystemFailure

/** Maximum size of a file that is sent to the runtime. The rest of the request is small. */
export const fileBytesMax = limits.ingestBodyBytes - 100_000

/** Maximum size of a file: three bytes of UTF-8 for each UTF-16 code unit, plus a byte order mark. */
const bytesMax = limits.ingestTextChars * 3 + 3
const bytesPerRead = 1 << 20

/**
 * Reads a file of UTF-8 text. Never blocks on a pipe or device, and never reads much more than the longest text
 * that can be ingested.
 *
 * @param follow  true to follow a symbolic link
 */
export async function readText(path: string, { follow }: { follow: boolean }): Promise<ReadResult> {
  return withFile<ReadResult>(path, follow, (handle, size) =>
    size > bytesMax ? { failure: 'too_long' } : readStream(piecesOf(handle, size)),
  )
}

/** Returns the bytes of a file in pieces. A small file is one piece, which takes less time than a stream. */
async function* piecesOf(handle: FileHandle, size: number): AsyncGenerator<Uint8Array> {
  if (size > bytesPerRead) yield* handle.createReadStream({ autoClose: false, highWaterMark: bytesPerRead })
  else yield await handle.readFile()
}

/** Opens a regular file without blocking, and closes it after use. */
async function withFile<T>(
  path: string,
  follow: boolean,
  use: (handle: FileHandle, size: number) => T | Promise<T>,
): Promise<T | { readonly failure: 'not_a_file' } | SystemFailure> {
  const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (follow ? 0 : (constants.O_NOFOLLOW ?? 0))
  try {
    const handle = await open(path, flags)
    try {
      const found = await handle.stat()
      return found.isFile() ? await use(handle, found.size) : { failure: 'not_a_file' }
    } finally {
      await handle.close()
    }
  } catch (error) {
    return systemFailure(error)
  }
}

/**
 * Reads a file that the runtime converts to text. Never blocks on a pipe or device.
 *
 * @param follow  true to follow a symbolic link
 */
export async function readBytes(
  path: string,
  { follow }: { follow: boolean },
): Promise<ReadBytes | ReadFailure> {
  return withFile<ReadBytes | ReadFailure>(path, follow, async (handle, size) => {
    if (size > fileBytesMax) return { failure: 'too_large' }
    return readStreamBytes(piecesOf(handle, size))
  })
}

/** Reads a stream. */
export async function readStreamBytes(stream: AsyncIterable<Uint8Array>): Promise<ReadBytes> {
  const pieces: Uint8Array[] = []
  for await (const piece of stream) pieces.push(piece)
  const bytes = new Uint8Array(Buffer.concat(pieces))
  return { bytes, hash: sha256(bytes) }
}

/** Reads UTF-8 text from a stream. Stops when it reads a NUL or invalid byte, or the text is too long. */
export async function readStream(stream: AsyncIterable<Uint8Array>): Promise<ReadResult> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const pieces: string[] = []
  let chars = 0
  let sizeBytes = 0
  for await (const bytes of stream) {
    if (bytes.includes(0)) return { failure: 'binary' }
    sizeBytes += bytes.length
    const piece = tryDecode(() => decoder.decode(bytes, { stream: true }))
    if (piece === undefined) return { failure: 'encoding' }
    chars += piece.length
    if (chars > limits.ingestTextChars) return { failure: 'too_long' }
    pieces.push(piece)
  }
  const rest = tryDecode(() => decoder.decode())
  if (rest === undefined) return { failure: 'encoding' }
  return { text: pieces.join('') + rest, sizeBytes }
}

/** Returns undefined for bytes that are not UTF-8. */
function tryDecode(decode: () => string): string | undefined {
  try {
    return decode()
  } catch (error) {
    if (error instanceof TypeError) return undefined
    throw error
  }
}

const messageBySystemCode: Record<string, string> = {
  ENOENT: 'file or folder not found',
  EACCES: 'you do not have permission to read it',
  EPERM: 'you do not have permission to read it',
  ELOOP: 'its symbolic links form a loop',
  EISDIR: 'it is a folder',
  ENXIO: 'it is a socket or a device',
  ENAMETOOLONG: 'its name is too long',
}

/** Converts an error of the operating system to a result without a path. Throws other errors again. */
export function systemFailure(error: unknown): SystemFailure {
  if (!(error instanceof Error) || !('code' in error)) throw error
  const code = String(error.code)
  return { failure: 'system', code, message: messageBySystemCode[code] ?? 'it could not be read' }
}

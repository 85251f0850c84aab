import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
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

/** Maximum size of a file: three bytes of UTF-8 for each UTF-16 code unit, plus a byte order mark. */
const bytesMax = limits.ingestTextChars * 3 + 3
const readBytes = 1 << 20

/**
 * Reads a file of UTF-8 text. Never blocks on a pipe or device, and never reads much more than the longest text
 * that can be ingested.
 *
 * @param follow  true to follow a symbolic link
 */
export async function readText(path: string, { follow }: { follow: boolean }): Promise<ReadResult> {
  const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (follow ? 0 : (constants.O_NOFOLLOW ?? 0))
  try {
    const handle = await open(path, flags)
    try {
      const stats = await handle.stat()
      if (!stats.isFile()) return { failure: 'not_a_file' }
      if (stats.size > bytesMax) return { failure: 'too_long' }
      return await readStream(handle.createReadStream({ autoClose: false, highWaterMark: readBytes }))
    } finally {
      await handle.close()
    }
  } catch (error) {
    return systemFailure(error)
  }
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

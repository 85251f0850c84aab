import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { limits } from '../../contract/limits.ts'

/** A text, or the reason why it could not be read. */
export type ReadResult =
  | { readonly text: string; readonly sizeBytes: number }
  | { readonly refused: 'binary' | 'encoding' | 'too_long' | 'not_a_file' }
  | SystemRefusal

/** Error of the operating system. */
export interface SystemRefusal {
  readonly refused: 'system'
  readonly code: string
  readonly message: string
}

/** Maximum size in UTF-8: three bytes for each UTF-16 code unit, plus a byte order mark. */
const bytesMax = limits.ingestTextChars * 3 + 3
const readBytes = 1 << 20

/**
 * Reads a file of UTF-8 text. Never blocks on a pipe or device, and never holds more than the longest text
 * that can be ingested.
 *
 * @param follow  true to follow a symbolic link
 */
export async function readText(path: string, { follow }: { follow: boolean }): Promise<ReadResult> {
  const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (follow ? 0 : (constants.O_NOFOLLOW ?? 0))
  try {
    const handle = await open(path, flags)
    try {
      const found = await handle.stat()
      if (!found.isFile()) return { refused: 'not_a_file' }
      if (found.size > bytesMax) return { refused: 'too_long' }
      return await readStream(handle.createReadStream({ autoClose: false, highWaterMark: readBytes }))
    } finally {
      await handle.close()
    }
  } catch (error) {
    return systemRefusal(error)
  }
}

/** Reads UTF-8 text from a stream. Stops at the first invalid byte, or when the text is too long. */
export async function readStream(stream: AsyncIterable<Uint8Array>): Promise<ReadResult> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const pieces: string[] = []
  let chars = 0
  let sizeBytes = 0
  for await (const bytes of stream) {
    if (bytes.includes(0)) return { refused: 'binary' }
    sizeBytes += bytes.length
    const piece = tryDecode(() => decoder.decode(bytes, { stream: true }))
    if (piece === undefined) return { refused: 'encoding' }
    chars += piece.length
    if (chars > limits.ingestTextChars) return { refused: 'too_long' }
    pieces.push(piece)
  }
  const rest = tryDecode(() => decoder.decode())
  if (rest === undefined) return { refused: 'encoding' }
  return { text: pieces.join('') + rest, sizeBytes }
}

function tryDecode(decode: () => string): string | undefined {
  try {
    return decode()
  } catch (error) {
    if (error instanceof TypeError) return undefined
    throw error
  }
}

const reasonsOfSystemCode: Record<string, string> = {
  ENOENT: 'file or folder not found',
  EACCES: 'you do not have permission to read it',
  EPERM: 'you do not have permission to read it',
  ELOOP: 'its symbolic links form a loop',
  EISDIR: 'it is a folder',
  ENXIO: 'it is a socket or a device',
  ENAMETOOLONG: 'its name is too long',
}

/** Returns the error of the operating system without its path. Throws other errors. */
export function systemRefusal(error: unknown): SystemRefusal {
  if (!(error instanceof Error) || !('code' in error)) throw error
  const code = String(error.code)
  return { refused: 'system', code, message: reasonsOfSystemCode[code] ?? 'it could not be read' }
}

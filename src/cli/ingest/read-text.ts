import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { limits } from '../../contract/limits.ts'

/** A text that was read, or why there is none. */
export type Reading =
  | { readonly text: string; readonly sizeBytes: number }
  | { readonly refused: 'binary' | 'encoding' | 'too_long' | 'not_a_file' }
  | SystemRefusal

/** What the operating system refused. */
export interface SystemRefusal {
  readonly refused: 'system'
  readonly code: string
  readonly message: string
}

/** Only a text of which each UTF-16 unit takes three bytes is this long; a byte order mark comes on top. */
const bytesMax = limits.ingestTextChars * 3 + 3
const pieceBytes = 1 << 20

/**
 * Read a file of UTF-8 text. Never waits for a pipe or a device, and never holds more than the longest text that can
 * be ingested.
 *
 * @param follow  a symbolic link may be followed, as the person named it
 */
export async function readText(path: string, { follow }: { follow: boolean }): Promise<Reading> {
  const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (follow ? 0 : (constants.O_NOFOLLOW ?? 0))
  try {
    const handle = await open(path, flags)
    try {
      const found = await handle.stat()
      if (!found.isFile()) return { refused: 'not_a_file' }
      if (found.size > bytesMax) return { refused: 'too_long' }
      return await readStream(handle.createReadStream({ autoClose: false, highWaterMark: pieceBytes }))
    } finally {
      await handle.close()
    }
  } catch (error) {
    return systemRefusal(error)
  }
}

/** Text of a stream of UTF-8, given up at the first byte that tells that it is none, or too much. */
export async function readStream(stream: AsyncIterable<Uint8Array>): Promise<Reading> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const pieces: string[] = []
  let chars = 0
  let sizeBytes = 0
  for await (const bytes of stream) {
    if (bytes.includes(0)) return { refused: 'binary' }
    sizeBytes += bytes.length
    const piece = decoded(() => decoder.decode(bytes, { stream: true }))
    if (piece === undefined) return { refused: 'encoding' }
    chars += piece.length
    if (chars > limits.ingestTextChars) return { refused: 'too_long' }
    pieces.push(piece)
  }
  const rest = decoded(() => decoder.decode())
  if (rest === undefined) return { refused: 'encoding' }
  return { text: pieces.join('') + rest, sizeBytes }
}

function decoded(decode: () => string): string | undefined {
  try {
    return decode()
  } catch (error) {
    if (error instanceof TypeError) return undefined
    throw error
  }
}

const reasons: Record<string, string> = {
  ENOENT: 'there is no such file or folder',
  EACCES: 'this user may not read it',
  EPERM: 'this user may not read it',
  ELOOP: 'its symbolic links lead in a circle or elsewhere',
  EISDIR: 'it is a folder',
  ENXIO: 'it is a socket or a device',
  ENAMETOOLONG: 'its name is too long',
}

/** What the operating system refused, told without a path. */
export function systemRefusal(error: unknown): SystemRefusal {
  if (!(error instanceof Error) || !('code' in error)) throw error
  const code = String(error.code)
  return { refused: 'system', code, message: reasons[code] ?? 'the operating system could not read it' }
}

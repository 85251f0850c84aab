import { readFile, stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { limits } from '../../contract/limits.ts'
import { UsageError } from '../errors.ts'
import { systemFailure } from '../ingest/read-text.ts'
import { isMaybeText, mediaTypeOf } from '../ingest/text-types.ts'
import { resolveTypedPath } from '../resolve-typed-path.ts'

/**
 * Reads a file to attach to a conversation.
 *
 * @throws UsageError  the file cannot be read, is not a regular file, or is too large
 */
export async function readAttachment(path: string, cwd: string): Promise<File> {
  const file = resolveTypedPath(cwd, path)
  const name = basename(path)
  const type = isMaybeText(name) ? mediaTypeOf(name) : 'application/octet-stream'
  const unreadableError = (reason: string) => new UsageError(`"${path}" cannot be read: ${reason}`)
  try {
    const stats = await stat(file)
    if (!stats.isFile()) throw unreadableError('it is not a file')
    if (stats.size > limits.attachmentBodyBytes)
      throw unreadableError(`it is larger than ${limits.attachmentBodyBytes} bytes`)
    return new File([await readFile(file)], name, { type })
  } catch (error) {
    if (error instanceof UsageError) throw error
    throw unreadableError(systemFailure(error).message)
  }
}

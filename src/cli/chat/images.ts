import { readFile, stat } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Message } from '../../contract/conversations.ts'
import { imageTypeOf } from '../../contract/images.ts'
import { limits } from '../../contract/limits.ts'
import { UsageError } from '../errors.ts'
import { resolveTypedPath } from '../resolve-typed-path.ts'
import { formatByteSize } from '../terminal/byte-size.ts'
import { plainLine } from '../terminal/terminal-text.ts'
import type { NamedImage } from './port.ts'

const reasonBySystemCode: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'permission denied',
  EISDIR: 'it is a folder',
}

/**
 * Reads images to send with a message. The type of an image is detected from its content, not from its name.
 *
 * @throws UsageError  there are too many images, or one cannot be read, is too large or has an unsupported format
 */
export async function readImages(paths: readonly string[], cwd: string): Promise<NamedImage[]> {
  if (paths.length > limits.messageImages)
    throw new UsageError(`a message can have at most ${limits.messageImages} images, not ${paths.length}`)
  return Promise.all(paths.map(path => readImage(path, cwd)))
}

/** Like {@link readImages}, for one image. */
export async function readImage(path: string, cwd: string): Promise<NamedImage> {
  const bytes = await readBytes(path, cwd)
  const mediaType = imageTypeOf(bytes)
  if (!mediaType)
    throw new UsageError(`"${path}" is not an image in a supported format: use PNG, JPEG, GIF or WebP`)
  return { name: basename(path), mediaType, data: bytes.toString('base64') }
}

async function readBytes(path: string, cwd: string): Promise<Buffer> {
  const file = resolveTypedPath(cwd, path)
  try {
    const stats = await stat(file)
    if (!stats.isFile() && !stats.isDirectory())
      throw new UsageError(`"${path}" cannot be read: it is not a file`)
    if (stats.size > limits.imageBytes)
      throw new UsageError(
        `"${path}" is too large: an image can have at most ${formatByteSize(limits.imageBytes)}`,
      )
    return await readFile(file)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : undefined
    if (code === undefined) throw error
    throw new UsageError(`"${path}" cannot be read: ${reasonBySystemCode[code] ?? code}`)
  }
}

/** Returns the line that represents an image, with its file name. */
export function namedImageLine({ name }: NamedImage): string {
  return `[image: ${plainLine(name)}]`
}

/** Returns a line for each image of a message: its number, type and size. */
export function imageLines({ images = [] }: Message): string[] {
  return images.map(
    ({ index, mediaType, bytes }) => `[image ${index + 1}: ${mediaType}, ${formatByteSize(bytes)}]`,
  )
}

import { readFile, stat } from 'node:fs/promises'
import type { Message } from '../../contract/conversations.ts'
import { type ImageInput, imageTypeOf } from '../../contract/images.ts'
import { limits } from '../../contract/limits.ts'
import { UsageError } from '../faults.ts'
import { typedPath } from '../typed-path.ts'

const unreadable: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'permission denied',
  EISDIR: 'it is a folder',
}

/**
 * Reads images to send with a message. Their content decides their type, not their name.
 *
 * @throws UsageError  there are too many, or a file cannot be read, is too large or has another format
 */
export async function readImages(paths: readonly string[], cwd: string): Promise<ImageInput[]> {
  if (paths.length > limits.messageImages)
    throw new UsageError(`a message can have at most ${limits.messageImages} images, not ${paths.length}`)
  return Promise.all(paths.map(path => readImage(path, cwd)))
}

async function readImage(path: string, cwd: string): Promise<ImageInput> {
  const bytes = await readBytes(path, cwd)
  const mediaType = imageTypeOf(bytes)
  if (!mediaType)
    throw new UsageError(`"${path}" is not an image that models read: use PNG, JPEG, GIF or WebP`)
  return { mediaType, data: bytes.toString('base64') }
}

async function readBytes(path: string, cwd: string): Promise<Buffer> {
  const file = typedPath(cwd, path)
  try {
    const { size } = await stat(file)
    if (size > limits.imageBytes)
      throw new UsageError(`"${path}" is too large: an image can have at most ${sizeOf(limits.imageBytes)}`)
    return await readFile(file)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : undefined
    if (code === undefined) throw error
    throw new UsageError(`"${path}" cannot be read: ${unreadable[code] ?? code}`)
  }
}

/** Returns a line for each image of a message: its number, type and size. */
export function imageLines({ images = [] }: Message): string[] {
  return images.map(({ index, mediaType, bytes }) => `[image ${index + 1}: ${mediaType}, ${sizeOf(bytes)}]`)
}

function sizeOf(bytes: number): string {
  return bytes < 1_000_000 ? `${Math.ceil(bytes / 1_000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`
}

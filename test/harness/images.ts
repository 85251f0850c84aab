import type { ImageInput, ImageMediaType } from '../../src/contract/images.ts'

const heads: Readonly<Record<ImageMediaType, string>> = {
  'image/png': '\x89PNG\r\n\x1a\n',
  'image/jpeg': '\xff\xd8\xff\xe0',
  'image/gif': 'GIF89a',
  'image/webp': 'RIFF\x10\x00\x00\x00WEBP',
}

/** Bytes that begin as a file of the type does; the rest is filled with a character. */
export function imageBytes(mediaType: ImageMediaType = 'image/png', size = 64, fill = 'x'): Buffer {
  return Buffer.from(heads[mediaType].padEnd(size, fill), 'latin1')
}

/** An image as a client sends it. */
export function imageOf(mediaType: ImageMediaType = 'image/png', size = 64, fill = 'x'): ImageInput {
  return { mediaType, data: imageBytes(mediaType, size, fill).toString('base64') }
}

/** The image as a model receives it. */
export function partOf({ mediaType, data }: ImageInput) {
  return { type: 'image_url', image_url: { url: `data:${mediaType};base64,${data}` } }
}

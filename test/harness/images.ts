import type { ImageInput, ImageMediaType } from '../../src/contract/images.ts'

const heads: Readonly<Record<ImageMediaType, string>> = {
  'image/png': '\x89PNG\r\n\x1a\n',
  'image/jpeg': '\xff\xd8\xff\xe0',
  'image/gif': 'GIF89a',
  'image/webp': 'RIFF\x10\x00\x00\x00WEBP',
}

/** Returns bytes that start like a file of the type and are filled with a character. */
export function imageBytes(mediaType: ImageMediaType = 'image/png', size = 64, fill = 'x'): Buffer {
  return Buffer.from(heads[mediaType].padEnd(size, fill), 'latin1')
}

/** Returns an image as a client sends it. */
export function imageOf(mediaType: ImageMediaType = 'image/png', size = 64, fill = 'x'): ImageInput {
  return { mediaType, data: imageBytes(mediaType, size, fill).toString('base64') }
}

/** Returns an image as a model receives it. */
export function imagePart({ mediaType, data }: ImageInput) {
  return { type: 'image_url', image_url: { url: `data:${mediaType};base64,${data}` } }
}

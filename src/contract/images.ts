import { z } from 'zod'
import { limits } from './limits.ts'

/** Supported image formats. */
export const imageMediaTypes = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'] as const
export type ImageMediaType = (typeof imageMediaTypes)[number]

const signatures: Readonly<Record<ImageMediaType, RegExp>> = {
  'image/png': /^\u{89}PNG\r\n\u{1a}\n/u,
  'image/jpeg': /^\u{ff}\u{d8}\u{ff}/u,
  'image/gif': /^GIF8[79]a/,
  'image/webp': /^RIFF[\s\S]{4}WEBP/,
}
const signatureBytes = 12

/** Detects the media type of an image from its first bytes. Returns undefined for other formats. */
export function imageTypeOf(bytes: Uint8Array): ImageMediaType | undefined {
  const head = Buffer.from(bytes.subarray(0, signatureBytes)).toString('latin1')
  return imageMediaTypes.find(type => signatures[type].test(head))
}

const base64CharsMax = 4 * Math.ceil(limits.imageBytes / 3)

/** Returns the reason why the data is not a valid image of its media type; undefined if it is. */
function imageProblem({ mediaType, data }: { mediaType: ImageMediaType; data: string }): string | undefined {
  if (data.length > base64CharsMax) return `must have at most ${limits.imageBytes} bytes`
  const bytes = Buffer.from(data, 'base64')
  // The decoder skips invalid characters. Encoding the bytes again detects them.
  if (bytes.toString('base64') !== data) return 'must be base64 with padding and without white space'
  if (bytes.length > limits.imageBytes) return `must have at most ${limits.imageBytes} bytes`
  return imageTypeOf(bytes) === mediaType ? undefined : `must be an image of the type ${mediaType}`
}

/** Image from a client. */
export const ImageInput = z
  .object({
    mediaType: z.enum(imageMediaTypes).meta({ description: 'media type of the image' }),
    data: z.string().meta({
      description: `image in base64, at most ${limits.imageBytes} bytes when decoded`,
      contentEncoding: 'base64',
    }),
  })
  .superRefine((image, context) => {
    const message = imageProblem(image)
    if (message !== undefined) context.addIssue({ code: 'custom', path: ['data'], message })
  })
export type ImageInput = z.output<typeof ImageInput>

/** Image of a stored message, without its data. */
export const ImageDescriptor = z.object({
  index: z.int().nonnegative().meta({ description: 'position in the message, from 0' }),
  mediaType: z.enum(imageMediaTypes).meta({ description: 'media type of the image' }),
  bytes: z.int().nonnegative().meta({ description: 'size of the image in bytes' }),
})
export type ImageDescriptor = z.output<typeof ImageDescriptor>

const dataUrl = /^data:([a-z]+\/[a-z]+);base64,/

/** Returns the image in a data URL without validating it; undefined for other URLs. */
export function parseImageUrl(url: string): { mediaType: string; data: string } | undefined {
  const [prefix, mediaType] = dataUrl.exec(url) ?? []
  return prefix === undefined ? undefined : { mediaType: mediaType!, data: url.slice(prefix.length) }
}

/** Returns an image as a data URL. */
export function imageUrl({ mediaType, data }: Pick<ImageInput, 'mediaType' | 'data'>): string {
  return `data:${mediaType};base64,${data}`
}

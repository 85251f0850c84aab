import type { FetchedPage } from './fetch-page.ts'

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Returns true for the media types of web pages. */
export function isHtml(mediaType: string): boolean {
  return mediaType === 'text/html' || mediaType === 'application/xhtml+xml'
}

/**
 * Decodes a page: with its byte order mark, or else with the encoding that the server names, or else as UTF-8 if it is
 * valid, or else with the encoding that the page declares.
 */
export function decodePage({ bytes, charset }: Pick<FetchedPage, 'bytes' | 'charset'>): string {
  const marked =
    bytes[0] === 0xff && bytes[1] === 0xfe
      ? 'utf-16le'
      : bytes[0] === 0xfe && bytes[1] === 0xff
        ? 'utf-16be'
        : undefined
  const named = marked ?? charset
  if (named !== undefined) return decoderFor(named).decode(bytes)
  try {
    return utf8.decode(bytes)
  } catch {
    const head = bytes.subarray(0, 4_096).toString('latin1')
    return decoderFor(/<meta[^>]{0,200}charset\s*=\s*["']?([\w.:-]{1,40})/i.exec(head)?.[1] ?? '').decode(
      bytes,
    )
  }
}

/** Returns a decoder for an encoding; that of Windows for Western languages if the name is unknown. */
function decoderFor(name: string): InstanceType<typeof TextDecoder> {
  try {
    return new TextDecoder(name)
  } catch {
    return new TextDecoder('windows-1252')
  }
}

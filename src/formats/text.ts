import chardet from 'chardet'
import type { WbError } from '../contract/errors.ts'
import { unreadable } from './file-text.ts'

/** Number of bytes at the start of a file from which its encoding is guessed. */
const sampleBytes = 65_536
/** Share of control characters from which a text in an unknown encoding is binary data. */
const controlShareMax = 0.02

const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * Decodes a text. Uses its byte order mark, or else UTF-8 if the text is valid UTF-8, or else the encoding that the text
 * declares, or else the most probable one.
 *
 * @param declared  name of the encoding that the text declares
 * @throws extraction_failed  the bytes are not a text
 */
export function decodeText(bytes: Uint8Array, declared?: string): string {
  const marked = decodeMarked(bytes)
  if (marked !== undefined) return marked
  if (bytes.includes(0)) throw notText()
  try {
    return utf8.decode(bytes)
  } catch {
    const guessed = declared ?? chardet.detect(bytes.subarray(0, sampleBytes)) ?? 'windows-1252'
    const text = decoderFor(guessed).decode(bytes)
    if (isBinary(text)) throw notText()
    return text
  }
}

function decodeMarked(bytes: Uint8Array): string | undefined {
  const [first, second] = bytes
  if (first === 0xff && second === 0xfe) return decodeUtf16('utf-16le', bytes)
  if (first === 0xfe && second === 0xff) return decodeUtf16('utf-16be', bytes)
  if (bytes.length % 2 !== 0) return undefined
  const [even, odd] = zeroShares(bytes.subarray(0, sampleBytes))
  if (odd > 0.3 && even < 0.05) return decodeUtf16('utf-16le', bytes)
  if (even > 0.3 && odd < 0.05) return decodeUtf16('utf-16be', bytes)
  return undefined
}

function decodeUtf16(encoding: 'utf-16le' | 'utf-16be', bytes: Uint8Array): string {
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes)
  } catch (error) {
    throw unreadable('is damaged UTF-16 text', undefined, error)
  }
}

/** Returns the shares of zero bytes at even and odd offsets. In UTF-16, most Latin letters have one zero byte. */
function zeroShares(bytes: Uint8Array): [even: number, odd: number] {
  const zeros = [0, 0] satisfies [number, number]
  bytes.forEach((byte, at) => {
    if (byte === 0) zeros[(at % 2) as 0 | 1]++
  })
  const half = Math.max(1, bytes.length / 2)
  return [zeros[0] / half, zeros[1] / half]
}

/** Returns a decoder for an encoding; that of Windows for Western languages if the name is unknown. */
export function decoderFor(name: string): InstanceType<typeof TextDecoder> {
  try {
    return new TextDecoder(name)
  } catch {
    return new TextDecoder('windows-1252')
  }
}

/** Returns true if more than a few characters are control characters, as in binary data. */
function isBinary(text: string): boolean {
  const sample = text.slice(0, sampleBytes)
  const controls = sample.match(/[\0-\x08\x0e-\x1a\x1c-\x1f\x7f]/g)?.length ?? 0
  return controls > sample.length * controlShareMax
}

function notText(): WbError {
  return unreadable('contains binary data in an unknown format')
}

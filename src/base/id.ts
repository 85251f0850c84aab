import { createHash, randomBytes, randomFillSync, randomUUID } from 'node:crypto'
import { monotonicFactory } from 'ulid'

/** A new resource id: UUID v4. */
export function newId(): string {
  return randomUUID()
}

/** The id of what is told by some values alone: a UUID, the same for the same values. @see RFC 9562 section 5.8 */
export function idFrom(...values: readonly (string | null)[]): string {
  const hex = sha256(JSON.stringify(values))
  return hex.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-8$3-8$4-$5')
}

/** Random bytes in stock, as drawing a few at a time costs 1 us and more. For names, not for secrets: they linger here. */
const stock = Buffer.alloc(4096)
let used = stock.length

function draw(sizeBytes: number): number {
  if (used + sizeBytes > stock.length) {
    randomFillSync(stock)
    used = 0
  }
  used += sizeBytes
  return used - sizeBytes
}

/** Random lower-case hex that names something and protects nothing; at most 64 bytes. */
export function nameHex(sizeBytes: number): string {
  const from = draw(sizeBytes)
  return stock.toString('hex', from, from + sizeBytes)
}

const nextUlid = monotonicFactory(() => stock[draw(1)]! / 256)

/** A new request id: ULID, 26 characters, sorted by time. */
export function newRequestId(): string {
  return nextUlid()
}

/** `sizeBytes` random bytes in lower-case hex. */
export function randomHex(sizeBytes: number): string {
  return randomBytes(sizeBytes).toString('hex')
}

const letters = 'abcdefghijklmnopqrstuvwxyz0123456789'
/** Bytes from here on would make the first letters likelier than the others. */
const fairBytes = 256 - (256 % letters.length)

/** Random letters `[a-z0-9]`, all equally likely: 5.17 bits each. Fit for secrets. */
export function randomLetters(count: number): string {
  let text = ''
  while (text.length < count)
    for (const byte of randomBytes(count - text.length))
      if (byte < fairBytes) text += letters[byte % letters.length]
  return text
}

/** Lower-case hex SHA-256 of the UTF-8 bytes. */
export function sha256(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex')
}

/** Random bytes that keys, initialisation vectors and one-time secrets are made of. */
export function randomOctets(sizeBytes: number): Buffer {
  return randomBytes(sizeBytes)
}

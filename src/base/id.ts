import { createHash, randomBytes, randomFillSync, randomUUID } from 'node:crypto'
import { monotonicFactory } from 'ulid'

/** Creates a resource ID: UUID v4. */
export function newId(): string {
  return randomUUID()
}

/**
 * Returns a UUID that is derived from values. Equal values have the same UUID.
 *
 * @see RFC 9562 section 5.8
 */
export function idFrom(...values: readonly (string | null)[]): string {
  const hex = sha256(JSON.stringify(values))
  return hex.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-8$3-8$4-$5')
}

/**
 * Buffer of random bytes, because requesting a few at a time takes 1 µs or more. Not for secrets, as they
 * would stay in memory.
 */
const pool = Buffer.alloc(4096)
let poolUsed = pool.length

function takeFromPool(sizeBytes: number): number {
  if (poolUsed + sizeBytes > pool.length) {
    randomFillSync(pool)
    poolUsed = 0
  }
  poolUsed += sizeBytes
  return poolUsed - sizeBytes
}

/** Returns random lower-case hex for names, at most 64 bytes. Not for secrets. */
export function randomNameHex(sizeBytes: number): string {
  const from = takeFromPool(sizeBytes)
  return pool.toString('hex', from, from + sizeBytes)
}

const nextUlid = monotonicFactory(() => pool[takeFromPool(1)]! / 256)

/** Creates a request ID: a ULID of 26 characters. Later IDs sort after earlier ones. */
export function newRequestId(): string {
  return nextUlid()
}

/** Returns `sizeBytes` random bytes as lower-case hex. */
export function randomHex(sizeBytes: number): string {
  return randomBytes(sizeBytes).toString('hex')
}

const letters = 'abcdefghijklmnopqrstuvwxyz0123456789'
/** Bytes from this value on are skipped, because they would make the first letters likelier than the others. */
const unbiasedBytes = 256 - (256 % letters.length)

/** Returns random characters of `[a-z0-9]`, all equally likely: 5.17 bits each. Suitable for secrets. */
export function randomLetters(count: number): string {
  let text = ''
  while (text.length < count)
    for (const byte of randomBytes(count - text.length))
      if (byte < unbiasedBytes) text += letters[byte % letters.length]
  return text
}

/** Returns the SHA-256 of the UTF-8 bytes of a text, as lower-case hex. */
export function sha256(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex')
}

/** Returns random bytes for keys, initialization vectors and one-time secrets. */
export function randomOctets(sizeBytes: number): Buffer {
  return randomBytes(sizeBytes)
}

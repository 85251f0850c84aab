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
 * Buffer of random bytes. Requesting a few bytes at a time from the system takes 1 µs or more. Do not use these bytes
 * for secrets, because they stay in memory.
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

/** Returns up to 64 random bytes as lowercase hex, for names. Not for secrets. */
export function randomNameHex(sizeBytes: number): string {
  const from = takeFromPool(sizeBytes)
  return pool.toString('hex', from, from + sizeBytes)
}

const nextUlid = monotonicFactory(() => pool[takeFromPool(1)]! / 256)

/** Creates a request ID: a ULID of 26 characters. Later IDs sort after earlier ones. */
export function newRequestId(): string {
  return nextUlid()
}

/** Returns `sizeBytes` random bytes as lowercase hex. */
export function randomHex(sizeBytes: number): string {
  return randomBytes(sizeBytes).toString('hex')
}

const letters = 'abcdefghijklmnopqrstuvwxyz0123456789'
/** Bytes of at least this value are skipped, because they would make the first letters more likely than the others. */
const unbiasedBytes = 256 - (256 % letters.length)

/** Returns random characters from `[a-z0-9]` with equal probability (5.17 bits per character). Suitable for secrets. */
export function randomLetters(count: number): string {
  let text = ''
  while (text.length < count)
    for (const byte of randomBytes(count - text.length))
      if (byte < unbiasedBytes) text += letters[byte % letters.length]
  return text
}

/** Returns the SHA-256 hash of bytes, or of the UTF-8 bytes of a string, as lowercase hex. */
export function sha256(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex')
}

/** Returns random bytes for keys, initialization vectors and one-time secrets. */
export function randomOctets(sizeBytes: number): Buffer {
  return randomBytes(sizeBytes)
}

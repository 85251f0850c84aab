import { createHmac, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { randomHex, randomLetters } from '../../base/id.ts'

const prefixChars = 12
const secretChars = 32
/** Length of the checksum at the end of the secret. The remaining characters of the secret contain 134 random bits. */
const checksumChars = 6
const checksumBase = 36
const checksumRange = BigInt(checksumBase ** checksumChars)
const saltBytes = 16
const digestBytes = 32

const tokenPattern = new RegExp(`^wb_live_([a-z0-9]{${prefixChars}})_[a-z0-9]{${secretChars}}$`)
const digestPattern = new RegExp(`^scrypt\\$([0-9a-f]{${2 * saltBytes}})\\$([0-9a-f]{${2 * digestBytes}})$`)

/** Cost of deriving a digest from a token. All processes that use a store must use the same cost. */
export type KeyCost = Required<Pick<ScryptOptions, 'N' | 'r' | 'p'>>

/** At this cost, deriving a digest takes 40 ms and 16 MB. */
export const productionCost: KeyCost = { N: 16_384, r: 8, p: 1 }

const derive = promisify<string, Buffer, number, KeyCost, Buffer>(scrypt)

/**
 * Returns a new token and its public prefix.
 *
 * @param key  secret of the store, from which the checksum is derived
 * @see docs/requirements.md#S2.3-01
 */
export function newToken(key: string): { token: string; prefix: string } {
  const prefix = randomLetters(prefixChars)
  const body = `wb_live_${prefix}_${randomLetters(secretChars - checksumChars)}`
  return { token: body + checksumOf(body, key), prefix }
}

/**
 * Returns true if a well-formed token has the checksum that the secret of the store determines. Compares in constant
 * time. Only tokens that the store issued have a valid checksum, so they can be verified before others.
 */
export function hasValidChecksum(token: string, key: string): boolean {
  const expected = checksumOf(token.slice(0, -checksumChars), key)
  return timingSafeEqual(Buffer.from(token.slice(-checksumChars)), Buffer.from(expected))
}

/** Returns the checksum for a token body (the token without its checksum), derived with HMAC-SHA256. */
function checksumOf(body: string, key: string): string {
  const code = createHmac('sha256', key).update(body).digest().readBigUInt64BE() % checksumRange
  return code.toString(checksumBase).padStart(checksumChars, '0')
}

/** Returns the public prefix of a token; undefined if the token does not have the format of an API key. */
export function prefixOf(token: string): string | undefined {
  return tokenPattern.exec(token)?.[1]
}

/** Returns the digest of a token as `scrypt$<salt>$<digest>`, both in hex, with a new salt. */
export async function digestToken(token: string, cost: KeyCost): Promise<string> {
  const salt = randomHex(saltBytes)
  const digest = await derive(token, Buffer.from(salt, 'hex'), digestBytes, cost)
  return `scrypt$${salt}$${digest.toString('hex')}`
}

/** Returns a digest that does not match any token. Comparing a token with it takes as long as with a real digest. */
export function unmatchableDigest(): string {
  return `scrypt$${randomHex(saltBytes)}$${randomHex(digestBytes)}`
}

/**
 * Returns true if a stored digest matches a token; false if the digest is damaged. Compares in constant time.
 */
export async function matchesDigest(token: string, digest: string, cost: KeyCost): Promise<boolean> {
  const parts = digestPattern.exec(digest)
  if (!parts) return false
  const [salt, expected] = parts.slice(1).map(part => Buffer.from(part, 'hex')) as [Buffer, Buffer]
  return timingSafeEqual(await derive(token, salt, digestBytes, cost), expected)
}

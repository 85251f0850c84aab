import { createHmac, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { randomHex, randomLetters } from '../../base/id.ts'

const prefixChars = 12
const secretChars = 32
/**
 * Length of the check characters at the end of the secret. The characters before them are random, 134 bits.
 */
const checkChars = 6
const checkBase = 36
const checks = BigInt(checkBase ** checkChars)
const saltBytes = 16
const digestBytes = 32

const tokenForm = new RegExp(`^wb_live_([a-z0-9]{${prefixChars}})_[a-z0-9]{${secretChars}}$`)
const digestForm = new RegExp(`^scrypt\\$([0-9a-f]{${2 * saltBytes}})\\$([0-9a-f]{${2 * digestBytes}})$`)

/** Cost of deriving a digest from a token. Every process that uses a store needs the same cost. */
export type KeyCost = Required<Pick<ScryptOptions, 'N' | 'r' | 'p'>>

/** Takes 40 ms and 16 MB. */
export const productionCost: KeyCost = { N: 16_384, r: 8, p: 1 }

const derive = promisify<string, Buffer, number, KeyCost, Buffer>(scrypt)

/**
 * Returns a new token and its public prefix.
 *
 * @param key  secret of the store, used to mark the token as issued by it
 * @see docs/requirements.md#S2.3-01
 */
export function newToken(key: string): { token: string; prefix: string } {
  const prefix = randomLetters(prefixChars)
  const unchecked = `wb_live_${prefix}_${randomLetters(secretChars - checkChars)}`
  return { token: unchecked + checkCharsOf(unchecked, key), prefix }
}

/**
 * Returns true if the check characters of a well-formed token match the key, compared in constant time. This
 * does not verify the token; it only selects tokens to verify first.
 */
export function isMarked(token: string, key: string): boolean {
  const check = checkCharsOf(token.slice(0, -checkChars), key)
  return timingSafeEqual(Buffer.from(token.slice(-checkChars)), Buffer.from(check))
}

/** Returns the check characters of the rest of a token, derived with HMAC-SHA256. */
function checkCharsOf(unchecked: string, key: string): string {
  const code = createHmac('sha256', key).update(unchecked).digest().readBigUInt64BE() % checks
  return code.toString(checkBase).padStart(checkChars, '0')
}

/** Returns the public prefix of a token; undefined if the text does not have the format of a token. */
export function prefixOf(token: string): string | undefined {
  return tokenForm.exec(token)?.[1]
}

/** Returns the digest of a token as `scrypt$<salt>$<digest>`, both in hex, with a new salt. */
export async function digestToken(token: string, cost: KeyCost): Promise<string> {
  const salt = randomHex(saltBytes)
  const digest = await derive(token, Buffer.from(salt, 'hex'), digestBytes, cost)
  return `scrypt$${salt}$${digest.toString('hex')}`
}

/** Returns a digest that matches no token. A comparison with it takes as long as with a real one. */
export function unmatchableDigest(): string {
  return `scrypt$${randomHex(saltBytes)}$${randomHex(digestBytes)}`
}

/**
 * Returns true if a stored digest matches a token, compared in constant time; false if the digest is damaged.
 */
export async function matchesDigest(token: string, digest: string, cost: KeyCost): Promise<boolean> {
  const parts = digestForm.exec(digest)
  if (!parts) return false
  const [salt, expected] = parts.slice(1).map(part => Buffer.from(part, 'hex')) as [Buffer, Buffer]
  return timingSafeEqual(await derive(token, salt, digestBytes, cost), expected)
}

import { createHmac, scrypt, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { randomHex, randomLetters } from '../../base/id.ts'

const prefixChars = 12
const secretChars = 32
/** The last characters of the secret; those before them are random, 134 bits. */
const checkChars = 6
const checkBase = 36
const checks = BigInt(checkBase ** checkChars)
const saltBytes = 16
const digestBytes = 32

const tokenForm = new RegExp(`^wb_live_([a-z0-9]{${prefixChars}})_[a-z0-9]{${secretChars}}$`)
const digestForm = new RegExp(`^scrypt\\$([0-9a-f]{${2 * saltBytes}})\\$([0-9a-f]{${2 * digestBytes}})$`)

const derive = promisify<string, Buffer, number, Buffer>(scrypt)

/**
 * A new token and its public part.
 *
 * @param key  secret of the store, which marks the token as one of its own
 * @see docs/requirements.md#S2.3-01
 */
export function newToken(key: string): { token: string; prefix: string } {
  const prefix = randomLetters(prefixChars)
  const unchecked = `wb_live_${prefix}_${randomLetters(secretChars - checkChars)}`
  return { token: unchecked + checkOf(unchecked, key), prefix }
}

/**
 * Whether a text of the form of a token ends as those do that were made with a key, compared in constant time. Nothing
 * is proven by that: it says which tokens are worth a look before others.
 */
export function isMarked(token: string, key: string): boolean {
  const check = checkOf(token.slice(0, -checkChars), key)
  return timingSafeEqual(Buffer.from(token.slice(-checkChars)), Buffer.from(check))
}

/** Letters and digits by HMAC-SHA256 of what stands before them. */
function checkOf(unchecked: string, key: string): string {
  const code = createHmac('sha256', key).update(unchecked).digest().readBigUInt64BE() % checks
  return code.toString(checkBase).padStart(checkChars, '0')
}

/** The public part of a token; undefined for what is not shaped like one. */
export function prefixOf(token: string): string | undefined {
  return tokenForm.exec(token)?.[1]
}

/** `scrypt$<salt>$<digest>` of a whole token, both in hex, with a salt of its own; 40 ms and 16 MB of work. */
export async function digestOf(token: string): Promise<string> {
  const salt = randomHex(saltBytes)
  const digest = await derive(token, Buffer.from(salt, 'hex'), digestBytes)
  return `scrypt$${salt}$${digest.toString('hex')}`
}

/** A digest that no token has: comparing with it takes as long as with a real one. */
export function digestOfNone(): string {
  return `scrypt$${randomHex(saltBytes)}$${randomHex(digestBytes)}`
}

/** Whether a stored digest is that of a token, compared in constant time; a damaged digest is nobody's. */
export async function isDigestOf(token: string, stored: string): Promise<boolean> {
  const parts = digestForm.exec(stored)
  if (!parts) return false
  const [salt, digest] = parts.slice(1).map(part => Buffer.from(part, 'hex')) as [Buffer, Buffer]
  return timingSafeEqual(await derive(token, salt, digestBytes), digest)
}

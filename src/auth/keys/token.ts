import { scrypt, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { randomHex, randomLetters } from '../../base/id.ts'

const prefixChars = 12
const secretChars = 32
const saltBytes = 16
const digestBytes = 32

const tokenForm = new RegExp(`^wb_live_([a-z0-9]{${prefixChars}})_[a-z0-9]{${secretChars}}$`)
const digestForm = new RegExp(`^scrypt\\$([0-9a-f]{${2 * saltBytes}})\\$([0-9a-f]{${2 * digestBytes}})$`)

const derive = promisify<string, Buffer, number, Buffer>(scrypt)

/** A new token and its public part. @see specification 2.3 */
export function newToken(): { token: string; prefix: string } {
  const prefix = randomLetters(prefixChars)
  return { token: `wb_live_${prefix}_${randomLetters(secretChars)}`, prefix }
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

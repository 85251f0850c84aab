import { hash } from 'node:crypto'
import { randomHex } from '../base/id.ts'

const keyBytes = 32

/** SHA-256 of a text. */
export function sha256(text: string): Buffer {
  return hash('sha256', text, 'buffer')
}

/** SHA-256 in base64url: finds a secret again that is not kept, in a time that tells nothing of it. */
export function fingerprint(secret: string): string {
  return hash('sha256', secret, 'base64url')
}

/**
 * Names for tokens in the memory of a process. Their key is there only, so that nobody finds a token by its name.
 *
 * The key stands before the token, in one hash: nobody outside sees a name, which is what an HMAC would protect, and
 * which costs four times as much on every request.
 */
export function keyedHash(): (token: string) => string {
  const key = randomHex(keyBytes)
  return token => hash('sha256', key + token, 'base64')
}

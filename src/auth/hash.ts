import { createHash, createHmac } from 'node:crypto'
import { randomHex } from '../base/id.ts'

const keyBytes = 32

/** SHA-256 of a text. */
export function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/** SHA-256 in base64url: finds a secret again that is not kept, in a time that tells nothing of it. */
export function fingerprint(secret: string): string {
  return sha256(secret).toString('base64url')
}

/** Names for tokens in the memory of a process. Their key is there only, so that nobody finds a token by its name. */
export function keyedHash(): (token: string) => string {
  const key = randomHex(keyBytes)
  return token => createHmac('sha256', key).update(token).digest('base64')
}

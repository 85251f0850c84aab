import { hash } from 'node:crypto'
import { randomHex } from '../base/id.ts'

const keyBytes = 32

export function sha256Bytes(text: string): Buffer {
  return hash('sha256', text, 'buffer')
}

/**
 * Returns the SHA-256 hash of a secret in base64url. As a lookup key, it avoids storing the secret, and the time
 * of a lookup reveals nothing about the secret.
 */
export function hashSecret(secret: string): string {
  return hash('sha256', secret, 'base64url')
}

/**
 * Returns a hash function for tokens that are cached in memory. It uses a random key, so that a token cannot be
 * found from its hash.
 *
 * The key is a prefix of the hashed text. An HMAC is not needed, because attackers cannot see these hashes, and it
 * would cost four times as much on every request.
 */
export function createKeyedHash(): (token: string) => string {
  const key = randomHex(keyBytes)
  return token => hash('sha256', key + token, 'base64')
}

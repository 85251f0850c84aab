import { hash } from 'node:crypto'
import { randomHex } from '../base/id.ts'

const keyBytes = 32

export function sha256Bytes(text: string): Buffer {
  return hash('sha256', text, 'buffer')
}

/**
 * Returns the SHA-256 hash of a secret in base64url. It serves as a lookup key without storing the secret,
 * and lookup time reveals nothing about the secret.
 */
export function hashSecret(secret: string): string {
  return hash('sha256', secret, 'base64url')
}

/**
 * Returns a hash function for tokens in the memory of a process. Its random key prevents finding a token by
 * its hash.
 *
 * The key is hashed as a prefix of the token. An HMAC would protect hashes that attackers can see, which
 * these are not, and would cost four times as much on every request.
 */
export function createKeyedHash(): (token: string) => string {
  const key = randomHex(keyBytes)
  return token => hash('sha256', key + token, 'base64')
}

import { hash } from 'node:crypto'
import { randomHex } from '../base/id.ts'

const keyBytes = 32

export function sha256Bytes(text: string): Buffer {
  return hash('sha256', text, 'buffer')
}

/**
 * Returns the SHA-256 hash of a secret in base64url. Use the hash as a lookup key instead of the secret: the secret is
 * not stored, and the time of a lookup reveals nothing about it.
 */
export function hashSecret(secret: string): string {
  return hash('sha256', secret, 'base64url')
}

/**
 * Returns a hash function for tokens that are cached in memory. It uses a random key, so that a token cannot be
 * guessed from its hash.
 *
 * The function hashes the key followed by the token. An HMAC would take four times as long for every request, and is
 * not necessary, because attackers cannot see these hashes.
 */
export function createKeyedHash(): (token: string) => string {
  const key = randomHex(keyBytes)
  return token => hash('sha256', key + token, 'base64')
}

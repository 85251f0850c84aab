import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto'
import { randomOctets } from '../../base/id.ts'

const version = 'v2'
const algorithm = 'aes-256-gcm'
const keyBytes = 32
const ivBytes = 12
const tagBytes = 16
/** Label for key derivation, so that each use of a secret has a different key. */
const keyLabel = 'workbase sealed value v2'

/** In base64url, the 12 bytes of the IV have 16 characters, and the 16 bytes of the tag have 22. */
const sealedPattern = /^v2\.([\w-]{16})\.([\w-]*)\.([\w-]{22})$/

/**
 * Encrypts and decrypts values with AES-256-GCM. Encrypted values have the format `v2.<iv>.<ciphertext>.<tag>`.
 *
 * @see docs/requirements.md#S2.5-06
 */
export class Sealer {
  readonly #keys: readonly Buffer[]

  /**
   * @param secrets  the first secret is used to encrypt, and all secrets are used to decrypt; if the list is empty, a
   *   random key is used for the lifetime of this object
   */
  constructor(secrets: readonly string[]) {
    this.#keys = secrets.length > 0 ? secrets.map(deriveKey) : [randomOctets(keyBytes)]
  }

  /** @param purpose  the same purpose is required to open the value */
  seal(purpose: string, text: string): string {
    const iv = randomOctets(ivBytes)
    const cipher = createCipheriv(algorithm, this.#keys[0]!, iv)
    cipher.setAAD(authenticatedData(purpose))
    const ciphertext = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
    return [version, ...[iv, ciphertext, cipher.getAuthTag()].map(part => part.toString('base64url'))].join(
      '.',
    )
  }

  /** Returns undefined for a value that was not sealed with one of the secrets for this purpose. */
  open(purpose: string, value: string): string | undefined {
    const parts = sealedPattern.exec(value)?.slice(1).map(decodePart)
    if (!parts?.every(part => part !== undefined)) return undefined
    const [iv, ciphertext, tag] = parts as [Buffer, Buffer, Buffer]
    for (const key of this.#keys) {
      const decipher = createDecipheriv(algorithm, key, iv, { authTagLength: tagBytes })
      decipher.setAAD(authenticatedData(purpose)).setAuthTag(tag)
      const text = decipher.update(ciphertext)
      try {
        return Buffer.concat([text, decipher.final()]).toString('utf8')
      } catch {
        // Wrong key; try the next one.
      }
    }
    return undefined
  }
}

function deriveKey(secret: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', keyLabel, keyBytes))
}

function authenticatedData(purpose: string): Buffer {
  return Buffer.from(`${version}\n${purpose}`)
}

/** Returns undefined for a non-canonical encoding, so that each value has only one valid encoding. */
function decodePart(part: string): Buffer | undefined {
  const bytes = Buffer.from(part, 'base64url')
  return bytes.toString('base64url') === part ? bytes : undefined
}

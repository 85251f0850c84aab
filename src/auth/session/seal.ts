import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto'
import { randomOctets } from '../../base/id.ts'

const version = 'v2'
const algorithm = 'aes-256-gcm'
const keyBytes = 32
const ivBytes = 12
const tagBytes = 16
/** Binds a key to this use: the same secret gives other keys elsewhere. */
const keyLabel = 'workbase sealed value v2'

/** 16 and 22 characters are the 12 bytes of the vector and the 16 of the tag in base64url. */
const form = /^v2\.([\w-]{16})\.([\w-]*)\.([\w-]{22})$/

/**
 * Values that only this runtime can make and read: `v2.<iv>.<ciphertext>.<tag>`, AES-256-GCM.
 *
 * @see docs/requirements.md#S2.5-06
 */
export class Seal {
  readonly #keys: readonly Buffer[]

  /** @param secrets  the first one seals, all of them open; none is a key that ends with this object */
  constructor(secrets: readonly string[]) {
    this.#keys = secrets.length > 0 ? secrets.map(derived) : [randomOctets(keyBytes)]
  }

  /** @param purpose  authenticated with the value: what was sealed for one purpose opens for no other */
  seal(purpose: string, text: string): string {
    const iv = randomOctets(ivBytes)
    const cipher = createCipheriv(algorithm, this.#keys[0]!, iv)
    cipher.setAAD(authenticated(purpose))
    const ciphertext = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
    return [version, ...[iv, ciphertext, cipher.getAuthTag()].map(part => part.toString('base64url'))].join(
      '.',
    )
  }

  /** @returns undefined for what was not sealed here for this purpose */
  open(purpose: string, value: string): string | undefined {
    const parts = form.exec(value)?.slice(1).map(decoded)
    if (!parts?.every(part => part !== undefined)) return undefined
    const [iv, ciphertext, tag] = parts as [Buffer, Buffer, Buffer]
    for (const key of this.#keys) {
      const decipher = createDecipheriv(algorithm, key, iv, { authTagLength: tagBytes })
      decipher.setAAD(authenticated(purpose)).setAuthTag(tag)
      const text = decipher.update(ciphertext)
      try {
        return Buffer.concat([text, decipher.final()]).toString('utf8')
      } catch {
        // Not under this key.
      }
    }
    return undefined
  }
}

function derived(secret: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', keyLabel, keyBytes))
}

function authenticated(purpose: string): Buffer {
  return Buffer.from(`${version}\n${purpose}`)
}

/** Undefined for a spelling that the encoder would not choose, so that no value has a twin. */
function decoded(part: string): Buffer | undefined {
  const bytes = Buffer.from(part, 'base64url')
  return bytes.toString('base64url') === part ? bytes : undefined
}

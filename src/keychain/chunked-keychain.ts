import { sha256 } from '../base/id.ts'
import type { Keychain, KeychainCredential, KeychainEntries } from './keychain.ts'

/**
 * Maximum length of a piece. Windows stores at most 2560 bytes per entry, and uses two bytes for each character.
 *
 * @see CRED_MAX_CREDENTIAL_BLOB_SIZE in wincred.h
 */
const pieceChars = 1200
/** Maximum number of pieces of a secret, which contain at most 76,800 characters in total. */
const piecesMax = 64

/**
 * Slots for pieces. A write stores the pieces in the slot to which the current header does not refer, so the old secret
 * stays readable until the new header is written.
 */
const slots = ['a', 'b'] as const
type Slot = (typeof slots)[number]

/** Header of a secret that is stored in pieces. `digest` is the SHA-256 digest of the joined pieces. */
interface SecretHeader {
  slot: Slot
  pieces: number
  digest: string
}

/**
 * Creates a keychain that divides long secrets into several entries. A secret can contain any characters, and its
 * encoding as ASCII JSON can have at most 76,800 characters. Each entry contains at most 1200 ASCII characters.
 *
 * The entry of an account is JSON: either a string, which is the secret, or a `SecretHeader`. Pieces are stored under
 * a separate service. A write stores the new pieces in ascending order, then the header, and then removes the old
 * pieces in descending order. After an interruption, either the old or the new secret can be read, and the next write
 * or deletion for the account removes all unused pieces.
 *
 * A read that overlaps with a write starts again. Writes for the same account must not overlap. If they do, their
 * pieces are mixed, the digest does not match, and a read returns null.
 */
export function createChunkedKeychain(entries: KeychainEntries): Keychain {
  async function read(service: string, account: string): Promise<string | null> {
    let previous: string | null = null
    for (;;) {
      const text = await entries.getPassword(service, account)
      if (text === null || text === previous) return null
      const secret = await readSecret(service, account, text)
      if (secret !== null) return secret
      previous = text
    }
  }

  /** @returns null if the pieces do not match the header */
  async function readSecret(service: string, account: string, text: string): Promise<string | null> {
    const header = parseEntry(text)
    if (header === undefined) return null
    if (typeof header === 'string') return header
    const pieces = await Promise.all(
      Array.from({ length: header.pieces }, (_, index) =>
        entries.getPassword(...addressOf(header.slot, index)),
      ),
    )
    const joined = pieces.join('')
    return sha256(joined) === header.digest ? (JSON.parse(joined) as string) : null

    function addressOf(slot: Slot, index: number) {
      return pieceAddress(service, account, slot, index)
    }
  }

  async function writePieces(service: string, account: string, text: string): Promise<SecretHeader> {
    const old = parseEntry((await entries.getPassword(service, account)) ?? '')
    const slot = typeof old === 'object' && old.slot === 'a' ? 'b' : 'a'
    const pieces = Math.ceil(text.length / pieceChars)
    for (let index = 0; index < pieces; index++) {
      const piece = text.slice(index * pieceChars, (index + 1) * pieceChars)
      await entries.setPassword(...pieceAddress(service, account, slot, index), piece)
    }
    return { slot, pieces, digest: sha256(text) }
  }

  /** Removes all pieces except those that belong to the header. */
  async function removeLeftovers(service: string, account: string, header?: SecretHeader): Promise<void> {
    for (const slot of slots) {
      const from = header?.slot === slot ? header.pieces : 0
      let end = from
      while ((await entries.getPassword(...pieceAddress(service, account, slot, end))) !== null) end++
      while (end > from) await entries.deletePassword(...pieceAddress(service, account, slot, --end))
    }
  }

  async function findCredentials(service: string): Promise<KeychainCredential[]> {
    const credentials: KeychainCredential[] = []
    for (const { account, password: text } of await entries.findCredentials(service)) {
      const header = parseEntry(text)
      const password = typeof header === 'string' ? header : await read(service, account)
      if (password !== null) credentials.push({ account, password })
    }
    return credentials
  }

  async function findAccounts(service: string): Promise<string[]> {
    const headers = await entries.findCredentials(service)
    const pieces = await entries.findCredentials(pieceService(service))
    const pieceAccounts = pieces.map(({ account }) => account.slice(0, account.lastIndexOf('#')))
    return [...new Set([...headers.map(({ account }) => account), ...pieceAccounts])]
  }

  return {
    getPassword: read,
    async setPassword(service, account, password) {
      const text = encodeAsciiJson(password)
      if (text.length > pieceChars * piecesMax) throw new RangeError('the secret is too long for a keychain')
      const header = text.length > pieceChars ? await writePieces(service, account, text) : undefined
      await entries.setPassword(service, account, header ? JSON.stringify(header) : text)
      await removeLeftovers(service, account, header)
    },
    async deletePassword(service, account) {
      const existed = await entries.deletePassword(service, account)
      await removeLeftovers(service, account)
      return existed
    },
    findCredentials,
    findAccounts,
    findPassword: async service => (await findCredentials(service))[0]?.password ?? null,
  }
}

/**
 * Returns the service and account of the entry that stores a piece. Pieces of different accounts never collide, because
 * the last `#` marks the end of the account name.
 */
function pieceAddress(
  service: string,
  account: string,
  slot: Slot,
  index: number,
): [service: string, account: string] {
  return [pieceService(service), `${account}#${slot}${index}`]
}

/** Returns the service under which the pieces of a service are stored. */
function pieceService(service: string): string {
  return `${service} pieces`
}

/** Encodes a string as ASCII JSON, because drivers do not preserve NUL, lone surrogates and empty strings. */
function encodeAsciiJson(text: string): string {
  return JSON.stringify(text).replace(
    /[^\x20-\x7e]/g,
    char => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** @returns undefined for an entry that this module did not write */
function parseEntry(text: string): string | SecretHeader | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'string' || isHeader(value) ? value : undefined
  } catch {
    return undefined
  }
}

function isHeader(value: unknown): value is SecretHeader {
  if (typeof value !== 'object' || value === null) return false
  const { slot, pieces, digest } = value as Partial<Record<keyof SecretHeader, unknown>>
  const isCount = Number.isInteger(pieces) && Number(pieces) > 0 && Number(pieces) <= piecesMax
  return isCount && (slot === 'a' || slot === 'b') && typeof digest === 'string'
}

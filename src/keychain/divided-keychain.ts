import { sha256 } from '../base/id.ts'
import type { Keychain, KeychainCredential, KeychainEntries } from './keychain.ts'

/**
 * Maximum length of a piece. Windows stores 2560 bytes per entry, two for each character.
 *
 * @see CRED_MAX_CREDENTIAL_BLOB_SIZE of wincred.h
 */
const pieceChars = 1200
/** Maximum number of pieces, 76,800 characters in total. A longer entry was not written by this module. */
const piecesMax = 64

/**
 * Slots for pieces. A write uses the slot that the head does not name, so the old secret stays intact
 * meanwhile.
 */
const slots = ['a', 'b'] as const
type Slot = (typeof slots)[number]

/** Entry of a secret that is stored in pieces. The digest is that of all pieces together. */
interface SecretHead {
  slot: Slot
  pieces: number
  digest: string
}

/**
 * Creates a keychain that stores secrets of any length and any characters in entries of at most 1200 ASCII
 * characters.
 *
 * The entry of an account is JSON: a string, which is the secret, or a `SecretHead`. Pieces are stored under a
 * separate service. They are written in ascending order before the head, and removed in descending order
 * after it. After an interruption, either the old or the new secret can be read, and the next write or
 * removal of the account finds all leftover pieces.
 *
 * A read that overlaps with a write starts again. Writes of one account must not overlap; if they do, the
 * digest ensures that mixed pieces are read as null.
 */
export function createDividedKeychain(entries: KeychainEntries): Keychain {
  async function read(service: string, account: string): Promise<string | null> {
    let before: string | null = null
    for (;;) {
      const text = await entries.getPassword(service, account)
      if (text === null || text === before) return null
      const secret = await resolve(service, account, text)
      if (secret !== null) return secret
      before = text
    }
  }

  /** @returns null if the pieces do not match the head */
  async function resolve(service: string, account: string, text: string): Promise<string | null> {
    const head = parseEntry(text)
    if (head === undefined) return null
    if (typeof head === 'string') return head
    const pieces = await Promise.all(
      Array.from({ length: head.pieces }, (_, at) => entries.getPassword(...pieceOf(head.slot, at))),
    )
    const whole = pieces.join('')
    return sha256(whole) === head.digest ? (JSON.parse(whole) as string) : null

    function pieceOf(slot: Slot, at: number) {
      return pieceAddress(service, account, slot, at)
    }
  }

  async function writePieces(service: string, account: string, text: string): Promise<SecretHead> {
    const old = parseEntry((await entries.getPassword(service, account)) ?? '')
    const slot = typeof old === 'object' && old.slot === 'a' ? 'b' : 'a'
    const pieces = Math.ceil(text.length / pieceChars)
    for (let at = 0; at < pieces; at++) {
      const piece = text.slice(at * pieceChars, (at + 1) * pieceChars)
      await entries.setPassword(...pieceAddress(service, account, slot, at), piece)
    }
    return { slot, pieces, digest: sha256(text) }
  }

  /** Removes all pieces except those of the head. */
  async function trim(service: string, account: string, head?: SecretHead): Promise<void> {
    for (const slot of slots) {
      const from = head?.slot === slot ? head.pieces : 0
      let end = from
      while ((await entries.getPassword(...pieceAddress(service, account, slot, end))) !== null) end++
      while (end > from) await entries.deletePassword(...pieceAddress(service, account, slot, --end))
    }
  }

  async function findCredentials(service: string): Promise<KeychainCredential[]> {
    const found: KeychainCredential[] = []
    for (const { account, password: text } of await entries.findCredentials(service)) {
      const head = parseEntry(text)
      const password = typeof head === 'string' ? head : await read(service, account)
      if (password !== null) found.push({ account, password })
    }
    return found
  }

  async function findAccounts(service: string): Promise<string[]> {
    const heads = await entries.findCredentials(service)
    const pieces = await entries.findCredentials(pieceService(service))
    const ofPieces = pieces.map(({ account }) => account.slice(0, account.lastIndexOf('#')))
    return [...new Set([...heads.map(({ account }) => account), ...ofPieces])]
  }

  return {
    getPassword: read,
    async setPassword(service, account, password) {
      const text = asciiJson(password)
      if (text.length > pieceChars * piecesMax) throw new RangeError('the secret is too long for a keychain')
      const head = text.length > pieceChars ? await writePieces(service, account, text) : undefined
      await entries.setPassword(service, account, head ? JSON.stringify(head) : text)
      await trim(service, account, head)
    },
    async deletePassword(service, account) {
      const existed = await entries.deletePassword(service, account)
      await trim(service, account)
      return existed
    },
    findCredentials,
    findAccounts,
    findPassword: async service => (await findCredentials(service))[0]?.password ?? null,
  }
}

/**
 * Returns the service and account of a piece. Pieces of two accounts never collide, because the last `#` ends
 * the account name.
 */
function pieceAddress(
  service: string,
  account: string,
  slot: Slot,
  at: number,
): [service: string, account: string] {
  return [pieceService(service), `${account}#${slot}${at}`]
}

/** Returns the service under which the pieces of a service are stored. */
function pieceService(service: string): string {
  return `${service} pieces`
}

/** Returns a text as a JSON string in ASCII. Drivers do not preserve NUL, lone surrogates and empty texts. */
function asciiJson(text: string): string {
  return JSON.stringify(text).replace(
    /[^\x20-\x7e]/g,
    char => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** @returns undefined for a text that was not written by this module */
function parseEntry(text: string): string | SecretHead | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'string' || isHead(value) ? value : undefined
  } catch {
    return undefined
  }
}

function isHead(value: unknown): value is SecretHead {
  if (typeof value !== 'object' || value === null) return false
  const { slot, pieces, digest } = value as Partial<Record<keyof SecretHead, unknown>>
  const isCount = Number.isInteger(pieces) && Number(pieces) > 0 && Number(pieces) <= piecesMax
  return isCount && (slot === 'a' || slot === 'b') && typeof digest === 'string'
}

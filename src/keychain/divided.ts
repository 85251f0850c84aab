import { sha256 } from '../base/id.ts'
import type { Credential, Entries, Keychain } from './keychain.ts'

/** Windows keeps 2560 bytes, two for each character. @see CRED_MAX_CREDENTIAL_BLOB_SIZE of wincred.h */
const pieceChars = 1200
/** 76 800 characters: what claims to be longer was not written here. */
const piecesMax = 64

/** Pieces are written to the place that the head does not name, so that the old secret stays whole meanwhile. */
const slots = ['a', 'b'] as const
type Slot = (typeof slots)[number]

/** What an entry holds whose secret lies in pieces; the digest is that of all pieces together. */
interface Head {
  slot: Slot
  pieces: number
  digest: string
}

/**
 * A keychain that keeps secrets of any length and any characters in entries of 1200 ASCII characters at most.
 *
 * The entry of an account is JSON: a string, which is the secret, or a `Head`. Pieces lie under a service of their own,
 * are written in ascending order, before the head, and removed in descending order, after it: whatever is interrupted,
 * the old or the new secret is read, and the next writer or remover of the account finds all that is left over. A
 * reader that a writer overtakes reads again. Writers of one account take turns; if they do not, the digest sees to it
 * that a mixture reads as null.
 */
export function divided(entries: Entries): Keychain {
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

  /** @returns null when the pieces are not those that the head speaks of */
  async function resolve(service: string, account: string, text: string): Promise<string | null> {
    const head = parse(text)
    if (head === undefined) return null
    if (typeof head === 'string') return head
    const pieces = await Promise.all(
      Array.from({ length: head.pieces }, (_, at) => entries.getPassword(...pieceOf(head.slot, at))),
    )
    const whole = pieces.join('')
    return sha256(whole) === head.digest ? (JSON.parse(whole) as string) : null

    function pieceOf(slot: Slot, at: number) {
      return place(service, account, slot, at)
    }
  }

  async function writePieces(service: string, account: string, text: string): Promise<Head> {
    const old = parse((await entries.getPassword(service, account)) ?? '')
    const slot = typeof old === 'object' && old.slot === 'a' ? 'b' : 'a'
    const pieces = Math.ceil(text.length / pieceChars)
    for (let at = 0; at < pieces; at++) {
      const piece = text.slice(at * pieceChars, (at + 1) * pieceChars)
      await entries.setPassword(...place(service, account, slot, at), piece)
    }
    return { slot, pieces, digest: sha256(text) }
  }

  /** Remove all pieces but those of the head. */
  async function trim(service: string, account: string, head?: Head): Promise<void> {
    for (const slot of slots) {
      const from = head?.slot === slot ? head.pieces : 0
      let end = from
      while ((await entries.getPassword(...place(service, account, slot, end))) !== null) end++
      while (end > from) await entries.deletePassword(...place(service, account, slot, --end))
    }
  }

  async function findCredentials(service: string): Promise<Credential[]> {
    const found: Credential[] = []
    for (const { account, password: text } of await entries.findCredentials(service)) {
      const head = parse(text)
      const password = typeof head === 'string' ? head : await read(service, account)
      if (password !== null) found.push({ account, password })
    }
    return found
  }

  async function findAccounts(service: string): Promise<string[]> {
    const heads = await entries.findCredentials(service)
    const pieces = await entries.findCredentials(piecesOf(service))
    const ofPieces = pieces.map(({ account }) => account.slice(0, account.lastIndexOf('#')))
    return [...new Set([...heads.map(({ account }) => account), ...ofPieces])]
  }

  return {
    getPassword: read,
    async setPassword(service, account, password) {
      const text = ascii(password)
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

/** Service and account of a piece. Those of two accounts never meet, as the last `#` ends the account. */
function place(service: string, account: string, slot: Slot, at: number): [service: string, account: string] {
  return [piecesOf(service), `${account}#${slot}${at}`]
}

/** Of the service whose entries are in pieces. */
function piecesOf(service: string): string {
  return `${service} pieces`
}

/** A JSON string in ASCII: drivers lose NUL, half a surrogate pair, and what is empty. */
function ascii(text: string): string {
  return JSON.stringify(text).replace(
    /[^\x20-\x7e]/g,
    char => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** @returns undefined for a text that was not written here */
function parse(text: string): string | Head | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'string' || isHead(value) ? value : undefined
  } catch {
    return undefined
  }
}

function isHead(value: unknown): value is Head {
  if (typeof value !== 'object' || value === null) return false
  const { slot, pieces, digest } = value as Partial<Record<keyof Head, unknown>>
  const isCount = Number.isInteger(pieces) && Number(pieces) > 0 && Number(pieces) <= piecesMax
  return isCount && (slot === 'a' || slot === 'b') && typeof digest === 'string'
}

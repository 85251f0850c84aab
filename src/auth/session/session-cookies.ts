import type { BrowserSite } from '../../access/caller.ts'
import { WbError } from '../../contract/errors.ts'
import { clearCookieLine, cookieValues, needsSecureCookies, setCookieLine } from './cookie-header.ts'
import type { Sealer } from './sealer.ts'

/** A browser session, as its cookies store it. */
export interface StoredSession {
  readonly accessToken: string
  /** ID of the subject. The tokens of a renewal must have the same subject. */
  readonly subject: string
  /** Seconds since 1970. */
  readonly issuedAt: number
  readonly refreshToken?: string
}

const piecesMax = 5
/** Maximum size of a `Set-Cookie` line, in bytes. Browsers support at least 4,096. */
const cookieBytesMax = 3_500
/** Reserved size for the attributes and the piece number, in bytes. */
const attributesBytes = 100
/** Maximum total length of the pieces. */
const sealedCharsMax = 14 * 1024

/**
 * Stores a session in browser cookies, as a sealed value that is split into the cookies `NAME`, `NAME.1`, …
 *
 * The value can be opened only with the same name, site origin and number of pieces.
 *
 * @see docs/requirements.md#session-cookie, docs/security.md#rule-12
 */
export class SessionCookies {
  readonly #sealer: Sealer
  readonly #names: readonly string[]
  readonly #pieceChars: number

  constructor({ sealer, name }: { sealer: Sealer; name: string }) {
    this.#sealer = sealer
    this.#names = Array.from({ length: piecesMax }, (_, index) => (index === 0 ? name : `${name}.${index}`))
    this.#pieceChars = Math.max(1, cookieBytesMax - attributesBytes - name.length)
  }

  /**
   * Returns the session; undefined if it is missing, or if its pieces are not exactly those that were set.
   */
  read({ origin, cookies }: BrowserSite): StoredSession | undefined {
    const valuesByPiece = this.#names.map(name => cookieValues(cookies, name))
    const pieces = valuesByPiece.flat()
    if (pieces.length === 0 || valuesByPiece.some(values => values.length > 1)) return undefined
    const text = this.#sealer.open(this.#purpose(origin, pieces.length), pieces.join(''))
    return text === undefined ? undefined : (JSON.parse(text) as StoredSession)
  }

  /**
   * Returns the `Set-Cookie` lines of a session. Omits the refresh token if the session would be too large for a
   * browser.
   *
   * @throws session_too_large  when the session is too large even without the refresh token
   */
  write(site: BrowserSite, session: StoredSession, maxAgeSeconds: number): string[] {
    const { refreshToken: _, ...withoutRefreshToken } = session
    const pieces = this.#splitSealed(site, session) ?? this.#splitSealed(site, withoutRefreshToken)
    if (!pieces)
      throw new WbError('session_too_large', "the identity provider's access token is too large for cookies")
    const scope = { path: '/', maxAgeSeconds, secure: needsSecureCookies(site.origin) }
    return [
      ...pieces.map((piece, index) => setCookieLine(this.#names[index]!, piece, scope)),
      ...this.#clear(site, pieces.length),
    ]
  }

  /**
   * Returns the `Set-Cookie` lines that end a session. They delete the first piece, and all other pieces that the
   * request contains.
   */
  clear(site: BrowserSite): string[] {
    const first = clearCookieLine(this.#names[0]!, { path: '/', secure: needsSecureCookies(site.origin) })
    return [first, ...this.#clear(site, 1)]
  }

  /** Returns the lines that delete the pieces in the request, starting at an index. */
  #clear({ origin, cookies }: BrowserSite, firstIndex: number): string[] {
    return this.#names
      .slice(firstIndex)
      .filter(name => cookieValues(cookies, name).length > 0)
      .map(name => clearCookieLine(name, { path: '/', secure: needsSecureCookies(origin) }))
  }

  /**
   * Seals a session and splits it into pieces; returns undefined if the session is too large. The purpose contains the
   * number of pieces. The first seal determines this number, because the length of a sealed value does not depend on
   * its purpose.
   */
  #splitSealed({ origin }: BrowserSite, session: StoredSession): string[] | undefined {
    const text = JSON.stringify(session)
    const singlePiece = this.#sealer.seal(this.#purpose(origin, 1), text)
    const count = Math.ceil(singlePiece.length / this.#pieceChars)
    if (count === 1) return [singlePiece]
    if (count > piecesMax || singlePiece.length > sealedCharsMax) return undefined
    const sealed = this.#sealer.seal(this.#purpose(origin, count), text)
    return Array.from({ length: count }, (_, index) =>
      sealed.slice(index * this.#pieceChars, (index + 1) * this.#pieceChars),
    )
  }

  #purpose(origin: string, count: number): string {
    return ['session', this.#names[0], origin, count].join('\n')
  }
}

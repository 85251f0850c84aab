import type { BrowserOrigin } from '../../access/caller.ts'
import { WbError } from '../../contract/errors.ts'
import { clearCookieLine, cookieValues, needsSecureCookies, setCookieLine } from './cookie-header.ts'
import type { Sealer } from './sealer.ts'

/** Session of a browser, as stored in its cookies. */
export interface StoredSession {
  readonly accessToken: string
  /** ID of the subject, which a renewal must return unchanged. */
  readonly subject: string
  /** Time in seconds since 1970. */
  readonly issuedAt: number
  readonly refreshToken?: string
}

const piecesMax = 5
/** Maximum size of a `Set-Cookie` line, in bytes. Browsers support at least 4,096. */
const cookieBytesMax = 3_500
/** Reserved size for the attributes and the piece number, in bytes. */
const attributesBytes = 100
/** Maximum length of all pieces together. */
const sealedCharsMax = 14 * 1024

/**
 * Sessions in the cookies of a browser: one sealed value, split into pieces `NAME`, `NAME.1`, …
 *
 * The name, the site's origin and the number of pieces are authenticated with the value.
 *
 * @see docs/requirements.md#session-cookie, docs/security.md#rule-12
 */
export class SessionCookies {
  readonly #seal: Sealer
  readonly #names: readonly string[]
  readonly #pieceChars: number

  constructor({ seal, name }: { seal: Sealer; name: string }) {
    this.#seal = seal
    this.#names = Array.from({ length: piecesMax }, (_, at) => (at === 0 ? name : `${name}.${at}`))
    this.#pieceChars = Math.max(1, cookieBytesMax - attributesBytes - name.length)
  }

  /**
   * Returns the session; undefined if it is absent, or if pieces are invalid, repeated, missing or surplus.
   */
  read({ origin, cookies }: BrowserOrigin): StoredSession | undefined {
    const found = this.#names.map(name => cookieValues(cookies, name))
    const pieces = found.flat()
    if (pieces.length === 0 || found.some(values => values.length > 1)) return undefined
    const text = this.#seal.open(this.#purpose(origin, pieces.length), pieces.join(''))
    return text === undefined ? undefined : (JSON.parse(text) as StoredSession)
  }

  /**
   * Returns the `Set-Cookie` lines of a session. The refresh token is dropped if the session is too large for
   * a browser.
   *
   * @throws session_too_large  when the session is too large even without the refresh token
   */
  write(site: BrowserOrigin, session: StoredSession, maxAgeSeconds: number): string[] {
    const { refreshToken: _, ...lasting } = session
    const pieces = this.#splitSealed(site, session) ?? this.#splitSealed(site, lasting)
    if (!pieces)
      throw new WbError(
        'session_too_large',
        'the access token of the identity provider does not fit into cookies',
      )
    const scope = { path: '/', maxAgeSeconds, secure: needsSecureCookies(site.origin) }
    return [
      ...pieces.map((piece, at) => setCookieLine(this.#names[at]!, piece, scope)),
      ...this.#clear(site, pieces.length),
    ]
  }

  /**
   * Returns the `Set-Cookie` lines that end a session: for the first piece, and for all other pieces in the
   * request.
   */
  clear(site: BrowserOrigin): string[] {
    const first = clearCookieLine(this.#names[0]!, { path: '/', secure: needsSecureCookies(site.origin) })
    return [first, ...this.#clear(site, 1)]
  }

  /** Returns the lines that delete the pieces in the request from an index on. */
  #clear({ origin, cookies }: BrowserOrigin, from: number): string[] {
    return this.#names
      .slice(from)
      .filter(name => cookieValues(cookies, name).length > 0)
      .map(name => clearCookieLine(name, { path: '/', secure: needsSecureCookies(origin) }))
  }

  /**
   * Splits a sealed session into pieces; undefined if it is too large. The length of a sealed value does not
   * depend on its purpose.
   */
  #splitSealed({ origin }: BrowserOrigin, session: StoredSession): string[] | undefined {
    const text = JSON.stringify(session)
    const whole = this.#seal.seal(this.#purpose(origin, 1), text)
    const count = Math.ceil(whole.length / this.#pieceChars)
    if (count === 1) return [whole]
    if (count > piecesMax || whole.length > sealedCharsMax) return undefined
    const sealed = this.#seal.seal(this.#purpose(origin, count), text)
    return Array.from({ length: count }, (_, at) =>
      sealed.slice(at * this.#pieceChars, (at + 1) * this.#pieceChars),
    )
  }

  #purpose(origin: string, count: number): string {
    return ['session', this.#names[0], origin, count].join('\n')
  }
}

import type { Site } from '../../access/caller.ts'
import { WbError } from '../../contract/errors.ts'
import { clearingLine, cookieLine, cookieValues, isSecure } from './cookie-header.ts'
import type { Seal } from './seal.ts'

/** What a browser's session is made of. */
export interface StoredSession {
  readonly accessToken: string
  /** Whose it is: a renewal must come back with the same. */
  readonly subject: string
  /** Seconds since 1970. */
  readonly issuedAt: number
  readonly refreshToken?: string
}

const piecesMax = 5
/** Of a whole `Set-Cookie` line; browsers keep at least 4,096. */
const cookieBytesMax = 3_500
/** Room for the attributes and the number of a piece. */
const attributesBytes = 100
/** Of all pieces together. */
const sealedCharsMax = 14 * 1024

/**
 * Sessions in the cookies of a browser: one sealed value, cut into pieces `NAME`, `NAME.1`, …
 *
 * The name, the site's origin and the number of pieces are authenticated with it.
 *
 * @see docs/requirements.md#session-cookie, docs/security.md#rule-12
 */
export class SessionCookies {
  readonly #seal: Seal
  readonly #names: readonly string[]
  readonly #pieceChars: number

  constructor({ seal, name }: { seal: Seal; name: string }) {
    this.#seal = seal
    this.#names = Array.from({ length: piecesMax }, (_, at) => (at === 0 ? name : `${name}.${at}`))
    this.#pieceChars = Math.max(1, cookieBytesMax - attributesBytes - name.length)
  }

  /** @returns undefined when there is none that holds; of doubled, missing and surplus pieces none does */
  read({ origin, cookies }: Site): StoredSession | undefined {
    const found = this.#names.map(name => cookieValues(cookies, name))
    const pieces = found.flat()
    if (pieces.length === 0 || found.some(values => values.length > 1)) return undefined
    const text = this.#seal.open(this.#purpose(origin, pieces.length), pieces.join(''))
    return text === undefined ? undefined : (JSON.parse(text) as StoredSession)
  }

  /**
   * The `Set-Cookie` lines of a session. One that is too large for a browser loses its refresh token.
   *
   * @throws session_too_large  it is too large without it too
   */
  write(site: Site, session: StoredSession, maxAgeSeconds: number): string[] {
    const { refreshToken: _, ...lasting } = session
    const pieces = this.#cut(site, session) ?? this.#cut(site, lasting)
    if (!pieces)
      throw new WbError(
        'session_too_large',
        'the access token of the identity provider does not fit into cookies',
      )
    const scope = { path: '/', maxAgeSeconds, secure: isSecure(site.origin) }
    return [
      ...pieces.map((piece, at) => cookieLine(this.#names[at]!, piece, scope)),
      ...this.#clear(site, pieces.length),
    ]
  }

  /** The lines that end a session: the first piece, and whatever else came. */
  clear(site: Site): string[] {
    const first = clearingLine(this.#names[0]!, { path: '/', secure: isSecure(site.origin) })
    return [first, ...this.#clear(site, 1)]
  }

  /** Pieces that came and have no place from here on. */
  #clear({ origin, cookies }: Site, from: number): string[] {
    return this.#names
      .slice(from)
      .filter(name => cookieValues(cookies, name).length > 0)
      .map(name => clearingLine(name, { path: '/', secure: isSecure(origin) }))
  }

  /** Undefined for what is too large. How long a sealed value is does not depend on its purpose. */
  #cut({ origin }: Site, session: StoredSession): string[] | undefined {
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

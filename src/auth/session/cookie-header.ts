/** Path, lifetime and transport of a cookie. */
export interface CookieScope {
  readonly path: string
  readonly maxAgeSeconds: number
  /** True if the cookie is sent over HTTPS only. */
  readonly secure: boolean
}

/**
 * Returns the `Set-Cookie` line of a cookie that scripts cannot read. Browsers send it with a request from another site
 * only when the user navigates to this site.
 *
 * @see RFC 6265 4.1
 */
export function setCookieLine(
  name: string,
  value: string,
  { path, maxAgeSeconds, secure }: CookieScope,
): string {
  const line = `${name}=${value}; Path=${path}; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Lax`
  return secure ? `${line}; Secure` : line
}

/** Returns the `Set-Cookie` line that deletes a cookie. */
export function clearCookieLine(name: string, scope: Omit<CookieScope, 'maxAgeSeconds'>): string {
  return setCookieLine(name, '', { ...scope, maxAgeSeconds: 0 })
}

/**
 * Returns the values of all cookies with a given name in a `Cookie` header. Several cookies can have the same name if
 * their paths or domains differ.
 */
export function cookieValues(header: string | null, name: string): string[] {
  const prefix = `${name}=`
  return (header ?? '')
    .split(';')
    .map(pair => pair.trim())
    .filter(pair => pair.startsWith(prefix))
    .map(pair => pair.slice(prefix.length))
}

/** Returns true for an HTTPS origin. Its cookies must be sent over HTTPS only. */
export function needsSecureCookies(origin: string): boolean {
  return /^https:/i.test(origin)
}

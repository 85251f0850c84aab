/** Where and for how long a browser keeps a cookie. */
export interface CookieScope {
  readonly path: string
  readonly maxAgeSeconds: number
  /** Sent over HTTPS only. */
  readonly secure: boolean
}

/** A `Set-Cookie` line that no script reads and no other site's request carries, but for a navigation. @see RFC 6265 4.1 */
export function cookieLine(
  name: string,
  value: string,
  { path, maxAgeSeconds, secure }: CookieScope,
): string {
  const line = `${name}=${value}; Path=${path}; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Lax`
  return secure ? `${line}; Secure` : line
}

/** The line that makes a browser forget a cookie. */
export function clearingLine(name: string, scope: Omit<CookieScope, 'maxAgeSeconds'>): string {
  return cookieLine(name, '', { ...scope, maxAgeSeconds: 0 })
}

/** All that a `Cookie` header holds under a name: more than one when cookies of several paths or domains meet. */
export function cookieValues(header: string | null, name: string): string[] {
  const prefix = `${name}=`
  return (header ?? '')
    .split(';')
    .map(pair => pair.trim())
    .filter(pair => pair.startsWith(prefix))
    .map(pair => pair.slice(prefix.length))
}

/** Whether a browser may send a cookie of this site over HTTPS only. */
export function isSecure(origin: string): boolean {
  return /^https:/i.test(origin)
}

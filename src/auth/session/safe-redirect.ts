const pathCharsMax = 4_096
/** Maximum number of times that a path may be percent-encoded. */
const encodingLayersMax = 8

/** @see docs/requirements.md#S5.7-09 */
const allowedPath = /^\/[A-Za-z0-9\-._~!$&'()*+,;=:@%/?#]*$/
/** Control characters and backslashes: browsers remove them, or treat them as a slash. */
const deceptiveCharacter = /[\p{Cc}\\]/u

/**
 * Returns the path to open after sign-in: the requested path, or `/` if that path is not safe.
 *
 * A path must match the pattern of S5.7-09. It is also rejected if a browser or proxy could interpret it as another
 * origin, because it has two leading slashes, a backslash or a control character. This is checked again after each
 * percent-decoding, and after the resolution of dot segments.
 *
 * @see docs/requirements.md#S5.7-09, docs/security.md#rule-12
 */
export function safeRedirectPath(requested: string | undefined): string {
  if (requested === undefined || requested.length > pathCharsMax || !allowedPath.test(requested)) return '/'
  let path = requested
  for (let layer = 0; layer < encodingLayersMax; layer++) {
    if (leavesSite(path)) return '/'
    const decoded = decodeOnce(path)
    if (decoded === path) return requested
    path = decoded
  }
  return '/'
}

function leavesSite(path: string): boolean {
  return (
    deceptiveCharacter.test(path) ||
    path.startsWith('//') ||
    new URL(path, 'http://site').pathname.startsWith('//')
  )
}

/** Removes one layer of percent-encoding from ASCII characters. Invalid encodings stay unchanged. */
function decodeOnce(text: string): string {
  return text.replace(/%([0-7][0-9a-f])/gi, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  )
}

/** Maximum length of a path. */
const pathCharsMax = 4_096
/** Maximum number of nested percent-encodings. */
const encodingLayersMax = 8

/** @see docs/requirements.md#S5.7-09 */
const allowedPath = /^\/[A-Za-z0-9\-._~!$&'()*+,;=:@%/?#]*$/
/** Characters that browsers remove, or treat as a slash. */
const deceptiveCharacter = /[\p{Cc}\\]/u

/**
 * Returns the path to open after sign-in: the requested one, or `/` if that is not safe.
 *
 * A path must match the pattern of S5.7-09. It is also rejected if a browser or proxy could interpret it as
 * another origin, because it has two leading slashes, a backslash or a control character. The path is checked
 * again after each percent-decoding, and after dot segments are resolved.
 *
 * @see docs/requirements.md#S5.7-09, docs/security.md#rule-12
 */
export function safeRedirectPath(requested: string | undefined): string {
  if (requested === undefined || requested.length > pathCharsMax || !allowedPath.test(requested)) return '/'
  let layer = requested
  for (let depth = 0; depth < encodingLayersMax; depth++) {
    if (leavesSite(layer)) return '/'
    const inner = decodeOnce(layer)
    if (inner === layer) return requested
    layer = inner
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

/** Maximum length of a path. */
const charsMax = 4_096
/** Maximum number of nested percent-encodings. */
const layersMax = 8

/** @see docs/requirements.md#S5.7-09 */
const allowed = /^\/[A-Za-z0-9\-._~!$&'()*+,;=:@%/?#]*$/
/** Characters that browsers drop, or treat as a slash. */
const deceptive = /[\p{Cc}\\]/u

/**
 * Returns the path on this site to open after the sign-in, `/` if the requested one is not safe.
 *
 * In addition to the pattern of S5.7-09, a path is refused if a browser or a proxy could interpret it as
 * another origin: two leading slashes, a backslash, a control character, also after decoding, and dot
 * segments that produce such a path.
 *
 * @see docs/requirements.md#S5.7-09, docs/security.md#rule-12
 */
export function safeRedirectPath(requested: string | undefined): string {
  if (requested === undefined || requested.length > charsMax || !allowed.test(requested)) return '/'
  let layer = requested
  for (let depth = 0; depth < layersMax; depth++) {
    if (leavesSite(layer)) return '/'
    const inner = decodeOnce(layer)
    if (inner === layer) return requested
    layer = inner
  }
  return '/'
}

function leavesSite(path: string): boolean {
  return (
    deceptive.test(path) || path.startsWith('//') || new URL(path, 'http://site').pathname.startsWith('//')
  )
}

/** Removes one layer of percent-encoding from ASCII characters. Invalid encodings stay unchanged. */
function decodeOnce(text: string): string {
  return text.replace(/%([0-7][0-9a-f])/gi, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  )
}

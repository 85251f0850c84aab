/** Longer ones are kept for nobody. */
const charsMax = 4_096
/** Encodings of encodings that are looked through. */
const layersMax = 8

/** @see docs/requirements.md#S5.7-09 */
const allowed = /^\/[A-Za-z0-9\-._~!$&'()*+,;=:@%/?#]*$/
/** What browsers drop or read as a slash. */
const deceptive = /[\p{Cc}\\]/u

/**
 * Where a browser goes after its sign-in: a path of this site, else `/`.
 *
 * Beyond the pattern of S5.7-09, whatever a browser or a proxy on the way could read as another origin is
 * none: two leading slashes, a backslash, a control character, also after decoding, and steps that lead to one.
 *
 * @see docs/requirements.md#S5.7-09, docs/security.md#rule-12
 */
export function redirectTarget(wanted: string | undefined): string {
  if (wanted === undefined || wanted.length > charsMax || !allowed.test(wanted)) return '/'
  let layer = wanted
  for (let depth = 0; depth < layersMax; depth++) {
    if (leavesSite(layer)) return '/'
    const inner = decoded(layer)
    if (inner === layer) return wanted
    layer = inner
  }
  return '/'
}

function leavesSite(path: string): boolean {
  return (
    deceptive.test(path) || path.startsWith('//') || new URL(path, 'http://site').pathname.startsWith('//')
  )
}

/** One layer of percent-encoding less, of ASCII; what is no encoding stays as it is. */
function decoded(text: string): string {
  return text.replace(/%([0-7][0-9a-f])/gi, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  )
}

import { packageVersion } from '../base/package.ts'

/** Header names and values in the order in which they are sent; names in lower case. */
export type HeaderPairs = [name: string, value: string][]

/** Policy of responses that are not pages: load nothing, no frames, no form targets. */
const contentSecurityPolicy =
  "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/**
 * Returns the headers of every response: those of docs/http.md#response-headers, and the version, so that
 * clients can detect an upgrade.
 */
export function commonHeaders(production: boolean): HeaderPairs {
  return [...securityHeaders(production), ['x-workbase-version', packageVersion()]]
}

/** @see docs/http.md#response-headers */
function securityHeaders(production: boolean): HeaderPairs {
  const always: HeaderPairs = [
    ['content-security-policy', contentSecurityPolicy],
    ['cross-origin-opener-policy', 'same-origin'],
    ['referrer-policy', 'strict-origin-when-cross-origin'],
    ['x-content-type-options', 'nosniff'],
    ['x-frame-options', 'DENY'],
    ['permissions-policy', 'camera=(), geolocation=(), microphone=(), payment=(), usb=()'],
  ]
  return production
    ? [...always, ['strict-transport-security', 'max-age=15552000; includeSubDomains']]
    : always
}

/**
 * Returns the pairs with more headers. A header replaces earlier ones of the same name; a list is sent as one
 * header per entry.
 */
export function replaceHeaders(
  pairs: HeaderPairs,
  more: Readonly<Record<string, string | readonly string[]>>,
): HeaderPairs {
  const named = Object.entries(more).flatMap(([name, value]) =>
    [value].flat().map((one): [string, string] => [name.toLowerCase(), one]),
  )
  const replaced = new Set(named.map(([name]) => name))
  return [...pairs.filter(([name]) => !replaced.has(name)), ...named]
}

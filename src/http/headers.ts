import { packageVersion } from '../base/package.ts'

/** Header names and values in the order in which they leave; names in lower case. */
export type HeaderPairs = [name: string, value: string][]

/** Nothing that the API answers is a page: it may load nothing, be framed by nothing, and send nowhere. */
const contentSecurityPolicy =
  "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/**
 * Headers of every response: those of docs/http.md#response-headers, and the version, by which a client notices an
 * upgrade.
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

/** Pairs with more of them, a later one replacing the earlier ones of its name; a list is sent as one header each. */
export function withHeaders(
  pairs: HeaderPairs,
  more: Readonly<Record<string, string | readonly string[]>>,
): HeaderPairs {
  const named = Object.entries(more).flatMap(([name, value]) =>
    [value].flat().map((one): [string, string] => [name.toLowerCase(), one]),
  )
  const replaced = new Set(named.map(([name]) => name))
  return [...pairs.filter(([name]) => !replaced.has(name)), ...named]
}

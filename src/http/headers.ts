import { packageVersion } from '../base/package.ts'

/** Header names and values in the order in which they are sent; names in lower case. */
export type HeaderPairs = [name: string, value: string][]

/** Content security policy of responses that are not pages. */
const contentSecurityPolicy =
  "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/**
 * Returns the headers of every response: the security headers, and the version with which clients detect an
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

/**
 * Adds headers, which replace existing headers of the same name. An array is sent as one header per entry.
 */
export function replaceHeaders(
  pairs: HeaderPairs,
  headers: Readonly<Record<string, string | readonly string[]>>,
): HeaderPairs {
  const added = Object.entries(headers).flatMap(([name, value]) =>
    [value].flat().map((entry): [string, string] => [name.toLowerCase(), entry]),
  )
  const replacedNames = new Set(added.map(([name]) => name))
  return [...pairs.filter(([name]) => !replacedNames.has(name)), ...added]
}

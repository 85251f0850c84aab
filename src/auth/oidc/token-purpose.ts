import type { Claims } from './claims.ts'

/**
 * Values of `typ` that identify tokens other than access tokens. Values that end in `+jwt` are checked separately.
 */
const otherTokenTypes: ReadonlySet<string> = new Set(['id', 'id_token', 'logout', 'refresh', 'offline'])
const logoutEvent = 'http://schemas.openid.net/event/backchannel-logout'

/**
 * Returns true for a token that is not an access token, such as an ID token, a logout token or a request object.
 * A `nonce` is not evaluated, because some providers put it into access tokens, too.
 *
 * @see docs/security.md#rule-11, RFC 8725 section 3.11, OpenID Connect Core 3.1.3.6, Back-Channel Logout 2.4
 */
export function hasOtherPurpose(header: Claims, claims: Claims): boolean {
  const types = [tokenType(header), tokenType(claims)]
  return (
    types.some(type => otherTokenTypes.has(type) || (type.endsWith('+jwt') && type !== 'at+jwt')) ||
    Object.hasOwn(claims, 'at_hash') ||
    Object.hasOwn(claims, 'c_hash') ||
    isLogoutToken(claims.events)
  )
}

function tokenType({ typ }: Claims): string {
  return typeof typ === 'string' ? typ.toLowerCase().replace(/^application\//, '') : ''
}

function isLogoutToken(events: unknown): boolean {
  return typeof events === 'object' && events !== null && Object.hasOwn(events, logoutEvent)
}

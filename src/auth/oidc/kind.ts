import type { Claims } from './claims.ts'

/** Kinds that providers write into `typ` for what is no access token; what ends in `+jwt` is told by that. */
const others: ReadonlySet<string> = new Set(['id', 'id_token', 'logout', 'refresh', 'offline'])
const logoutEvent = 'http://schemas.openid.net/event/backchannel-logout'

/**
 * Whether a token says that it is something else than an access token: an ID token, a logout token, a request object.
 *
 * A `nonce` alone is no sign, as some providers put it into access tokens.
 *
 * @see docs/security.md#rule-11, RFC 8725 section 3.11, OpenID Connect Core 3.1.3.6, Back-Channel Logout 2.4
 */
export function isOfAnotherKind(header: Claims, claims: Claims): boolean {
  const types = [typeOf(header), typeOf(claims)]
  return (
    types.some(type => others.has(type) || (type.endsWith('+jwt') && type !== 'at+jwt')) ||
    Object.hasOwn(claims, 'at_hash') ||
    Object.hasOwn(claims, 'c_hash') ||
    isLogout(claims.events)
  )
}

function typeOf({ typ }: Claims): string {
  return typeof typ === 'string' ? typ.toLowerCase().replace(/^application\//, '') : ''
}

function isLogout(events: unknown): boolean {
  return typeof events === 'object' && events !== null && Object.hasOwn(events, logoutEvent)
}

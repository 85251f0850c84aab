import { isUnencryptedRemote } from '../../base/loopback.ts'

/**
 * Returns true for an https URL, and for an http URL of this machine. Other users of the network cannot read the data
 * that is sent to these URLs.
 *
 * @see docs/security.md#rule-15
 */
export function isSafeTransport(address: unknown): boolean {
  if (typeof address !== 'string' || !URL.canParse(address)) return false
  const url = new URL(address)
  return /^https?:$/.test(url.protocol) && !isUnencryptedRemote(url)
}

/**
 * Returns the URL of the provider's discovery document.
 *
 * @see OpenID Connect Discovery 4
 */
export function discoveryUrl(issuer: string): URL {
  const url = new URL(issuer)
  url.pathname = `${url.pathname.replace(/\/$/, '')}/.well-known/openid-configuration`
  return url
}

import { isInTheClear } from '../../base/loopback.ts'

/** Whether what is sent to an address stays between here and there: https, or no network at all. @see security decision 15 */
export function isSafe(address: unknown): boolean {
  if (typeof address !== 'string' || !URL.canParse(address)) return false
  const url = new URL(address)
  return /^https?:$/.test(url.protocol) && !isInTheClear(url)
}

/** Where a provider describes itself. @see OpenID Connect Discovery 4 */
export function wellKnown(issuer: string): URL {
  const url = new URL(issuer)
  url.pathname = `${url.pathname.replace(/\/$/, '')}/.well-known/openid-configuration`
  return url
}

import { isIP } from 'node:net'
import { isBearer } from '../auth/bearer-token.ts'
import { WbError } from '../contract/errors.ts'
import type { ClientTarget } from './proxy-resolver.ts'

/** Settings of the runtime that the origin rule depends on. */
export interface OriginRuleSettings {
  /** True if the runtime listens on a loopback address only. */
  readonly loopback: boolean
  /** True if callers without credentials are accepted: auth is off, or the anonymous policy allows them. */
  readonly anonymousPasses: boolean
  readonly publicOrigin: string | null
  readonly allowedHosts: readonly string[]
  readonly allowedOrigins: readonly string[]
  /** Host name of the machine. */
  readonly machineName: string
  /** True if state-changing requests must come from an allowed origin. */
  readonly csrfOriginCheck: boolean
  /** True if browsers can sign in, so that a cookie can hold a session. */
  readonly browserLogin: boolean
}

/** Parts of a request that the origin rule reads. Absent headers are null. */
export interface OriginFacts {
  readonly method: string
  readonly path: string
  readonly encrypted: boolean
  readonly host: string | null
  readonly origin: string | null
  readonly fetchSite: string | null
  readonly referer: string | null
  readonly authorization: string | null
  readonly cookie: string | null
}

export type OriginRule<A extends OriginFacts> = (arrival: A) => WbError | undefined

const anyHostPaths: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/version'])
const safeMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE'])

/**
 * Returns the rule that protects against DNS rebinding and cross-site request forgery by checking `Host` and
 * `Origin`.
 *
 * `Host` is checked even if the request has credentials: after DNS rebinding, a hostile page shares an origin
 * with the runtime and may send any header. `Origin` is checked for state-changing requests without a bearer
 * token. A page cannot send a bearer token across origins, because the runtime answers no CORS preflight.
 *
 * @param reachedBy  returns the scheme and host that the client used, as far as trusted proxies report them
 * @returns the reason for a refusal, or undefined; for a refused origin, the fact `crossOrigin` describes it
 * @see docs/security.md#rule-3
 */
export function createOriginRule<A extends OriginFacts>(
  rules: OriginRuleSettings,
  reachedBy: (arrival: A) => ClientTarget,
): OriginRule<A> {
  const { publicOrigin } = rules
  const hosts = new Set(
    [rules.machineName, ...rules.allowedHosts, ...(publicOrigin ? [new URL(publicOrigin).host] : [])].map(
      hostNameOf,
    ),
  )
  const origins = new Set([...(publicOrigin ? [publicOrigin] : []), ...rules.allowedOrigins].map(originOfUrl))
  const hostMatters = rules.loopback || rules.anonymousPasses
  // Consecutive requests usually have the same host.
  let lastOwnHost: string | null = null

  function isOwnHost(host: string | null): boolean {
    if (host === null) return false
    if (host === lastOwnHost) return true
    const name = hostNameOf(host)
    if (!isOwnHostName(name, rules.loopback) && !hosts.has(name)) return false
    lastOwnHost = host
    return true
  }

  function isOwnOrigin(claimed: string, arrival: A): boolean {
    const origin = originOfUrl(claimed)
    if (origin === '') return false
    if (origins.has(origin)) return true
    // A session belongs to the public origin; pages under other names of this runtime must not use it.
    const mayBeSession = rules.browserLogin && arrival.cookie !== null
    return !(publicOrigin && mayBeSession) && origin === originOfTarget(reachedBy(arrival))
  }

  function isOwnPage(arrival: A): boolean {
    const { origin, fetchSite, referer } = arrival
    if (origin !== null) return isOwnOrigin(origin, arrival)
    if (fetchSite !== null) return fetchSite === 'same-origin' || fetchSite === 'none'
    return referer === null ? arrival.cookie === null : isOwnOrigin(referer, arrival)
  }

  return arrival => {
    const { host, path, method, authorization } = arrival
    if (hostMatters && !isOwnHost(host) && !anyHostPaths.has(path)) return hostRefused(host)
    if (!rules.csrfOriginCheck || safeMethods.has(method)) return undefined
    if (authorization !== null && isBearer(authorization)) return undefined
    return isOwnPage(arrival) ? undefined : originRefused(arrival)
  }
}

/**
 * Returns true for a name that an attacker cannot point at this address. Outside loopback, names without a
 * dot belong to the local network.
 */
function isOwnHostName(name: string, loopback: boolean): boolean {
  if (name === '') return false
  if (name === 'localhost' || name.endsWith('.localhost') || isIP(name) !== 0) return true
  return !loopback && !name.includes('.')
}

/**
 * Returns the name in a `Host` value in lower case, without port, brackets and final dot; empty if it is
 * invalid.
 */
function hostNameOf(host: string): string {
  const bracketed = /^\[([0-9a-f:.]+)\](?::\d*)?$/i.exec(host)
  if (bracketed) return bracketed[1]!.toLowerCase()
  const plain = /^([a-z0-9._-]+?)\.?(?::\d*)?$/i.exec(host)
  return plain ? plain[1]!.toLowerCase() : ''
}

/** Returns the origin of a scheme and host; empty if there is no valid host. */
export function originOfTarget({ encrypted, host }: ClientTarget): string {
  return originOfUrl(`${encrypted ? 'https' : 'http'}://${host ?? ''}`)
}

/**
 * Returns the origin of a URL without a default port; empty if the text is not an http(s) URL, as in the
 * header value `null`.
 */
export function originOfUrl(text: string): string {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return ''
  return new URL(text).origin
}

function hostRefused(host: string | null): WbError {
  const name = hostNameOf(host ?? '')
  const shown = name || 'this host'
  return new WbError('forbidden_origin', `this runtime does not accept requests for ${shown}`, {
    hint: `To accept this name, set runtime.allowedHosts: ["${name || 'NAME'}"] in the configuration.`,
  })
}

function originRefused(arrival: OriginFacts): WbError {
  const known = originOfUrl(arrival.origin ?? arrival.referer ?? '')
  const isSilent = arrival.origin === null && arrival.fetchSite === null && arrival.referer === null
  const message = isSilent
    ? 'a request that changes something has a cookie, but no Origin or Referer'
    : 'a page of another origin sent a request that changes something'
  return new WbError('forbidden_origin', message, {
    crossOrigin: refusalReason(arrival),
    hint: known
      ? `To accept requests of that page, set runtime.allowedOrigins: ["${known}"] in the configuration.`
      : 'Send the Origin of this runtime with the cookie, or a bearer token and no cookie.',
  })
}

/**
 * Returns the reason of a refusal for the audit trail. It repeats only valid origins from the request, no
 * other text.
 */
function refusalReason({ origin, fetchSite, referer }: OriginFacts): string {
  if (origin !== null) return `the Origin is ${originOfUrl(origin) || 'none'}`
  if (fetchSite !== null) return 'Sec-Fetch-Site names another site'
  return referer === null
    ? 'a cookie came without Origin or Referer'
    : `the Referer is of ${originOfUrl(referer) || 'no origin'}`
}

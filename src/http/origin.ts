import { isIP } from 'node:net'
import { isBearer } from '../auth/bearer.ts'
import { WbError } from '../contract/errors.ts'
import type { Reached } from './proxies.ts'

/** What the rule knows of this runtime. */
export interface OriginRules {
  /** The runtime listens on a loopback address only. */
  readonly loopback: boolean
  /** Callers without credentials pass: auth is off, or its anonymous policy allows them. */
  readonly anonymousPasses: boolean
  readonly publicOrigin: string | null
  readonly allowedHosts: readonly string[]
  readonly allowedOrigins: readonly string[]
  /** The machine's own name. */
  readonly machineName: string
  /** Whether a change needs an origin of ours. */
  readonly csrfOriginCheck: boolean
  /** Browsers can sign in: a cookie may be a session. */
  readonly browserLogin: boolean
}

/** What the rule looks at in a request. Absent headers are null. */
export interface Arrival {
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

export type OriginRule<A extends Arrival> = (arrival: A) => WbError | undefined

const anyHostPaths: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/version'])
const safeMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE'])

/**
 * The rule that keeps web pages out: which `Host` and which `Origin` a request may carry.
 *
 * `Host` is checked whatever credentials come with it, as a page whose name was rebound to this address is of one
 * origin with the runtime and may send any header. The origin of a change is checked unless a bearer token is sent,
 * which no page can do across origins, as no CORS answer is ever given.
 *
 * @param reachedBy  scheme and host that the client wrote, as far as trusted proxies tell
 * @returns why the request is refused, or undefined; a refused origin has the words for it in the fact `crossOrigin`
 * @see docs/security.md#rule-3
 */
export function originRule<A extends Arrival>(
  rules: OriginRules,
  reachedBy: (arrival: A) => Reached,
): OriginRule<A> {
  const { publicOrigin } = rules
  const hosts = new Set(
    [rules.machineName, ...rules.allowedHosts, ...(publicOrigin ? [new URL(publicOrigin).host] : [])].map(
      nameOf,
    ),
  )
  const origins = new Set([...(publicOrigin ? [publicOrigin] : []), ...rules.allowedOrigins].map(originOf))
  const hostMatters = rules.loopback || rules.anonymousPasses
  // Nearly every request names the host that the one before it named.
  let lastOwnHost: string | null = null

  function isOwnHost(host: string | null): boolean {
    if (host === null) return false
    if (host === lastOwnHost) return true
    const name = nameOf(host)
    if (!isOwnName(name, rules.loopback) && !hosts.has(name)) return false
    lastOwnHost = host
    return true
  }

  function isOurs(claimed: string, arrival: A): boolean {
    const origin = originOf(claimed)
    if (origin === '') return false
    if (origins.has(origin)) return true
    // A session lives under the public origin; a page of any other name of this runtime has none to act with.
    const mayBeSession = rules.browserLogin && arrival.cookie !== null
    return !(publicOrigin && mayBeSession) && origin === originAt(reachedBy(arrival))
  }

  function isOwnPage(arrival: A): boolean {
    const { origin, fetchSite, referer } = arrival
    if (origin !== null) return isOurs(origin, arrival)
    if (fetchSite !== null) return fetchSite === 'same-origin' || fetchSite === 'none'
    return referer === null ? arrival.cookie === null : isOurs(referer, arrival)
  }

  return arrival => {
    const { host, path, method, authorization } = arrival
    if (hostMatters && !isOwnHost(host) && !anyHostPaths.has(path)) return refusedHost(host)
    if (!rules.csrfOriginCheck || safeMethods.has(method)) return undefined
    if (authorization !== null && isBearer(authorization)) return undefined
    return isOwnPage(arrival) ? undefined : refusedOrigin(arrival)
  }
}

/** Names that nobody else can point at this address. Outside loopback, a name without a dot is of the local network. */
function isOwnName(name: string, loopback: boolean): boolean {
  if (name === '') return false
  if (name === 'localhost' || name.endsWith('.localhost') || isIP(name) !== 0) return true
  return !loopback && !name.includes('.')
}

/** The name in a `Host` value, lower case, without port, brackets and final dot; empty when it is not one. */
function nameOf(host: string): string {
  const bracketed = /^\[([0-9a-f:.]+)\](?::\d*)?$/i.exec(host)
  if (bracketed) return bracketed[1]!.toLowerCase()
  const plain = /^([a-z0-9._-]+?)\.?(?::\d*)?$/i.exec(host)
  return plain ? plain[1]!.toLowerCase() : ''
}

/** The origin of what was reached; empty when it has none. */
export function originAt({ encrypted, host }: Reached): string {
  return originOf(`${encrypted ? 'https' : 'http'}://${host ?? ''}`)
}

/** The origin without a default port; empty when the text is none, which `null` is not either. */
export function originOf(text: string): string {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return ''
  return new URL(text).origin
}

function refusedHost(host: string | null): WbError {
  const name = nameOf(host ?? '')
  const shown = name || 'this host'
  return new WbError('forbidden_origin', `requests to ${shown} are not answered here`, {
    hint: `To serve this name, write runtime.allowedHosts: ["${name || 'NAME'}"] in the configuration.`,
  })
}

function refusedOrigin(arrival: Arrival): WbError {
  const known = originOf(arrival.origin ?? arrival.referer ?? '')
  const isSilent = arrival.origin === null && arrival.fetchSite === null && arrival.referer === null
  const message = isSilent
    ? 'a change came with a cookie, and without an Origin or Referer'
    : 'a change was asked for by a page of another origin'
  return new WbError('forbidden_origin', message, {
    crossOrigin: whyRefused(arrival),
    hint: known
      ? `To let that page in, write runtime.allowedOrigins: ["${known}"] in the configuration.`
      : 'Send the Origin of this runtime with the cookie, or a bearer token and no cookie.',
  })
}

/** For the audit trail. Of what a page sent, only what is an origin is repeated. */
function whyRefused({ origin, fetchSite, referer }: Arrival): string {
  if (origin !== null) return `the Origin is ${originOf(origin) || 'none'}`
  if (fetchSite !== null) return 'Sec-Fetch-Site tells of another site'
  return referer === null
    ? 'a cookie came without Origin or Referer'
    : `the Referer is of ${originOf(referer) || 'no origin'}`
}

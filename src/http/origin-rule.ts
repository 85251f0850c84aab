import { isIP } from 'node:net'
import { isBearer } from '../auth/bearer-token.ts'
import { WbError } from '../contract/errors.ts'
import type { ClientTarget } from './proxy-resolver.ts'

/** Settings of the runtime that the origin rule depends on. */
export interface OriginRuleSettings {
  /** True if the runtime listens on a loopback address only. */
  readonly loopback: boolean
  /** True if callers without a credential are allowed: authentication is off, or `auth.anonymousPolicy` is `allow`. */
  readonly acceptsAnonymous: boolean
  readonly publicOrigin: string | null
  readonly allowedHosts: readonly string[]
  readonly allowedOrigins: readonly string[]
  /** Host name of the machine. */
  readonly machineName: string
  /** True if state-changing requests must come from an allowed origin. */
  readonly csrfOriginCheck: boolean
  /** True if browsers can sign in, so that a cookie can contain a session. */
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

export type OriginRule<A extends OriginFacts> = (request: A) => WbError | undefined

/** Paths that accept requests with any `Host` header. */
const anyHostPaths: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/version'])
const safeMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE'])

/**
 * Returns the rule that protects against DNS rebinding and cross-site request forgery by checking `Host` and
 * `Origin`.
 *
 * `Host` is checked even if the request has credentials: after DNS rebinding, a malicious page has the same origin
 * as the runtime and can send any header. `Origin` is checked for state-changing requests without a bearer token.
 * A page cannot send a bearer token to another origin, because the runtime does not support CORS preflights.
 *
 * @param targetOf  returns the scheme and host that the client used, as reported by trusted proxies
 * @returns a function that returns the error for a rejected request, or undefined; if the origin is not allowed,
 *   the error's fact `crossOrigin` contains the reason
 * @see docs/security.md#rule-3
 */
export function createOriginRule<A extends OriginFacts>(
  settings: OriginRuleSettings,
  targetOf: (request: A) => ClientTarget,
): OriginRule<A> {
  const { publicOrigin } = settings
  const hosts = new Set(
    [
      settings.machineName,
      ...settings.allowedHosts,
      ...(publicOrigin ? [new URL(publicOrigin).host] : []),
    ].map(hostNameOf),
  )
  const origins = new Set(
    [...(publicOrigin ? [publicOrigin] : []), ...settings.allowedOrigins].map(originOfUrl),
  )
  const checksHost = settings.loopback || settings.acceptsAnonymous
  // Consecutive requests usually have the same host.
  let lastAcceptedHost: string | null = null

  function isRuntimeHost(host: string | null): boolean {
    if (host === null) return false
    if (host === lastAcceptedHost) return true
    const name = hostNameOf(host)
    if (!isSafeHostName(name, settings.loopback) && !hosts.has(name)) return false
    lastAcceptedHost = host
    return true
  }

  function isAllowedOrigin(url: string, request: A): boolean {
    const origin = originOfUrl(url)
    if (origin === '') return false
    if (origins.has(origin)) return true
    // A session cookie is valid for the public origin only, not for other host names of this runtime.
    const mayBeSession = settings.browserLogin && request.cookie !== null
    return !(publicOrigin && mayBeSession) && origin === originOfTarget(targetOf(request))
  }

  function isFromAllowedOrigin(request: A): boolean {
    const { origin, fetchSite, referer } = request
    if (origin !== null) return isAllowedOrigin(origin, request)
    if (fetchSite !== null) return fetchSite === 'same-origin' || fetchSite === 'none'
    return referer === null ? request.cookie === null : isAllowedOrigin(referer, request)
  }

  return request => {
    const { host, path, method, authorization } = request
    if (checksHost && !isRuntimeHost(host) && !anyHostPaths.has(path)) return hostError(host)
    if (!settings.csrfOriginCheck || safeMethods.has(method)) return undefined
    if (authorization !== null && isBearer(authorization)) return undefined
    return isFromAllowedOrigin(request) ? undefined : originError(request)
  }
}

/**
 * Returns true for a host name that an attacker cannot point to this server: a loopback name, an IP address, or,
 * unless the server listens on loopback only, a local network name without a dot.
 */
function isSafeHostName(name: string, loopback: boolean): boolean {
  if (name === '') return false
  if (name === 'localhost' || name.endsWith('.localhost') || isIP(name) !== 0) return true
  return !loopback && !name.includes('.')
}

/**
 * Returns the host name of a `Host` header in lower case, without port, brackets and trailing dot; empty if the
 * header is not valid.
 */
export function hostNameOf(host: string): string {
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
 * Returns the origin of an http(s) URL, without a default port. Returns an empty string for other strings, such as
 * the header value `null`.
 */
export function originOfUrl(text: string): string {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return ''
  return new URL(text).origin
}

function hostError(host: string | null): WbError {
  const name = hostNameOf(host ?? '')
  const hostLabel = name || 'in the Host header'
  return new WbError('forbidden_origin', `this runtime does not accept requests for the host ${hostLabel}`, {
    hint: `To accept this host, set runtime.allowedHosts: ["${name || 'NAME'}"] in the configuration.`,
  })
}

function originError(request: OriginFacts): WbError {
  const sourceOrigin = originOfUrl(request.origin ?? request.referer ?? '')
  const hasNoSource = request.origin === null && request.fetchSite === null && request.referer === null
  const message = hasNoSource
    ? 'the request would change data and has a cookie, but no Origin or Referer header'
    : 'the request would change data, but it comes from a page of another origin'
  return new WbError('forbidden_origin', message, {
    crossOrigin: rejectionReason(request),
    hint: sourceOrigin
      ? `To accept requests from that page, set runtime.allowedOrigins: ["${sourceOrigin}"] in the configuration.`
      : 'Send an Origin header with the origin of this runtime, or send a bearer token and no cookie.',
  })
}

/**
 * Returns the reason for the audit trail. It contains only valid origins from the request, and no other input.
 */
function rejectionReason({ origin, fetchSite, referer }: OriginFacts): string {
  if (origin !== null) return `the Origin is ${originOfUrl(origin) || 'none'}`
  if (fetchSite !== null) return 'Sec-Fetch-Site shows another site'
  return referer === null
    ? 'the request has a cookie, but no Origin or Referer'
    : `the origin of the Referer is ${originOfUrl(referer) || 'none'}`
}

import { isIP } from 'node:net'
import { WbError } from '../contract/errors.ts'

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
}

/** What the rule looks at in a request. Absent headers are null. */
export interface Arrival {
  readonly method: string
  readonly path: string
  readonly encrypted: boolean
  readonly host: string | null
  readonly origin: string | null
  readonly fetchSite: string | null
  readonly authorization: string | null
  readonly cookie: string | null
}

export type OriginRule = (arrival: Arrival) => WbError | undefined

const anyHostPaths: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/version'])
const safeMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE'])

/**
 * The rule that keeps web pages out: which `Host` and which `Origin` a request may carry.
 *
 * `Host` is checked whatever credentials come with it, as a page whose name was rebound to this address is of one
 * origin with the runtime and may send any header. The origin of a change is checked unless a bearer token is sent,
 * which no page can do across origins, as no CORS answer is ever given.
 *
 * @returns why the request is refused, or undefined
 * @see security decision 3
 */
export function originRule(rules: OriginRules): OriginRule {
  const hosts = new Set(
    [
      rules.machineName,
      ...rules.allowedHosts,
      ...(rules.publicOrigin ? [new URL(rules.publicOrigin).host] : []),
    ].map(nameOf),
  )
  const origins = new Set(
    [...(rules.publicOrigin ? [rules.publicOrigin] : []), ...rules.allowedOrigins].map(originOf),
  )
  const hostMatters = rules.loopback || rules.anonymousPasses
  let lastOwnHost: string | null = null

  function isOwnHost(host: string | null): boolean {
    if (host === null) return false
    if (host === lastOwnHost) return true
    const name = nameOf(host)
    if (!isOwnName(name, rules.loopback) && !hosts.has(name)) return false
    lastOwnHost = host
    return true
  }

  return arrival => {
    if (hostMatters && !isOwnHost(arrival.host) && !anyHostPaths.has(arrival.path))
      return refusedHost(arrival.host)
    if (safeMethods.has(arrival.method) || isBearer(arrival.authorization)) return undefined
    return isOwnPage(arrival, origins) ? undefined : refusedOrigin(arrival)
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

function isBearer(authorization: string | null): boolean {
  return authorization !== null && /^bearer\s/i.test(authorization)
}

function isOwnPage(arrival: Arrival, origins: ReadonlySet<string>): boolean {
  if (arrival.origin !== null) {
    const origin = originOf(arrival.origin)
    return origin !== '' && (origins.has(origin) || origin === ownOrigin(arrival))
  }
  if (arrival.fetchSite !== null) return arrival.fetchSite === 'same-origin' || arrival.fetchSite === 'none'
  return arrival.cookie === null
}

function ownOrigin(arrival: Arrival): string {
  return originOf(`${arrival.encrypted ? 'https' : 'http'}://${arrival.host ?? ''}`)
}

/** The origin without a default port; empty when the text is none, which `null` is not either. */
function originOf(text: string): string {
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

function refusedOrigin({ origin }: Arrival): WbError {
  const known = originOf(origin ?? '')
  return new WbError('forbidden_origin', 'a change was asked for by a page of another origin', {
    hint: known
      ? `To let that page in, write runtime.allowedOrigins: ["${known}"] in the configuration.`
      : 'Send an API key as a bearer token, or no Origin and no cookie.',
  })
}

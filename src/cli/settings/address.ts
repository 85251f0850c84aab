import { isLoopback, isUnencryptedRemote } from '../../base/loopback.ts'
import { speaksTlsCode, Unreachable } from '../../client/unreachable.ts'
import { WbError } from '../../contract/errors.ts'
import { UsageError } from '../faults.ts'

/** Who named an address: a flag or argument, the environment, or what is stored. */
export type AddressFrom = '--url' | 'WB_URL' | 'profile'

/** Another address than the one that was named, and what the same command needs besides to go there. */
export interface Meant {
  readonly url: string
  readonly flag?: '--insecure-http'
}

/** An address that leads to no runtime, or to which nothing secret may be sent. */
export class WrongAddress extends UsageError {
  /** @param meant  addresses that would do, the best one last */
  constructor(
    message: string,
    readonly address: string,
    readonly from: AddressFrom | undefined,
    readonly meant: readonly Meant[],
    next: readonly string[] = [],
  ) {
    super(message, next)
  }
}

/** What was probably meant by an address without a scheme. */
function likely(address: string): string {
  const [, host] = /^([\w-]+(?:\.[\w-]+)*)(?::\d+)?$/.exec(address) ?? []
  if (host !== undefined && isLoopback(host)) return `http://${address}`
  return host?.includes('.') ? `https://${address}` : 'http://127.0.0.1:8787'
}

/**
 * The address of a runtime, without slashes at its end.
 *
 * @param name  what gives it
 * @throws WrongAddress  it is none, or holds a credential
 */
export function runtimeAddress(address: string, name: '--url' | 'WB_URL' | 'URL'): string {
  const from = name === 'URL' ? '--url' : name
  const wrong = (fact: string, url: string) => {
    const fallback = name === 'WB_URL' ? `WB_URL=${url}` : `--url ${url}`
    return new WrongAddress(`${name} ${fact}`, address, from, [{ url }], [fallback])
  }
  const url = URL.canParse(address) ? new URL(address) : undefined
  if (!url || !/^https?:$/.test(url.protocol))
    throw wrong(`is "${address}", which is not an http(s) address`, likely(address))
  const plain = withoutEnd(url.origin + url.pathname)
  if (url.search || url.hash) throw wrong('has more than a runtime\'s address has: no "?" and no "#"', plain)
  if (url.username || url.password)
    throw wrong('holds a user name or password; a key goes into WB_API_KEY', plain)
  return plain
}

/** An address as it is compared and kept. */
export function withoutEnd(address: string): string {
  return address.replace(/\/+$/, '')
}

/**
 * @param what  a credential, in words
 * @param to    where it would go, and who named that
 * @param isBound  it belongs to this address and to no other
 * @throws WrongAddress  it would leave the machine unencrypted
 * @see docs/security.md#rule-15
 */
export function refuseClearText(
  what: string,
  { url, urlFrom }: { url: string; urlFrom: AddressFrom | undefined },
  { isBound = false } = {},
): void {
  const target = new URL(url)
  if (!isUnencryptedRemote(target)) return
  const encrypted = isBound ? [] : [{ url: url.replace(/^http:/, 'https:') }]
  throw new WrongAddress(
    `${what} would travel unencrypted to ${target.origin}`,
    url,
    urlFrom,
    [{ url, flag: '--insecure-http' }, ...encrypted],
    ['use https://, or add --insecure-http if you trust every network on the way'],
  )
}

/** What Node says where it begins TLS and hears something else. */
const notTls = ['ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_PACKET_LENGTH_TOO_LONG']

/** Paths at which a runtime answers; what stands before them may be a prefix of a proxy. */
const ownPath = /\/(?:docs|api|auth)(?:\/.*)?$/

/** The address that was probably meant, where what came of another shows it; undefined where nothing does. */
export function meantInstead(url: string, error: unknown): Meant | undefined {
  const { origin, hostname, pathname } = new URL(url)
  if (error instanceof Unreachable && codeOf(error.cause) === speaksTlsCode)
    return { url: url.replace(/^http:/, 'https:') }
  if (error instanceof Unreachable && notTls.includes(codeOf(error.cause))) {
    const plain = url.replace(/^https:/, 'http:')
    return { url: plain, ...(!isLoopback(hostname) && { flag: '--insecure-http' }) }
  }
  if (pathname === '/' || !isNoRuntime(error)) return undefined
  return { url: ownPath.test(pathname) ? url.replace(ownPath, '') : origin }
}

/** Something answers there, and has no runtime's routes. */
function isNoRuntime(error: unknown): boolean {
  if (error instanceof Unreachable) return error.cause === undefined
  return error instanceof WbError && error.code === 'not_found' && error.facts.wireStatus === 404
}

function codeOf(cause: unknown): string {
  return cause instanceof Error && 'code' in cause ? String(cause.code) : ''
}

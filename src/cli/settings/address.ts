import { isLoopback, isUnencryptedRemote } from '../../base/loopback.ts'
import { speaksTlsCode, Unreachable } from '../../client/unreachable.ts'
import { WbError } from '../../contract/errors.ts'
import { UsageError } from '../errors.ts'

/** Source of an address. `profile` is a stored one. */
export type AddressSource = '--url' | 'WB_URL' | 'profile'

/** An address to suggest, and a flag that it requires. */
export interface SuggestedAddress {
  readonly url: string
  readonly flag?: '--insecure-http'
}

/** An invalid address of a runtime, or one to which secrets must not be sent. */
export class WrongAddress extends UsageError {
  /** @param suggestions  addresses that would do, the best one last */
  constructor(
    message: string,
    readonly address: string,
    readonly from: AddressSource | undefined,
    readonly suggestions: readonly SuggestedAddress[],
    next: readonly string[] = [],
  ) {
    super(message, next)
  }
}

/** Suggests an address for one without a scheme. */
function suggestScheme(address: string): string {
  const [, host] = /^([\w-]+(?:\.[\w-]+)*)(?::\d+)?$/.exec(address) ?? []
  if (host !== undefined && isLoopback(host)) return `http://${address}`
  return host?.includes('.') ? `https://${address}` : 'http://127.0.0.1:8787'
}

/**
 * Parses the address of a runtime, and removes trailing slashes.
 *
 * @param name  source of the address, for messages
 * @throws WrongAddress  it is not an http(s) address, or contains a credential
 */
export function parseRuntimeAddress(address: string, name: '--url' | 'WB_URL' | 'URL'): string {
  const from = name === 'URL' ? '--url' : name
  const wrongAddress = (fact: string, url: string) => {
    const fallback = name === 'WB_URL' ? `WB_URL=${url}` : `--url ${url}`
    return new WrongAddress(`${name} ${fact}`, address, from, [{ url }], [fallback])
  }
  const url = URL.canParse(address) ? new URL(address) : undefined
  if (!url || !/^https?:$/.test(url.protocol))
    throw wrongAddress(`is "${address}", which is not an http(s) address`, suggestScheme(address))
  const plain = trimTrailingSlashes(url.origin + url.pathname)
  if (url.search || url.hash) throw wrongAddress('must not contain "?" or "#"', plain)
  if (url.username || url.password)
    throw wrongAddress('contains a user name or password; set WB_API_KEY instead', plain)
  return plain
}

/** Removes trailing slashes. */
export function trimTrailingSlashes(address: string): string {
  return address.replace(/\/+$/, '')
}

/**
 * Checks that a credential is not sent unencrypted to another machine.
 *
 * @param what     credential, for messages
 * @param to       target, and the source of its address
 * @param isBound  true if the credential belongs to this address only
 * @throws WrongAddress  the connection is not encrypted
 * @see docs/security.md#rule-15
 */
export function requireEncryption(
  what: string,
  { url, urlFrom }: { url: string; urlFrom: AddressSource | undefined },
  { isBound = false } = {},
): void {
  const target = new URL(url)
  if (!isUnencryptedRemote(target)) return
  const encrypted = isBound ? [] : [{ url: url.replace(/^http:/, 'https:') }]
  throw new WrongAddress(
    `${what} would be sent unencrypted to ${target.origin}`,
    url,
    urlFrom,
    [{ url, flag: '--insecure-http' }, ...encrypted],
    ['use https://, or add --insecure-http if you trust the network'],
  )
}

/** Error codes of Node when the server does not use TLS. */
const nonTlsErrorCodes = ['ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_PACKET_LENGTH_TOO_LONG']

/** Paths of a runtime's routes. The part before may be a prefix of a proxy. */
const runtimePath = /\/(?:docs|api|auth)(?:\/.*)?$/

/** Suggests another address based on an error; undefined if nothing suggests one. */
export function suggestAddress(url: string, error: unknown): SuggestedAddress | undefined {
  const { origin, hostname, pathname } = new URL(url)
  if (error instanceof Unreachable && errorCodeOfCause(error.cause) === speaksTlsCode)
    return { url: url.replace(/^http:/, 'https:') }
  if (error instanceof Unreachable && nonTlsErrorCodes.includes(errorCodeOfCause(error.cause))) {
    const plain = url.replace(/^https:/, 'http:')
    return { url: plain, ...(!isLoopback(hostname) && { flag: '--insecure-http' }) }
  }
  if (pathname === '/' || !isNotARuntime(error)) return undefined
  return { url: runtimePath.test(pathname) ? url.replace(runtimePath, '') : origin }
}

/** Returns true if the server at the address is not a runtime. */
function isNotARuntime(error: unknown): boolean {
  if (error instanceof Unreachable) return error.cause === undefined
  return error instanceof WbError && error.code === 'not_found' && error.facts.wireStatus === 404
}

function errorCodeOfCause(cause: unknown): string {
  return cause instanceof Error && 'code' in cause ? String(cause.code) : ''
}

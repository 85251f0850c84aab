import { isLoopback, isUnencryptedRemote } from '../../base/loopback.ts'
import { speaksTlsCode, Unreachable } from '../../client/unreachable.ts'
import { WbError } from '../../contract/errors.ts'
import { UsageError } from '../errors.ts'

/** Source of a runtime's address. */
export type AddressSource = '--url' | 'WB_URL' | 'profile'

/** An address to suggest, and the flag that it requires. */
export interface SuggestedAddress {
  readonly url: string
  readonly flag?: '--insecure-http'
}

/** Error for an invalid address of a runtime, or an address to which a credential must not be sent. */
export class InvalidAddress extends UsageError {
  /** @param suggestions  addresses that the user probably meant, the most likely one last */
  constructor(
    message: string,
    readonly address: string,
    readonly source: AddressSource | undefined,
    readonly suggestions: readonly SuggestedAddress[],
    next: readonly string[] = [],
  ) {
    super(message, next)
  }
}

/** Returns an address to suggest for an invalid one. If only the scheme is missing, adds it. */
function suggestScheme(address: string): string {
  const [, host] = /^([\w-]+(?:\.[\w-]+)*)(?::\d+)?$/.exec(address) ?? []
  if (host !== undefined && isLoopback(host)) return `http://${address}`
  return host?.includes('.') ? `https://${address}` : 'http://127.0.0.1:8787'
}

/**
 * Parses the address of a runtime, and removes trailing slashes.
 *
 * @param name  source of the address, for messages
 * @throws InvalidAddress  it is not an HTTP(S) address, or contains a query, a fragment or a credential
 */
export function parseRuntimeAddress(address: string, name: '--url' | 'WB_URL' | 'URL'): string {
  const source = name === 'URL' ? '--url' : name
  const invalidAddress = (problem: string, url: string) => {
    const fallback = name === 'WB_URL' ? `WB_URL=${url}` : `--url ${url}`
    return new InvalidAddress(`${name} ${problem}`, address, source, [{ url }], [fallback])
  }
  const url = URL.canParse(address) ? new URL(address) : undefined
  if (!url || !/^https?:$/.test(url.protocol))
    throw invalidAddress(`is "${address}", which is not an http(s) address`, suggestScheme(address))
  const cleanAddress = trimTrailingSlashes(url.origin + url.pathname)
  if (url.search || url.hash) throw invalidAddress('must not contain "?" or "#"', cleanAddress)
  if (url.username || url.password)
    throw invalidAddress('contains a user name or password; set WB_API_KEY instead', cleanAddress)
  return cleanAddress
}

export function trimTrailingSlashes(address: string): string {
  return address.replace(/\/+$/, '')
}

/**
 * Checks that a credential would not be sent unencrypted to another machine.
 *
 * @param credential       description of the credential, for messages
 * @param target           address of the runtime, and its source
 * @param options.isBound  true if the credential may be sent to this address only, so that `https:` is not suggested
 * @throws InvalidAddress  the connection is not encrypted
 * @see docs/security.md#rule-15
 */
export function requireEncryption(
  credential: string,
  { url, urlSource }: { url: string; urlSource: AddressSource | undefined },
  { isBound = false } = {},
): void {
  const target = new URL(url)
  if (!isUnencryptedRemote(target)) return
  const httpsSuggestion = isBound ? [] : [{ url: url.replace(/^http:/, 'https:') }]
  throw new InvalidAddress(
    `${credential} would be sent unencrypted to ${target.origin}`,
    url,
    urlSource,
    [{ url, flag: '--insecure-http' }, ...httpsSuggestion],
    ['use https://, or add --insecure-http if you trust the network'],
  )
}

/** Error codes of Node.js for a server that does not use TLS. */
const nonTlsErrorCodes = ['ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_PACKET_LENGTH_TOO_LONG']

/** Path of a runtime route. It can follow the path prefix of a proxy. */
const runtimePath = /\/(?:docs|api|auth)(?:\/.*)?$/

/** Returns the address that the user probably meant, based on the error; undefined if the error gives no indication. */
export function suggestAddress(url: string, error: unknown): SuggestedAddress | undefined {
  const { origin, hostname, pathname } = new URL(url)
  if (error instanceof Unreachable && errorCodeOfCause(error.cause) === speaksTlsCode)
    return { url: url.replace(/^http:/, 'https:') }
  if (error instanceof Unreachable && nonTlsErrorCodes.includes(errorCodeOfCause(error.cause))) {
    const httpUrl = url.replace(/^https:/, 'http:')
    return { url: httpUrl, ...(!isLoopback(hostname) && { flag: '--insecure-http' }) }
  }
  if (pathname === '/' || !isNotARuntime(error)) return undefined
  return { url: runtimePath.test(pathname) ? url.replace(runtimePath, '') : origin }
}

/** Returns true if the error means that the server at the address is not a runtime. */
function isNotARuntime(error: unknown): boolean {
  if (error instanceof Unreachable) return error.cause === undefined
  return error instanceof WbError && error.code === 'not_found' && error.facts.wireStatus === 404
}

function errorCodeOfCause(cause: unknown): string {
  return cause instanceof Error && 'code' in cause ? String(cause.code) : ''
}

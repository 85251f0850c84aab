import { isIP } from 'node:net'
import { z } from 'zod'
import { isUnencryptedRemote } from '../base/loopback.ts'
import { secretRef } from '../contract/fields.ts'

/** Returns a schema for a map of keys. If the map is absent or empty, all keys have their defaults. */
export function block<S extends z.ZodRawShape>(shape: S) {
  return z.preprocess(value => value ?? {}, z.strictObject(shape))
}

/** Returns a schema for an integer. Also accepts it as a string, because a placeholder expands to a string. */
export function integer(min: number, max: number) {
  return z.preprocess(parseNumber, z.int().min(min).max(max))
}

/** Schema for true or false. Also accepts them as strings, because a placeholder expands to a string. */
export const configFlag = z.preprocess(parseBoolean, z.boolean())

function parseNumber(value: unknown): unknown {
  return typeof value === 'string' && /^-?\d{1,15}$/.test(value) ? Number(value) : value
}

function parseBoolean(value: unknown): unknown {
  if (value === 'true') return true
  return value === 'false' ? false : value
}

export const nonEmptyString = z.string().min(1, 'must not be empty')

/** URL without a user name and password, because they would be secrets in plain text. */
export const webUrl = z.string().refine(isWebUrl, 'must be an http(s) URL without user information')

export function isWebUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const url = new URL(text)
  return /^https?:$/.test(url.protocol) && url.hostname !== '' && url.username === '' && url.password === ''
}

/** URL whose responses cannot be changed in transit: an https URL, or an http URL of this machine. */
export const safeUrl = webUrl.refine(
  text => !isWebUrl(text) || !isUnencryptedRemote(new URL(text)),
  'must be an https URL; http is accepted for this machine only',
)

/**
 * Issuer identifier of an identity provider.
 *
 * @see OpenID Connect Core 1.2: no query, no fragment
 */
export const issuerUrl = safeUrl.refine(
  text => !isWebUrl(text) || !/[?#]/.test(text),
  'must be a URL without query and fragment, exactly as the provider writes it',
)

/** Secret reference that the runtime resolves at startup. */
export const runtimeSecretRef = secretRef.refine(
  text => !text.startsWith('astra-cli:'),
  'must be a secret reference: env:NAME or file:/absolute/path',
)

/** Returns true for a path that a URL parser leaves unchanged: no `//`, no `\\`, no `..`. */
function isPlainPath(text: string): boolean {
  const base = 'http://origin.invalid'
  return /^\/(?!\/)/.test(text) && URL.canParse(text, base) && new URL(text, base).href === base + text
}

/** Path on this origin, with or without a query. */
export const localPath = z.string().refine(isPlainPath, 'must be a path on this origin, such as /')

/**
 * Redirect URI for the identity provider.
 *
 * @see RFC 6749 3.1.2: no fragment
 */
export const redirectUri = z
  .string()
  .refine(
    text => !/[?#]/.test(text) && (isPlainPath(text) || (isWebUrl(text) && new URL(text).href === text)),
    'must be a path such as /auth/callback, or a whole http(s) URL, without query and fragment',
  )

/** @see RFC 6749 3.3 */
export const oauthScope = z
  .string()
  .regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, 'must be one scope, without spaces; write several as a list')

const cookieNameCharsMax = 64
/**
 * Name prefixes for which browsers enforce additional rules.
 *
 * @see RFC 6265bis 4.1.3
 */
const cookiePrefixes = ['__Host-', '__Secure-']

/** Cookie name. A prefix with different capitalization is rejected, because browsers ignore the case of prefixes. */
export const cookieName = z
  .string()
  .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, 'must be a cookie name: letters, digits, - and _')
  .max(cookieNameCharsMax, `must have at most ${cookieNameCharsMax} characters`)
  .refine(
    name => hasCookiePrefix(name) || !cookiePrefixes.some(prefix => hasNamePrefix(name, prefix)),
    `must spell the prefix exactly: ${cookiePrefixes.join(' or ')}`,
  )

/** Returns true if browsers accept a cookie of this name over https only. */
export function hasCookiePrefix(name: string): boolean {
  return cookiePrefixes.some(prefix => name.startsWith(prefix))
}

function hasNamePrefix(name: string, prefix: string): boolean {
  return name.toLowerCase().startsWith(prefix.toLowerCase())
}

export const publicOrigin = webUrl.refine(
  text => URL.canParse(text) && `${new URL(text).origin}/` === new URL(text).href,
  'must be an origin: scheme, host and port, no path',
)

export const hostName = z
  .string()
  .regex(/^(?!-)[A-Za-z0-9_.-]+$|^\[[0-9A-Fa-f:.]+\]$/, 'must be a host name or an IP address')

/** IP address or CIDR, such as `10.1.2.3` or `fd00::/8`. */
export const ipNetwork = z.string().refine(isNetwork, 'must be an IP address or a CIDR')

function isNetwork(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128))
}

/** Allowed endpoint: a URL, a host with or without a port, or a network. */
export const allowedEndpoint = z
  .string()
  .refine(
    text =>
      isWebUrl(text) ||
      isNetwork(text) ||
      /^[A-Za-z0-9_.-]+(?::\d{1,5})?$|^\[[0-9A-Fa-f:.]+\](?::\d{1,5})?$/.test(text),
    'must be a URL, a host with or without a port, an IP address or a CIDR',
  )

export const headerName = z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, 'must be a header name')

export const variableName = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be the name of a variable')

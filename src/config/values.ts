import { isIP } from 'node:net'
import { z } from 'zod'

/** A map of keys; left out or empty, every key takes its default. */
export function block<S extends z.ZodRawShape>(shape: S) {
  return z.preprocess(value => value ?? {}, z.strictObject(shape))
}

/** A whole number, also as the text that a placeholder expands to. */
export function integer(min: number, max: number) {
  return z.preprocess(numberOf, z.int().min(min).max(max))
}

/** True or false, also as the text that a placeholder expands to. */
export const flag = z.preprocess(booleanOf, z.boolean())

function numberOf(value: unknown): unknown {
  return typeof value === 'string' && /^-?\d{1,15}$/.test(value) ? Number(value) : value
}

function booleanOf(value: unknown): unknown {
  if (value === 'true') return true
  return value === 'false' ? false : value
}

export const filled = z.string().min(1, 'must not be empty')

/** An address without user information, which would be a secret written out. */
export const webUrl = z.string().refine(isWebUrl, 'must be an http(s) URL without user information')

export function isWebUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const url = new URL(text)
  return /^https?:$/.test(url.protocol) && url.hostname !== '' && url.username === '' && url.password === ''
}

export const origin = webUrl.refine(
  text => URL.canParse(text) && `${new URL(text).origin}/` === new URL(text).href,
  'must be an origin: scheme, host and port, no path',
)

export const hostName = z
  .string()
  .regex(/^(?!-)[A-Za-z0-9_.-]+$|^\[[0-9A-Fa-f:.]+\]$/, 'must be a host name or an IP address')

/** `10.1.2.3`, `fd00::/8`. */
export const network = z.string().refine(isNetwork, 'must be an IP address or a CIDR')

function isNetwork(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128))
}

/** What an endpoint may be named by: its URL, its host with or without a port, or a network. */
export const endpoint = z
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

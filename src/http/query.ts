import { isSafeText } from '../base/request-json.ts'
import { WbError } from '../contract/errors.ts'

const noParams: Record<string, string> = Object.freeze(Object.create(null))

/**
 * Parses the parameters of a query string.
 *
 * @param search  query string that starts with a question mark, or an empty string
 * @throws validation_error  when a percent-encoding is invalid, a value contains a NUL character, or a name is
 *   repeated
 */
export function parseQuery(search: string): Record<string, string> {
  if (search.length < 2) return noParams
  const values: Record<string, string> = Object.create(null)
  for (const pair of search.slice(1).split('&')) {
    if (pair === '') continue
    const end = pair.indexOf('=')
    const name = decodeText(end < 0 ? pair : pair.slice(0, end), 'the query')
    if (name in values) throw new WbError('validation_error', `${name}: was sent more than once`)
    values[name] = decodeText(end < 0 ? '' : pair.slice(end + 1), name)
  }
  return values
}

/**
 * Decodes the path parameters.
 *
 * @throws validation_error  when a percent-encoding is invalid, or a value contains a NUL character
 */
export function decodeParams(raw: Readonly<Record<string, string>> | undefined): Record<string, string> {
  if (!raw) return noParams
  const values: Record<string, string> = Object.create(null)
  for (const name in raw) values[name] = decodePart(raw[name]!, name)
  return values
}

/** @throws validation_error  when the path contains an invalid percent-encoding or a NUL character */
export function checkPath(path: string): void {
  if (path.includes('%')) decodePart(path, 'the path')
}

function decodeText(text: string, location: string): string {
  return decodePart(text.includes('+') ? text.replaceAll('+', ' ') : text, location)
}

function decodePart(text: string, location: string): string {
  if (!text.includes('%')) return text
  const decoded = percentDecode(text, location)
  if (!isSafeText(decoded))
    throw new WbError('validation_error', `${location}: must not contain NUL characters`)
  return decoded
}

function percentDecode(text: string, location: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new WbError('validation_error', `${location}: contains an invalid percent-encoding`)
  }
}

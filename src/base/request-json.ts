import { isUtf8 } from 'node:buffer'
import { WbError } from '../contract/errors.ts'
import { describeJsonExcess } from './describe-json-excess.ts'

/** Matches JSON that may contain a NUL character, a lone surrogate, the key `__proto__` or a large exponent. */
const suspicious = /\\u(?:00|[dD][89a-fA-F])|__proto__|[eE]\+?\d{3}/
/** Minimum number of digits of an infinite number without an exponent. */
const INFINITE_DIGITS = 309
const unsafeCharacters = /[\0\p{Surrogate}]/u

/**
 * Parses the JSON of a request, and rejects values that other code cannot process safely.
 *
 * Depth and size are counted in the bytes, before the parser recurses. Values are checked only if the JSON matches
 * `suspicious` or contains a very long number.
 *
 * @throws validation_error  when the bytes are not UTF-8 or not JSON, the value is nested deeper than
 *   `limits.jsonDepth`, is larger than `limits.jsonNodes`, or contains a NUL character, a lone surrogate,
 *   an infinite number, or a `__proto__` key; the message contains the path of the value
 */
export function parseRequestJson(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw new WbError('validation_error', 'the body is not valid UTF-8')
  const excess = describeJsonExcess(bytes)
  if (excess) throw new WbError('validation_error', `the body is ${excess}`)
  const text = withoutByteOrderMark(bytes.toString('utf8'))
  const value = parseOrThrow(text)
  if (suspicious.test(text) || hasLongNumber(text)) requireSafe(value, '')
  return value
}

/**
 * Returns true if a text contains `INFINITE_DIGITS` digits in a row. Tests only every `INFINITE_DIGITS`-th character,
 * because each such row contains one of them. A regular expression would take longer than parsing the numbers of a vector.
 */
function hasLongNumber(text: string): boolean {
  for (let at = INFINITE_DIGITS - 1; at < text.length; at += INFINITE_DIGITS) {
    if (!isDigit(text, at)) continue
    let [first, last] = [at, at]
    while (isDigit(text, first - 1)) first--
    while (isDigit(text, last + 1)) last++
    if (last - first + 1 >= INFINITE_DIGITS) return true
  }
  return false
}

function isDigit(text: string, at: number): boolean {
  const code = text.charCodeAt(at)
  return code >= 0x30 && code <= 0x39
}

/**
 * Returns true if a string has no NUL characters and no lone surrogates. Strings from paths, queries and forms must
 * satisfy this, too.
 */
export function isSafeText(text: string): boolean {
  return !unsafeCharacters.test(text)
}

function withoutByteOrderMark(text: string): string {
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
}

function parseOrThrow(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new WbError('validation_error', 'the body is not valid JSON')
  }
}

function requireSafe(value: unknown, path: string): void {
  if (typeof value === 'string') {
    if (unsafeCharacters.test(value)) throwInvalid(path, 'must not contain NUL characters or lone surrogates')
  } else if (typeof value === 'number') {
    if (!Number.isFinite(value)) throwInvalid(path, 'must be a finite number')
  } else if (Array.isArray(value)) {
    value.forEach((entry, index) => {
      requireSafe(entry, joinPath(path, String(index)))
    })
  } else if (typeof value === 'object' && value !== null) {
    for (const key of Object.keys(value)) {
      if (key === '__proto__') throwInvalid(joinPath(path, key), 'is not allowed as a key')
      if (unsafeCharacters.test(key)) throwInvalid(path, 'has a key with a NUL character or a lone surrogate')
      requireSafe((value as Record<string, unknown>)[key], joinPath(path, key))
    }
  }
}

function joinPath(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}

function throwInvalid(path: string, reason: string): never {
  throw new WbError('validation_error', path === '' ? `the body ${reason}` : `${path}: ${reason}`)
}

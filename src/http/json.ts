import { isUtf8 } from 'node:buffer'
import { jsonExcess } from '../base/json-bounds.ts'
import { WbError } from '../contract/errors.ts'

/**
 * What may stand for a NUL, half a surrogate pair, the name `__proto__` or a number without end; a text without it
 * needs no walk.
 */
const suspicious = /\\u(?:00|[dD][89a-fA-F])|__proto__|[eE]\+?\d{3}|\d{309}/
const unfit = /[\0\p{Surrogate}]/u

/**
 * Returns the value of a JSON text, with nothing in it that is dangerous to the code that handles it later.
 *
 * Depth and size are counted on the bytes, before the parser recurses; the value is walked only when the text holds an
 * escape that could spell what is refused.
 *
 * @throws validation_error  not UTF-8, not JSON, nested deeper than `limits.jsonDepth`, larger than `limits.jsonNodes`, or
 *   holds a NUL character, a lone surrogate, an infinite number, or a `__proto__` key; the message names the place
 */
export function parseJson(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw new WbError('validation_error', 'the body is not valid UTF-8')
  const excess = jsonExcess(bytes)
  if (excess) throw new WbError('validation_error', `the body is ${excess}`)
  const text = withoutMark(bytes.toString('utf8'))
  const value = parse(text)
  if (suspicious.test(text)) refuseUnfit(value, '')
  return value
}

/** A value of a path or a query, which may hold what a JSON text may. */
export function isFitText(text: string): boolean {
  return !unfit.test(text)
}

function withoutMark(text: string): string {
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new WbError('validation_error', 'the body is not valid JSON')
  }
}

function refuseUnfit(value: unknown, path: string): void {
  if (typeof value === 'string') {
    if (unfit.test(value)) refuse(path, 'must not contain NUL characters or lone surrogates')
  } else if (typeof value === 'number') {
    if (!Number.isFinite(value)) refuse(path, 'must be a finite number')
  } else if (Array.isArray(value)) {
    value.forEach((entry, index) => {
      refuseUnfit(entry, join(path, String(index)))
    })
  } else if (typeof value === 'object' && value !== null) {
    for (const key of Object.keys(value)) {
      if (key === '__proto__') refuse(join(path, key), 'is not allowed as a key')
      if (unfit.test(key)) refuse(path, 'has a key with a NUL character or a lone surrogate')
      refuseUnfit((value as Record<string, unknown>)[key], join(path, key))
    }
  }
}

function join(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}

function refuse(path: string, reason: string): never {
  throw new WbError('validation_error', path === '' ? `the body ${reason}` : `${path}: ${reason}`)
}

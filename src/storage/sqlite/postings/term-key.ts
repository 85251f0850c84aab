import { createHash } from 'node:crypto'

/** Maximum length of a stored term in bytes of UTF-8. */
export const TERM_BYTES_MAX = 200
/** Bytes of a longer term that are stored as they are, before the hash of the whole term. */
const TERM_BEGINNING_BYTES = 160
const HASH_BYTES = 20

/**
 * Returns the stored form of a term: a string with one character from U+0000 to U+00FF per byte of UTF-8. Its order, as
 * a string, is the order of the bytes, which SQLite uses too.
 *
 * A term of more than {@link TERM_BYTES_MAX} bytes is stored as its beginning and a hash, so that it is found by the
 * whole term only. Lone surrogates count as U+FFFD.
 */
export function termKey(term: string): string {
  const key = isAscii(term) ? term : Buffer.from(term, 'utf8').toString('latin1')
  if (key.length <= TERM_BYTES_MAX) return key
  const hash = createHash('sha256')
    .update(key, 'latin1')
    .digest('hex')
    .slice(0, 2 * HASH_BYTES)
  return beginningOf(key) + hash
}

/** Returns the term of a stored form, as it is shown and as it can be searched for. */
export function termOfKey(key: string): string {
  return isAscii(key) ? key : Buffer.from(key, 'latin1').toString('utf8')
}

/** Returns the stored form of the beginning of terms, for a search of all terms with that beginning. */
export function prefixKey(prefix: string): string {
  const key = isAscii(prefix) ? prefix : Buffer.from(prefix, 'utf8').toString('latin1')
  return key.length <= TERM_BYTES_MAX ? key : beginningOf(key)
}

/** Cuts before a character, so that the result is valid UTF-8. */
function beginningOf(key: string): string {
  let end = TERM_BEGINNING_BYTES
  while ((key.charCodeAt(end) & 0xc0) === 0x80) end--
  return key.slice(0, end)
}

function isAscii(text: string): boolean {
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) > 127) return false
  return true
}

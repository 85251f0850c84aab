import { createHash } from 'node:crypto'

/** Maximum length of a stored term in bytes of UTF-8. */
export const TERM_BYTES_MAX = 200
/** Maximum bytes of a longer term that are stored before the hash of the whole term. */
const TERM_PREFIX_BYTES_MAX = 160
const HASH_BYTES = 20

/**
 * Returns the stored form of a term: a string with one character from U+0000 to U+00FF per byte of UTF-8. Stored forms
 * have the same order as strings and as bytes in SQLite.
 *
 * A term of more than {@link TERM_BYTES_MAX} bytes is stored as a prefix and a hash, so only a search for the whole term
 * finds it. Lone surrogates count as U+FFFD.
 */
export function termKey(term: string): string {
  const key = isAscii(term) ? term : Buffer.from(term, 'utf8').toString('latin1')
  if (key.length <= TERM_BYTES_MAX) return key
  const hash = createHash('sha256')
    .update(key, 'latin1')
    .digest('hex')
    .slice(0, 2 * HASH_BYTES)
  return shortenKey(key) + hash
}

/** Returns the term of a stored form. Of a longer term, returns the prefix and the hash, which {@link termKey} accepts. */
export function termOfKey(key: string): string {
  return isAscii(key) ? key : Buffer.from(key, 'latin1').toString('utf8')
}

/** Returns the stored form of a prefix, to search for all terms that start with it. */
export function prefixKey(prefix: string): string {
  const key = isAscii(prefix) ? prefix : Buffer.from(prefix, 'utf8').toString('latin1')
  return key.length <= TERM_BYTES_MAX ? key : shortenKey(key)
}

/** Returns the first bytes of a key, without splitting a character. */
function shortenKey(key: string): string {
  let end = TERM_PREFIX_BYTES_MAX
  while ((key.charCodeAt(end) & 0xc0) === 0x80) end--
  return key.slice(0, end)
}

function isAscii(text: string): boolean {
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) > 127) return false
  return true
}

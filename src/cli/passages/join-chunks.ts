import { sha256 } from '../../base/id.ts'

/** Default overlap of the runtime's chunkers. @see docs/http.md#chunkers */
const defaultOverlapMax = 150
const defaultOverlapShare = 1 / 6

/** Maximum number of characters to hash in all attempts together, which takes about a second. */
const hashedCharsMax = 100_000_000

/** Text of joined chunks, with the offset of each chunk. */
export interface JoinedText {
  readonly text: string
  readonly starts: readonly number[]
}

/**
 * Joins slices of a text whose overlaps are unknown. If the text is repetitive, several overlaps are possible. This
 * function uses the longest possible overlap up to a limit. It chooses a limit with which the joined text has the given
 * hash. If no limit has this result, it chooses the most likely one.
 *
 * @param contentHash  SHA-256 of the text in hexadecimal; null if it is unknown, or the last slices are missing
 */
export function joinChunks(chunks: readonly string[], contentHash: string | null): JoinedText {
  const overlaps = chunks.map((chunk, at) => (at === 0 ? [] : overlapsOf(chunks[at - 1]!, chunk)))
  const likelyResult = joinWithLimit(likelyLimit(chunks, overlaps), chunks, overlaps)
  if (contentHash === null || sha256(likelyResult.text) === contentHash) return likelyResult
  const attemptsMax = Math.floor(hashedCharsMax / likelyResult.text.length)
  const limits = [0, ...[...new Set(overlaps.flat())].sort((a, b) => a - b)]
  for (const limit of limits.slice(0, attemptsMax)) {
    const candidate = joinWithLimit(limit, chunks, overlaps)
    if (sha256(candidate.text) === contentHash) return candidate
  }
  return likelyResult
}

/** Returns the longest unambiguous overlap, but at least the default of the runtime. */
function likelyLimit(chunks: readonly string[], overlaps: readonly (readonly number[])[]): number {
  const longest = chunks.reduce((length, chunk) => Math.max(length, chunk.length), 0)
  const defaultOverlap = Math.min(defaultOverlapMax, Math.floor(longest * defaultOverlapShare))
  return overlaps.reduce(
    (limit, lengths) => (lengths.length === 1 ? Math.max(limit, lengths[0]!) : limit),
    defaultOverlap,
  )
}

function joinWithLimit(
  limit: number,
  chunks: readonly string[],
  overlaps: readonly (readonly number[])[],
): JoinedText {
  const starts: number[] = []
  const parts: string[] = []
  let length = 0
  for (const [at, chunk] of chunks.entries()) {
    const overlap = overlaps[at]!.find(overlap => overlap <= limit) ?? 0
    starts.push(length - overlap)
    parts.push(chunk.slice(overlap))
    length += chunk.length - overlap
  }
  return { text: parts.join(''), starts }
}

/**
 * Returns the possible lengths of an overlap between the end of a text and the start of the next one, longest first.
 * An overlap is shorter than either text.
 *
 * @see Knuth, Morris, Pratt, "Fast pattern matching in strings", 1977
 */
export function overlapsOf(text: string, next: string): number[] {
  const longest = Math.min(text.length, next.length) - 1
  if (longest < 1) return []
  const head = next.slice(0, longest)
  const borders = bordersOf(head)
  const lengths: number[] = []
  for (
    let length = longestMatch(text.slice(-longest), head, borders);
    length > 0;
    length = borders[length - 1]!
  )
    lengths.push(length)
  return lengths
}

/** Returns, for each prefix of a text, the length of its longest proper prefix that is also a suffix. */
function bordersOf(text: string): number[] {
  const borders = [0]
  for (let at = 1, length = 0; at < text.length; at++) {
    length = extendMatch(length, text[at]!, text, borders)
    borders.push(length)
  }
  return borders
}

/** Returns the length of the longest prefix of `head` that is a suffix of `text`, which is not longer than `head`. */
function longestMatch(text: string, head: string, borders: readonly number[]): number {
  let length = 0
  for (let at = 0; at < text.length; at++) length = extendMatch(length, text[at]!, head, borders)
  return length
}

/** Extends a match with a prefix of `head` by one UTF-16 code unit, and returns the length of the longest match. */
function extendMatch(length: number, codeUnit: string, head: string, borders: readonly number[]): number {
  let matched = length
  while (matched > 0 && head[matched] !== codeUnit) matched = borders[matched - 1]!
  return head[matched] === codeUnit ? matched + 1 : 0
}

import { sha256 } from '../../base/id.ts'
import { overlapsOf } from '../../base/text-overlaps.ts'

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

import { createReadStream } from 'node:fs'
import { splitLines } from '../../base/split-lines.ts'
import type { IngestSelection } from './sources.ts'
import { isConvertible, isJsonLines, isMaybeText } from './text-types.ts'
import type { WalkedItem } from './walk.ts'

/** Bytes per read. The value is large, because the ingest runs at the same time and leaves little time for reads. */
const readBytes = 4 << 20

/**
 * Counts the documents and problems of a selection in advance, for a progress bar. Reads only `.jsonl` files.
 *
 * @returns undefined if the selection includes stdin, or the signal aborts
 */
export async function countDocuments(
  { stdin }: IngestSelection,
  files: AsyncIterable<WalkedItem>,
  signal: AbortSignal,
): Promise<number | undefined> {
  if (stdin) return undefined
  let count = 0
  for await (const item of files) {
    if (signal.aborted) return undefined
    if ('kind' in item) count += item.kind === 'failed' ? 1 : 0
    else if (isJsonLines(item.name)) count += await countLines(item.file, signal)
    else count += isMaybeText(item.name) || isConvertible(item.name) || item.isNamedByUser ? 1 : 0
  }
  return count
}

/** Counts the lines that are not empty. Returns 1 if the file cannot be read, because that is one problem. */
async function countLines(file: string, signal: AbortSignal): Promise<number> {
  let lines = 0
  try {
    const stream = createReadStream(file, { highWaterMark: readBytes, signal })
    // With a limit of 0 bytes, each line that is not empty is too long, and its value is undefined.
    for await (const line of splitLines(stream, { bytesMax: 0 })) lines += line ? 0 : 1
  } catch {
    return 1
  }
  return lines
}

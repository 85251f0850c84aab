import { createReadStream } from 'node:fs'
import { splitLines } from '../../base/split-lines.ts'
import type { Intake } from './sources.ts'
import { isJsonLines, isMaybeText } from './text-types.ts'
import type { WalkedItem } from './walk.ts'

/** Size of a read. It is large because the ingest, which runs at the same time, leaves little time for reads. */
const readBytes = 4 << 20

/**
 * Counts the documents and problems of an intake without reading the texts, for a progress bar.
 *
 * @returns undefined if the intake has to be read first, such as a stream
 */
export async function countDocuments(
  { stdin }: Intake,
  files: AsyncIterable<WalkedItem>,
  signal: AbortSignal,
): Promise<number | undefined> {
  if (stdin) return undefined
  let count = 0
  for await (const item of files) {
    if (signal.aborted) return undefined
    if ('kind' in item) count += item.kind === 'failed' ? 1 : 0
    else if (isJsonLines(item.name)) count += await countLines(item.file, signal)
    else count += isMaybeText(item.name) || item.isNamedByUser ? 1 : 0
  }
  return count
}

/** Returns 1 for a file that cannot be read, because it is reported as one problem. */
async function countLines(file: string, signal: AbortSignal): Promise<number> {
  let lines = 0
  try {
    const stream = createReadStream(file, { highWaterMark: readBytes, signal })
    for await (const line of splitLines(stream, { bytesMax: 0 })) lines += line ? 0 : 1
  } catch {
    return 1
  }
  return lines
}

import { createReadStream } from 'node:fs'
import { splitLines } from '../../base/split-lines.ts'
import type { Intake } from './sources.ts'
import { isJsonLines, isMaybeText } from './text-types.ts'
import type { WalkedItem } from './walk.ts'

/** Large, because ingesting leaves little time between reads. */
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
  let size = 0
  for await (const met of files) {
    if (signal.aborted) return undefined
    if ('kind' in met) size += met.kind === 'failed' ? 1 : 0
    else if (isJsonLines(met.name)) size += await countLines(met.file, signal)
    else size += isMaybeText(met.name) || met.isNamedByUser ? 1 : 0
  }
  return size
}

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

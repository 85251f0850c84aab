import { createReadStream } from 'node:fs'
import { splitLines } from '../../base/split-lines.ts'
import type { Intake } from './sources.ts'
import { holdsLines, mayBeText } from './text-types.ts'
import type { Met } from './walk.ts'

/** Large, because ingesting leaves little time between reads. */
const pieceBytes = 4 << 20

/**
 * Counts the documents and problems of an intake without reading the texts, for a progress bar.
 *
 * @returns undefined if the intake has to be read first, such as a stream
 */
export async function sizeOf(
  { stdin }: Intake,
  files: AsyncIterable<Met>,
  signal: AbortSignal,
): Promise<number | undefined> {
  if (stdin) return undefined
  let size = 0
  for await (const met of files) {
    if (signal.aborted) return undefined
    if ('kind' in met) size += met.kind === 'failed' ? 1 : 0
    else if (holdsLines(met.name)) size += await lineCount(met.file, signal)
    else size += mayBeText(met.name) || met.named ? 1 : 0
  }
  return size
}

async function lineCount(file: string, signal: AbortSignal): Promise<number> {
  let lines = 0
  try {
    const stream = createReadStream(file, { highWaterMark: pieceBytes, signal })
    for await (const line of splitLines(stream, { bytesMax: 0 })) lines += line ? 0 : 1
  } catch {
    return 1
  }
  return lines
}

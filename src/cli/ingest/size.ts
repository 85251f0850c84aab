import { createReadStream } from 'node:fs'
import { linesOf } from './lines.ts'
import type { Intake } from './sources.ts'
import { holdsLines, mayBeText } from './text-types.ts'
import { walk } from './walk.ts'

/** Large, as the work itself leaves little room between reads. */
const pieceBytes = 4 << 20

/**
 * How many documents and problems an intake will come to, told before the texts are read, so that a bar can be drawn;
 * undefined where only reading tells, as of a stream.
 */
export async function sizeOf(
  { paths, stdin, cwd, all }: Intake,
  signal: AbortSignal,
): Promise<number | undefined> {
  if (stdin) return undefined
  let size = 0
  for await (const met of walk(paths, { cwd, all })) {
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
    for await (const { bytes } of linesOf(stream, 0)) lines += bytes ? 0 : 1
  } catch {
    return 1
  }
  return lines
}

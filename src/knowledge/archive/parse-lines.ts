import { describeJsonExcess } from '../../base/describe-json-excess.ts'
import { parseRequestJson } from '../../base/request-json.ts'
import { ArchiveLine } from '../../contract/archives.ts'
import { damagedArchive } from './damaged-archive.ts'

/**
 * Parses lines of an exported file, with the limits of a request body for all of them together.
 *
 * @throws archive_damaged  with the position of the first invalid line
 */
export function parseArchiveLines(lines: readonly string[]): ArchiveLine[] {
  const excess = describeJsonExcess(Buffer.from(lines.join('\n')))
  if (excess) throw damagedArchive(0, `the lines are together ${excess}`)
  return lines.map((line, at) => {
    const result = ArchiveLine.safeParse(parseArchiveLine(line))
    if (!result.success) throw damagedArchive(at, 'a line is invalid')
    return result.data
  })
}

/** Parses the JSON of a line. Returns undefined if it is not valid in a request. */
export function parseArchiveLine(line: string): unknown {
  try {
    return parseRequestJson(Buffer.from(line))
  } catch {
    return undefined
  }
}

import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { chainHash, chainStart } from '../../base/chain-hash.ts'
import { isObject } from '../../base/is-object.ts'
import { parseJson } from '../../base/parse-json.ts'
import { splitLines } from '../../base/split-lines.ts'
import { WbError } from '../../contract/errors.ts'

/** Maximum length of a line, which fits into a request. */
const lineBytesMax = 45_000_000

/** Content of a verified file. */
export interface ArchiveSummary {
  readonly header: string
  readonly lines: number
  readonly documents: number
  readonly records: number
}

/**
 * Reads the lines of an exported file.
 *
 * @throws archive_damaged        the file is truncated or changed
 * @throws archive_not_supported  the file is not compressed
 */
export async function* readArchiveLines(path: string): AsyncGenerator<string> {
  const gunzip = createGunzip()
  // Errors of the file are thrown by the loop below.
  pipeline(createReadStream(path), gunzip, () => {})
  try {
    for await (const line of splitLines(gunzip, { bytesMax: lineBytesMax })) {
      if (!line) throw damagedFile('a line is too long')
      yield Buffer.from(line).toString('utf8')
    }
  } catch (error) {
    throw convertReadError(error)
  } finally {
    gunzip.destroy()
  }
}

/**
 * Reads a whole file, and checks its checksum.
 *
 * @throws archive_damaged, archive_not_supported
 */
export async function verifyArchive(path: string, signal: AbortSignal): Promise<ArchiveSummary> {
  let hash = chainStart
  let [lines, header] = [0, '']
  let end: Record<string, unknown> | undefined
  for await (const line of readArchiveLines(path)) {
    signal.throwIfAborted()
    if (end) throw damagedFile('there are lines after its end')
    if (lines === 0) header = line
    if (line.startsWith('{"end":')) {
      end = endOf(line)
      if (end?.sha256 !== hash) throw damagedFile('the checksum is wrong')
    }
    hash = chainHash(hash, line)
    lines++
  }
  if (!end) throw damagedFile('it is not complete')
  return { header, lines, documents: Number(end.documents), records: Number(end.records) }
}

function endOf(line: string): Record<string, unknown> | undefined {
  const value = parseJson(line)
  return isObject(value) && isObject(value.end) ? value.end : undefined
}

function damagedFile(problem: string, cause?: unknown): WbError {
  return new WbError('archive_damaged', `the file cannot be used: ${problem}`, {}, { cause })
}

function convertReadError(error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (code === 'Z_BUF_ERROR') return damagedFile('it is not complete', error)
  if (code === 'Z_DATA_ERROR' && error instanceof Error && error.message === 'incorrect header check')
    return new WbError(
      'archive_not_supported',
      'the file is not an exported knowledge base',
      {},
      { cause: error },
    )
  return code.startsWith('Z_') ? damagedFile('its content was changed', error) : error
}

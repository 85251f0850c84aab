import { isObject } from '../../base/is-object.ts'
import { splitLines } from '../../base/split-lines.ts'
import { limits } from '../../contract/limits.ts'
import type { FileToRead, IngestItem, TextSource } from './ingest-item.ts'
import { mediaTypeOf } from './text-types.ts'

/** Maximum size of a line in bytes: the longest text with every character escaped, plus its ID and title. */
const lineBytesMax = limits.ingestTextChars * 6 + 1_000_000
/** Number of invalid lines after which reading stops, because the file is probably not JSON Lines. */
const invalidLinesMax = 100
/** Maximum number of lines to inspect to detect the format. */
const linesInspectedMax = 20

type Scalar = string | number | boolean | null

/**
 * Yields the documents in a file in BEIR format: one JSON object per line with `_id`, `title` and `text`.
 * Each document has a different file name, so a changed line replaces only the document of this line.
 *
 * @see https://github.com/beir-cellar/beir/wiki/Load-your-custom-dataset
 */
export async function* beirDocuments(
  file: FileToRead,
  stream: AsyncIterable<Uint8Array>,
): AsyncGenerator<IngestItem> {
  let invalidLines = 0
  let lineNumber = 0
  for await (const bytes of splitLines(stream, { bytesMax: lineBytesMax })) {
    const item = parseLine(file, ++lineNumber, bytes)
    if (!item) continue
    yield item
    if (item.kind === 'failed' && ++invalidLines === invalidLinesMax) {
      const message = `stopped after ${invalidLinesMax} invalid lines; the file must have one JSON object per line`
      yield { kind: 'failed', problem: { path: file.path, code: 'extraction_failed', message } }
      return
    }
  }
}

/** Returns undefined for a blank line. */
function parseLine(
  file: FileToRead,
  lineNumber: number,
  bytes: Uint8Array | undefined,
): IngestItem | undefined {
  const path = `${file.path}:${lineNumber}`
  if (!bytes) return failedItem(path, 'payload_too_large', 'the line is too long')
  const fields = parseObject(bytes)
  if (fields === 'blank') return undefined
  if (fields === undefined)
    return failedItem(path, 'extraction_failed', 'the line is not a JSON object in UTF-8')
  const source = toSource(file, path, lineNumber, fields)
  if (!source)
    return { kind: 'skipped', path, category: 'lines without title and text', reason: 'nothing to search' }
  if (source.body.text.length > limits.ingestTextChars)
    return failedItem(
      path,
      'payload_too_large',
      `the text has more than ${limits.ingestTextChars} characters`,
    )
  return { kind: 'source', source }
}

function failedItem(path: string, code: string, message: string): IngestItem {
  return { kind: 'failed', problem: { path, code, message } }
}

function parseObject(bytes: Uint8Array): Record<string, unknown> | 'blank' | undefined {
  try {
    const line = new TextDecoder('utf-8', { fatal: true }).decode(bytes).trim()
    if (line === '') return 'blank'
    const value: unknown = JSON.parse(line)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

function toSource(
  file: FileToRead,
  path: string,
  lineNumber: number,
  fields: Record<string, unknown>,
): TextSource | undefined {
  const title = nonBlank(fields.title)
  const text = nonBlank(fields.text) ?? title
  if (text === undefined) return undefined
  const id = typeof fields._id === 'number' ? String(fields._id) : nonBlank(fields._id)
  const metadata = isObject(fields.metadata) ? (fields.metadata as Record<string, Scalar>) : {}
  return {
    path,
    body: {
      text,
      sourceDocId: id ?? null,
      sourceFilename: `${file.name}#${id ?? lineNumber}`,
      fileType: mediaTypeOf('line.txt'),
      metadata: title ? { ...metadata, title } : metadata,
    },
  }
}

/** Returns the value if it is a string that is not blank, otherwise undefined. */
function nonBlank(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value : undefined
}

/** Returns true if one of the first lines has a title or a text, and no line before it is too long. */
export async function isBeir(stream: AsyncIterable<Uint8Array>): Promise<boolean> {
  let lineCount = 0
  for await (const bytes of splitLines(stream, { bytesMax: lineBytesMax })) {
    if (!bytes) return false
    const fields = parseObject(bytes)
    if (isObject(fields) && (typeof fields.text === 'string' || typeof fields.title === 'string')) return true
    if (++lineCount >= linesInspectedMax) return false
  }
  return false
}

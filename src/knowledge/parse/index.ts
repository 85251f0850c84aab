import { readFile } from 'node:fs/promises'
import { WbError } from '../../contract/errors.ts'
import { limits } from '../../contract/limits.ts'
import type { ExtractedText, FileParser } from './parser.ts'
import { textParser } from './text.ts'

/** A file on disk, with the name and media type that its sender gave it. */
export interface SentFile {
  readonly name: string
  readonly type: string
  readonly path: string
}

/** Parsers in order of preference. */
const parsers: readonly FileParser[] = [textParser]

/** @throws unsupported_file_type  no parser reads this media type or extension */
function parserFor({ name, type }: Pick<SentFile, 'name' | 'type'>): FileParser {
  const found = parsers.find(parser => parser.takes(type) || parser.extensions.has(extensionOf(name)))
  if (found) return found
  throw new WbError(
    'unsupported_file_type',
    `'${name}' (${type}) has a format that this runtime does not read`,
  )
}

/** Returns true for a file that contains plain text. */
export function isTextLike(file: Pick<SentFile, 'name' | 'type'>): boolean {
  return textParser.takes(file.type) || textParser.extensions.has(extensionOf(file.name))
}

/**
 * Checks that an extracted text meets the rules for texts of a JSON ingest.
 *
 * @throws payload_too_large  it is too long
 * @throws extraction_failed  it contains NUL characters or lone surrogates
 */
export function requireText(extracted: ExtractedText): ExtractedText {
  const { text } = extracted
  const { ingestTextChars } = limits
  if (text.length > ingestTextChars)
    throw new WbError(
      'payload_too_large',
      `the text of the file is longer than ${ingestTextChars} characters`,
    )
  if (/[\0\p{Surrogate}]/u.test(text))
    throw new WbError('extraction_failed', 'the file contains NUL characters or lone surrogates', {
      hint: 'If it is text in UTF-16, convert it to UTF-8, for instance with iconv, and send it again.',
    })
  return extracted
}

/**
 * Extracts the text of a file with a built-in parser.
 *
 * @throws unsupported_file_type, extraction_failed, payload_too_large
 */
export async function extractNatively(file: SentFile): Promise<ExtractedText> {
  const parser = parserFor(file)
  const extracted = await parser.extract(await readFile(file.path))
  // Checked here, because returning the text may copy it between threads.
  return requireText({ text: extracted, parser: 'native', version: parser.version })
}

function extensionOf(name: string): string {
  return /\.([^./\\]+)$/.exec(name)?.[1]?.toLowerCase() ?? ''
}

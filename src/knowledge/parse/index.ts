import { readFile } from 'node:fs/promises'
import { extensionOf } from '../../base/file-extension.ts'
import { WbError } from '../../contract/errors.ts'
import { limits } from '../../contract/limits.ts'
import type { ExtractedText, FileParser } from './parser.ts'
import { textParser } from './text.ts'

/** A file on disk, with the name and media type from the request. */
export interface SourceFile {
  readonly name: string
  readonly type: string
  readonly path: string
}

/** Parsers in order of preference. */
const parsers: readonly FileParser[] = [textParser]

/** @throws unsupported_file_type  no parser reads this media type or extension */
function parserFor({ name, type }: Pick<SourceFile, 'name' | 'type'>): FileParser {
  const match = parsers.find(parser => parser.acceptsType(type) || parser.extensions.has(extensionOf(name)))
  if (match) return match
  throw new WbError(
    'unsupported_file_type',
    `'${name}' (${type}) has a format that this runtime does not support`,
  )
}

/** Returns true if the name or media type of a file is that of a text format. */
export function isTextLike(file: Pick<SourceFile, 'name' | 'type'>): boolean {
  return textParser.acceptsType(file.type) || textParser.extensions.has(extensionOf(file.name))
}

/**
 * Returns an extracted text if it meets the rules for the text of a JSON ingest request.
 *
 * @throws payload_too_large  the text is too long
 * @throws extraction_failed  the text contains NUL characters or lone surrogates
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
      hint: 'If the file is UTF-16 text, convert it to UTF-8, for example with iconv, and send it again.',
    })
  return extracted
}

/**
 * Extracts the text of a file with a built-in parser.
 *
 * @throws unsupported_file_type, extraction_failed, payload_too_large
 */
export async function extractNatively(file: SourceFile): Promise<ExtractedText> {
  const parser = parserFor(file)
  const extracted = await parser.extract(await readFile(file.path))
  // Check the text here, because returning it may copy it to another thread.
  return requireText({ text: extracted, parser: 'native', version: parser.version })
}

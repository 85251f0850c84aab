import { readFile } from 'node:fs/promises'
import { WbError } from '../../contract/errors.ts'
import { limits } from '../../contract/limits.ts'
import type { Extracted, Parser } from './parser.ts'
import { text } from './text.ts'

/** A file on disk, and what its sender says of it. */
export interface SentFile {
  readonly name: string
  readonly type: string
  readonly path: string
}

/** The first that takes a file reads it. */
const parsers: readonly Parser[] = [text]

/** @throws unsupported_file_type  nothing here reads files of this type or name */
function parserFor({ name, type }: Pick<SentFile, 'name' | 'type'>): Parser {
  const found = parsers.find(parser => parser.takes(type) || parser.extensions.has(extensionOf(name)))
  if (found) return found
  throw new WbError('unsupported_file_type', `'${name}' (${type}) is of no format that is read here`)
}

/** A file that is its own text. */
export function isTextLike(file: Pick<SentFile, 'name' | 'type'>): boolean {
  return text.takes(file.type) || text.extensions.has(extensionOf(file.name))
}

/**
 * What was taken out of a file, as a text that a JSON ingest could have sent.
 *
 * @throws payload_too_large  it is longer than a text may be
 * @throws extraction_failed  it holds what no text may
 */
export function requireText(extracted: Extracted): Extracted {
  const { text } = extracted
  const { ingestTextChars } = limits
  if (text.length > ingestTextChars)
    throw new WbError(
      'payload_too_large',
      `the text of the file is longer than ${ingestTextChars} characters`,
    )
  if (/[\0\p{Surrogate}]/u.test(text))
    throw new WbError('extraction_failed', 'the file holds NUL characters or lone surrogates', {
      hint: 'If it is text in UTF-16, convert it to UTF-8, for instance with iconv, and send it again.',
    })
  return extracted
}

/**
 * The text of a file, by the runtime's own parsers.
 *
 * @throws unsupported_file_type, extraction_failed, payload_too_large
 */
export async function extractNatively(file: SentFile): Promise<Extracted> {
  const parser = parserFor(file)
  const extracted = await parser.extract(await readFile(file.path))
  // Here and not by the caller, as this may run in a thread that would copy it.
  return requireText({ text: extracted, parser: 'native', version: parser.version })
}

function extensionOf(name: string): string {
  return /\.([^./\\]+)$/.exec(name)?.[1]?.toLowerCase() ?? ''
}

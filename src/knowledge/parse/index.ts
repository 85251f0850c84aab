import { readFile } from 'node:fs/promises'
import { WbError } from '../../contract/errors.ts'
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
export function parserFor({ name, type }: Pick<SentFile, 'name' | 'type'>): Parser {
  const found = parsers.find(parser => parser.takes(type) || parser.extensions.has(extensionOf(name)))
  if (found) return found
  throw new WbError('unsupported_file_type', `'${name}' (${type}) is of no format that is read here`)
}

/** A file that is its own text. */
export function isTextLike(file: Pick<SentFile, 'name' | 'type'>): boolean {
  return text.takes(file.type) || text.extensions.has(extensionOf(file.name))
}

/**
 * The text of a file, by the runtime's own parsers.
 *
 * @throws unsupported_file_type, extraction_failed
 */
export async function extractNatively(file: SentFile): Promise<Extracted> {
  const parser = parserFor(file)
  const extracted = await parser.extract(await readFile(file.path))
  return { text: extracted, parser: 'native', version: parser.version }
}

function extensionOf(name: string): string {
  return /\.([^./\\]+)$/.exec(name)?.[1]?.toLowerCase() ?? ''
}

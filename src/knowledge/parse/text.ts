import { readFile } from 'node:fs/promises'
import { extensionOf } from '../../base/file-extension.ts'
import { WbError } from '../../contract/errors.ts'
import { limits } from '../../contract/limits.ts'
import type { SourceFile } from '../../formats/file-reader.ts'
import type { ExtractedText } from './parser.ts'

const extensions = new Set(
  (
    'txt text md markdown mdx rst adoc asciidoc json jsonc jsonl ndjson csv tsv log xml html htm yaml yml toml ini cfg ' +
    'conf properties graphql gql sql css scss sass less js jsx ts tsx py go rs java kt rb sh bash zsh ps1'
  ).split(' '),
)

/**
 * Returns true if the contract's parser `native` reads a file as text.
 *
 * @see docs/ingesting.md#files-over-http
 */
export function isTextLike({ name, type }: Pick<SourceFile, 'name' | 'type'>): boolean {
  return type.startsWith('text/') || extensions.has(extensionOf(name))
}

/**
 * Decodes UTF-8 text, and removes a byte order mark.
 *
 * @throws extraction_failed  the file is not UTF-8
 */
export async function extractText({ path }: Pick<SourceFile, 'path'>): Promise<ExtractedText> {
  const bytes = await readFile(path)
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    // Check the text here, because returning it may copy it to another thread.
    return requireText({ text, parser: 'native', version: null })
  } catch (cause) {
    if (cause instanceof WbError) throw cause
    throw new WbError(
      'extraction_failed',
      'the file is not UTF-8',
      { hint: 'Convert it to UTF-8, for example with iconv, and send it again.' },
      { cause },
    )
  }
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

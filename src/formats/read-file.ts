import { readFile } from 'node:fs/promises'
import { markdownProperties } from '../base/markdown-properties.ts'
import { WbError } from '../contract/errors.ts'
import { detectFormat, type Format } from './detect.ts'
import { type FileText, withReadableErrors } from './file-text.ts'
import { decodeText } from './text.ts'

/** Reads a file of a format. Libraries are loaded on first use, because most files need none. */
const readers: Readonly<Record<Format, (bytes: Buffer) => Promise<FileText>>> = {
  pdf: async bytes => (await import('./pdf.ts')).readPdf(bytes),
  docx: async bytes => (await import('./docx.ts')).readDocx(bytes),
  pptx: async bytes => (await import('./presentation.ts')).readPptx(bytes),
  xlsx: async bytes => (await import('./spreadsheet.ts')).readSpreadsheet(bytes, true),
  xls: async bytes => (await import('./spreadsheet.ts')).readSpreadsheet(bytes, false),
  odt: async bytes => (await import('./open-document.ts')).readOpenDocument(bytes),
  ods: async bytes => (await import('./spreadsheet.ts')).readSpreadsheet(bytes, true),
  epub: async bytes => (await import('./epub.ts')).readEpub(bytes),
  rtf: async bytes => (await import('./rtf.ts')).readRtf(bytes),
  html: async bytes => (await import('./html.ts')).readHtml(bytes),
  email: async bytes => (await import('./email.ts')).readEmail(bytes),
  mailbox: async bytes => (await import('./email.ts')).readMailbox(bytes),
  notebook: async bytes => (await import('./notebook.ts')).readNotebook(decodeText(bytes)),
  subtitles: async bytes => (await import('./subtitles.ts')).readSubtitles(decodeText(bytes)),
  text: async bytes => ({ text: decodeText(bytes), title: null }),
}

export interface ExtractedFile extends FileText {
  readonly format: Format
  /** Properties of a Markdown text; absent if they were not requested. */
  readonly properties?: Readonly<Record<string, string | number | boolean>>
}

export interface ReadOptions {
  /** False for a file whose name and media type are not those of a text. */
  readonly canBeText: boolean
  /** True to read the properties of a text, which is Markdown: see {@link markdownProperties}. */
  readonly withProperties: boolean
}

/**
 * Reads the text of a file in any supported format.
 *
 * @throws unsupported_file_type  the format is unknown
 * @throws extraction_failed      the file is damaged, encrypted or too large
 */
export async function readFileText(
  path: string,
  name: string,
  { canBeText, withProperties }: ReadOptions,
): Promise<ExtractedFile> {
  const bytes = await readFile(path)
  const format = await detectFormat(bytes, name)
  if (!format || (format === 'text' && !canBeText))
    throw new WbError('unsupported_file_type', `'${name}' has a format that this runtime does not support`)
  const file = await withReadableErrors(() => readers[format](bytes))
  const properties = withProperties && format === 'text' ? markdownProperties(file.text) : undefined
  return { ...file, format, ...(properties && { properties }) }
}

import { readFile } from 'node:fs/promises'
import { extensionOf } from '../base/file-extension.ts'
import { dependencyVersion } from '../base/package.ts'
import { WbError } from '../contract/errors.ts'
import { type FileText, withReadableErrors } from './file-text.ts'

/** Kinds of files that the contract's parser `native` reads, besides text, by media type and by extension. */
const kinds = {
  pdf: 'application/pdf',
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
} as const
type Kind = keyof typeof kinds

const readers: Readonly<Record<Kind, (bytes: Buffer) => Promise<NativeText>>> = {
  pdf: async bytes => {
    const pages = await (await import('./pdf.ts')).readPdfPages(bytes)
    const text = pages.filter(page => page.trim() !== '').join('\n\n')
    return { text, version: versionOf('unpdf') }
  },
  docx: async bytes => ({
    text: await (await import('./docx.ts')).readDocxText(bytes),
    version: versionOf('mammoth'),
  }),
  xlsx: async bytes => ({
    text: (await (await import('./spreadsheet.ts')).readSpreadsheet(bytes, true)).text,
    version: versionOf('@e965/xlsx'),
  }),
}

/** Text of a file, and the name and version of the library that read it. */
export interface NativeText extends Pick<FileText, 'text'> {
  readonly version: string
}

/**
 * Reads a file as the contract's parser `native` does: without headings, and by its name and media type.
 *
 * @throws unsupported_file_type  no such parser reads this media type or extension
 * @throws extraction_failed      the file is damaged, encrypted or too large
 * @see docs/ingesting.md#files-over-http
 */
export async function readNatively(file: {
  readonly path: string
  readonly name: string
  readonly type: string
}): Promise<NativeText> {
  const kind = kindOf(file)
  if (!kind)
    throw new WbError(
      'unsupported_file_type',
      `'${file.name}' (${file.type}) has a format that this runtime does not support`,
    )
  const bytes = await readFile(file.path)
  return withReadableErrors(() => readers[kind](bytes))
}

function kindOf({ name, type }: { readonly name: string; readonly type: string }): Kind | undefined {
  const extension = extensionOf(name)
  return (Object.keys(kinds) as Kind[]).find(kind => kinds[kind] === type || kind === extension)
}

function versionOf(library: string): string {
  return `${library} ${dependencyVersion(library)}`
}

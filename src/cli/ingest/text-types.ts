import { extensionOf } from '../../base/file-extension.ts'

/** Extensions of text files: those in docs/ingesting.md#files-over-http, and those of more programming languages. */
const textExtensions = new Set(
  `txt text md markdown mdx rst adoc asciidoc json jsonc jsonl ndjson csv tsv log xml html htm yaml yml toml ini
  cfg conf properties graphql gql sql css scss sass less js jsx ts tsx py go rs java kt rb sh bash zsh ps1
  mjs cjs mts cts vue svelte c h cc cpp hpp cs php swift scala lua pl r dart ex exs erl hs clj proto tf tex org`.split(
    /\s+/,
  ),
)

/** Extensions of files that the runtime converts to text. */
const convertibleExtensions = new Set(
  'pdf docx docm pptx pptm xlsx xlsm xlsb xls ods odt odp rtf epub eml mbox ipynb srt vtt html htm xhtml'.split(
    ' ',
  ),
)

/** Formats that the runtime cannot read, and the formats in which their programs can save a file instead. */
const replacements: Readonly<Record<string, string>> = {
  doc: '.docx',
  ppt: '.pptx',
  msg: '.eml',
  pages: '.pdf or .docx',
  key: '.pdf or .pptx',
  numbers: '.xlsx',
}

const office = 'application/vnd.openxmlformats-officedocument'

const mediaTypes: Record<string, string> = {
  md: 'text/markdown',
  markdown: 'text/markdown',
  mdx: 'text/markdown',
  html: 'text/html',
  htm: 'text/html',
  csv: 'text/csv',
  tsv: 'text/tab-separated-values',
  css: 'text/css',
  xml: 'text/xml',
  json: 'application/json',
  pdf: 'application/pdf',
  docx: `${office}.wordprocessingml.document`,
  pptx: `${office}.presentationml.presentation`,
  xlsx: `${office}.spreadsheetml.sheet`,
  odt: 'application/vnd.oasis.opendocument.text',
  ods: 'application/vnd.oasis.opendocument.spreadsheet',
  odp: 'application/vnd.oasis.opendocument.presentation',
  rtf: 'application/rtf',
  epub: 'application/epub+zip',
  eml: 'message/rfc822',
  ipynb: 'application/x-ipynb+json',
}

/** Returns true if the extension is that of a text file, or there is no extension. */
export function isMaybeText(name: string): boolean {
  const extension = extensionOf(name)
  return extension === '' || textExtensions.has(extension)
}

/** Returns true if the runtime converts files with this extension, such as PDF, to text. */
export function isConvertible(name: string): boolean {
  return convertibleExtensions.has(extensionOf(name))
}

/** Returns the format in which to save a file that cannot be read, such as `.docx`; undefined if no other format is known. */
export function replacementOf(name: string): string | undefined {
  return replacements[extensionOf(name)]
}

/** Returns true for a `.jsonl` file, which can have one document per line. */
export function isJsonLines(name: string): boolean {
  return extensionOf(name) === 'jsonl'
}

export function isMarkdown(name: string): boolean {
  return mediaTypes[extensionOf(name)] === 'text/markdown'
}

/** Returns the media type to store for a document. */
export function mediaTypeOf(name: string): string {
  return mediaTypes[extensionOf(name)] ?? 'text/plain'
}

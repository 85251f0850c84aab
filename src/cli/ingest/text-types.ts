import { extensionOf } from '../../base/file-extension.ts'

/** Extensions of text files: those in docs/ingesting.md#files-over-http, and those of more programming languages. */
const textExtensions = new Set(
  `txt text md markdown mdx rst adoc asciidoc json jsonc jsonl ndjson csv tsv log xml html htm yaml yml toml ini
  cfg conf properties graphql gql sql css scss sass less js jsx ts tsx py go rs java kt rb sh bash zsh ps1
  mjs cjs mts cts vue svelte c h cc cpp hpp cs php swift scala lua pl r dart ex exs erl hs clj proto tf tex org`.split(
    /\s+/,
  ),
)

/** Extensions of files that contain text in another format, and that converters can read. */
const convertibleExtensions = new Set(
  'pdf doc docx odt rtf pages ppt pptx odp key xls xlsx ods epub eml msg'.split(' '),
)

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
}

/** Returns true if the extension is that of a text file, or there is no extension. */
export function isMaybeText(name: string): boolean {
  const extension = extensionOf(name)
  return extension === '' || textExtensions.has(extension)
}

/** Returns true if the extension is that of a document, such as PDF, that can be converted to text. */
export function isConvertibleToText(name: string): boolean {
  return convertibleExtensions.has(extensionOf(name))
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

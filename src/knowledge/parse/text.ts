import { WbError } from '../../contract/errors.ts'
import type { FileParser } from './parser.ts'

const extensions =
  'txt text md markdown mdx rst adoc asciidoc json jsonc jsonl ndjson csv tsv log xml html htm yaml yml toml ini cfg ' +
  'conf properties graphql gql sql css scss sass less js jsx ts tsx py go rs java kt rb sh bash zsh ps1'

/**
 * Decodes UTF-8 text, and removes a byte order mark.
 *
 * @see docs/ingesting.md#files-over-http
 */
export const textParser: FileParser = {
  version: null,
  acceptsType: type => type.startsWith('text/'),
  extensions: new Set(extensions.split(' ')),
  extract(bytes) {
    try {
      return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    } catch (cause) {
      throw new WbError(
        'extraction_failed',
        'the file is not UTF-8',
        { hint: 'Convert it to UTF-8, for example with iconv, and send it again.' },
        { cause },
      )
    }
  },
}

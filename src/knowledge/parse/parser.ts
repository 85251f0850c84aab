import type { TextLayout } from '../../base/text-layout.ts'

/** Text extracted from a file, and the parser that extracted it. */
export interface ExtractedText {
  readonly text: string
  /** `structured` for files that were converted to Markdown. */
  readonly parser: 'native' | 'structured' | 'docling'
  /** Name and version of the library that extracted the text; null if the runtime extracted it without a library. */
  readonly version: string | null
  readonly layout?: TextLayout
  /** Metadata that the file declares. */
  readonly metadata?: Readonly<Record<string, string | number | boolean>>
}

/** Extracts text from files of certain formats. */
export interface FileParser {
  /** Name and version of the library that extracts the text; null if the runtime extracts it without a library. */
  readonly version: string | null
  /** @param type  media type in lowercase, without parameters */
  acceptsType(type: string): boolean
  /** File name extensions in lowercase, without the dot. */
  readonly extensions: ReadonlySet<string>
  /** @throws extraction_failed  the file is damaged, or is in a different format */
  extract(bytes: Uint8Array): string | Promise<string>
}

/** Text extracted from a file, and the parser that extracted it. */
export interface ExtractedText {
  readonly text: string
  readonly parser: 'native' | 'docling'
  readonly version: string | null
}

/** Extracts text from files of certain formats. */
export interface FileParser {
  /** Name and version of the library used; null for the runtime's own code. */
  readonly version: string | null
  /** @param type  media type in lower case, without parameters */
  takes(type: string): boolean
  /** File name extensions in lower case, without the dot. */
  readonly extensions: ReadonlySet<string>
  /** @throws extraction_failed  the file is damaged, or has another format */
  extract(bytes: Uint8Array): string | Promise<string>
}

/** Text extracted from a file, and the parser used. */
export interface ExtractedText {
  readonly text: string
  readonly parser: 'native' | 'docling'
  readonly version: string | null
}

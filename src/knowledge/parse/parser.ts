/** Makes text of the files of some formats. */
export interface Parser {
  /** Name and version of the library that does it; null where the runtime does it itself. */
  readonly version: string | null
  /** @param type  media type in lower case, without parameters */
  takes(type: string): boolean
  /** In lower case, without the dot. */
  readonly extensions: ReadonlySet<string>
  /** @throws extraction_failed  the file is not what it is said to be, or is damaged */
  extract(bytes: Uint8Array): string | Promise<string>
}

/** What a parser made of a file. */
export interface Extracted {
  readonly text: string
  readonly parser: 'native' | 'docling'
  readonly version: string | null
}

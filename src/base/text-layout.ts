/** Place in a file at which a part of its text starts: a page of a PDF, a slide, or a sheet of a spreadsheet. */
export interface TextPlace {
  /** Offset in the text, in UTF-16 units. */
  readonly start: number
  /** Number of the page, from 1. */
  readonly page?: number
  /** Number of the slide, from 1. */
  readonly slide?: number
  /** Name of the worksheet. */
  readonly sheet?: string
}

/** Structure of a text that was extracted from a file. */
export interface TextLayout {
  /** True if the text is Markdown, whose headings are its sections. */
  readonly isMarkdown: boolean
  /** True if the text is source code. */
  readonly isCode?: boolean
  /** True if the text is CSV or TSV, whose first row has the column headers. */
  readonly isDelimited?: boolean
  /** Places with ascending starts. */
  readonly places: readonly TextPlace[]
}

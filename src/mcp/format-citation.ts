/** The source of a passage. Unknown fields are null. */
interface CitationSource {
  readonly documentId: string | null
  readonly sourceFilename: string | null
  readonly title: string | null
  readonly heading?: string | null
  readonly page?: number | null
}

const headingCharsMax = 200

/** Returns a citation to put after a statement: `Returns policy (handbook.pdf, "Deadlines", page 3)`. */
export function formatCitation({ documentId, sourceFilename, title, heading, page }: CitationSource): string {
  const name = title ?? sourceFilename ?? (documentId === null ? 'a record' : `document ${documentId}`)
  const details = [
    ...(sourceFilename !== null && sourceFilename !== name ? [sourceFilename] : []),
    ...(heading ? [`"${heading}"`] : []),
    ...(page ? [`page ${page}`] : []),
  ]
  return details.length === 0 ? name : `${name} (${details.join(', ')})`
}

/** Returns the heading of a passage: its field `heading`, or the Markdown heading at its beginning. */
export function headingOf(payload: Readonly<Record<string, unknown>>, text: string | null): string | null {
  const { heading } = payload
  if (typeof heading === 'string' && heading !== '') return heading.slice(0, headingCharsMax)
  const [, headingText] = /^\s{0,3}#{1,6}[ \t]+([^\n]+)/.exec(text ?? '') ?? []
  // Truncated first, because the search for a closing sequence backtracks over white space.
  return headingText?.slice(0, headingCharsMax).replace(/[ \t]+#*\s*$/, '') ?? null
}

/** A Markdown text as it reads. */
export interface Readable {
  readonly text: string
  readonly headings: readonly Heading[]
}

/** A heading, and where it begins in the readable text. */
export interface Heading {
  readonly title: string
  readonly at: number
}

const headingLine = /^ {0,3}#{1,6}[ \t]+(.*?)[ \t]*#*[ \t]*$/
const fenceLine = /^ {0,3}(?:`{3,}|~{3,}).*$/
const ruleLine = /^[ \t]*\|?(?:[ \t]*:?-{3,}:?[ \t]*\|?)+[ \t]*$/

/**
 * Markdown without its markup. A heading ends with a colon, as it will run into what follows; the one that repeats the
 * title of the document is left out.
 */
export function readMarkdown(text: string, title: string): Readable {
  const headings: Heading[] = []
  let readable = ''
  let fenced = false
  for (const line of text.split('\n')) {
    const isFence = fenceLine.test(line)
    if (isFence) fenced = !fenced
    if (isFence || (!fenced && ruleLine.test(line))) continue
    const heading = fenced ? undefined : headingLine.exec(line)?.[1]
    if (heading) {
      const said = inline(heading)
      headings.push({ title: said, at: readable.length })
      if (said !== title) readable += `${said}${/\w$/.test(said) ? ':' : ''}\n`
    } else readable += `${fenced ? line : inline(line)}\n`
  }
  return { text: readable, headings }
}

function inline(line: string): string {
  return line
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/\*\*|__|`/g, '')
    .replace(/\*(\S[^*]*)\*/g, '$1')
    .replace(/[ \t]*\|[ \t]*/g, '  ')
    .replace(/^[ \t]*>/, '')
    .trim()
}

/** The heading that a place stands under. */
export function sectionAt({ headings }: Readable, offset: number): string | undefined {
  return headings.findLast(({ at }) => at <= offset)?.title
}

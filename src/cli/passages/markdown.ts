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
const tableLine = /^[ \t]*\|(.*)\|[ \t]*$/
const ruleLine = /^[ \t]*\|?(?:[ \t]*:?-{3,}:?[ \t]*\|?)+[ \t]*$/

/**
 * Markdown without its markup. A heading ends with a colon, as it will run into what follows; the one that repeats the
 * title of the document is left out.
 */
export function readMarkdown(text: string, title: string): Readable {
  const headings: Heading[] = []
  let readable = ''
  let fenced = false
  const all = text.split('\n')
  for (const [index, line] of all.entries()) {
    const isFence = fenceLine.test(line)
    if (isFence) fenced = !fenced
    if (isFence || (!fenced && (ruleLine.test(line) || isTableHead(line, all[index + 1])))) continue
    const heading = fenced ? undefined : headingLine.exec(line)?.[1]
    if (heading) {
      const said = inline(heading)
      headings.push({ title: said, at: readable.length })
      if (said !== title) readable += `${said}${/\w$/.test(said) ? ':' : ''}\n`
    } else readable += `${fenced ? line : inline(line)}\n`
  }
  return { text: readable, headings }
}

/** What a table is headed with says little once its lines run together. */
function isTableHead(line: string, next = ''): boolean {
  return tableLine.test(line) && tableLine.test(next) && ruleLine.test(next)
}

/** A line without its markup; cells of a table with dots between them and an end that is heard. */
function inline(line: string): string {
  const cells = tableLine.exec(line)?.[1]
  if (cells !== undefined)
    return `${cells
      .split(/(?<!\\)\|/)
      .map(inline)
      .join(' · ')};`
  return line
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/\*\*|__|`/g, '')
    .replace(/\*(\S[^*]*)\*/g, '$1')
    .replace(/^[ \t]*>/, '')
    .trim()
}

/** The heading that a place stands under. */
export function sectionAt({ headings }: Readable, offset: number): string | undefined {
  return headings.findLast(({ at }) => at <= offset)?.title
}

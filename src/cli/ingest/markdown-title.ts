const titleCharsMax = 200
/** Titles are searched in this many characters at the start of a document. */
const searchedChars = 20_000

/**
 * Returns the title of a Markdown text: `title` of its front matter, else its first heading.
 *
 * @see https://spec.commonmark.org/0.31.2/#atx-headings
 */
export function markdownTitle(text: string): string | undefined {
  const lines = text.slice(0, searchedChars).split(/\r?\n/)
  const close = lines[0] === '---' ? lines.indexOf('---', 1) : -1
  const titleLine = lines.slice(1, Math.max(1, close)).find(line => /^title:\s*\S/.test(line))
  const title =
    titleLine?.replace(/^title:\s*/, '').replace(/^(["'])(.*)\1\s*$/, '$2') ??
    firstHeading(lines.slice(close + 1))
  return title ? stripMarkup(title).slice(0, titleCharsMax) || undefined : undefined
}

function firstHeading(lines: readonly string[]): string | undefined {
  let fence: string | undefined
  for (const [index, line] of lines.entries()) {
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1]
    if (mark && (fence === undefined || mark.startsWith(fence)))
      fence = fence === undefined ? mark : undefined
    if (fence !== undefined) continue
    const heading = parseHeading(line)
    if (heading) return heading
    if (/^={2,}\s*$/.test(lines[index + 1] ?? '') && line.trim()) return line.trim()
  }
  return undefined
}

/** Returns the text of an ATX heading. */
function parseHeading(line: string): string | undefined {
  return /^ {0,3}#{1,6}\s+(.*?)(?:\s+#+)?\s*$/.exec(line)?.[1]
}

/** Removes Markdown from a line: links become their text, and emphasis and code marks are dropped. */
function stripMarkup(line: string): string {
  return line
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/<[^>]+>/g, '')
    .replace(/\*\*|__|`/g, '')
    .replace(/\*(\S[^*]*)\*/g, '$1')
    .trim()
}

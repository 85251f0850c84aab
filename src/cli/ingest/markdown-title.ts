const titleCharsMax = 200
/** Number of characters, from the start of a document, in which to search for a title. */
const searchedChars = 20_000

/**
 * Returns the title of a Markdown text: the `title` in its front matter, otherwise its first heading.
 *
 * @see https://spec.commonmark.org/0.31.2/#atx-headings
 */
export function markdownTitle(text: string): string | undefined {
  const lines = text.slice(0, searchedChars).split(/\r?\n/)
  const frontMatterEnd = lines[0] === '---' ? lines.indexOf('---', 1) : -1
  const titleLine = lines.slice(1, Math.max(1, frontMatterEnd)).find(line => /^title:\s*\S/.test(line))
  const title =
    titleLine?.replace(/^title:\s*/, '').replace(/^(["'])(.*)\1\s*$/, '$2') ??
    firstHeading(lines.slice(frontMatterEnd + 1))
  return title ? stripMarkup(title).slice(0, titleCharsMax) || undefined : undefined
}

function firstHeading(lines: readonly string[]): string | undefined {
  let openFence: string | undefined
  for (const [index, line] of lines.entries()) {
    const fence = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1]
    if (fence && (openFence === undefined || fence.startsWith(openFence)))
      openFence = openFence === undefined ? fence : undefined
    if (openFence !== undefined) continue
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

/** Removes Markdown from a line: replaces links with their text, and removes emphasis and code marks. */
function stripMarkup(line: string): string {
  return line
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/<[^>]+>/g, '')
    .replace(/\*\*|__|`/g, '')
    .replace(/\*(\S[^*]*)\*/g, '$1')
    .trim()
}

/** Maximum length of a heading, in UTF-16 units. The rest is cut. */
const headingCharsMax = 100
const separator = ' > '
const fencePattern = /^ {0,3}(`{3,}|~{3,})/
const headingPattern = /^ {0,3}(#{1,6})[ \t]/
/** Maximum length of the part of a line that is read. */
const lineCharsMax = 200

/** Returns true if a document is Markdown, whose headings can be read, by its media type or its file name. */
export function hasSections(fileType: string | null, fileName: string | null): boolean {
  return fileType?.startsWith('text/markdown') === true || /\.(?:md|markdown|mdx)$/i.test(fileName ?? '')
}

/**
 * Returns the headings of the Markdown section at each offset, such as `Security > Revoke a key`; undefined before the
 * first heading. The line of a heading belongs to its section.
 *
 * @param offsets  in ascending order
 * @see https://spec.commonmark.org/0.31.2/#atx-headings
 */
export function sectionsAt(text: string, offsets: readonly number[]): (string | undefined)[] {
  const lines = headingLines(text)
  /** Headings of the current section by level. */
  const path: string[] = []
  let next = lines.next()
  return offsets.map(offset => {
    for (; !next.done && next.value.start <= offset; next = lines.next()) {
      const { level, title } = next.value
      path.length = Math.min(path.length, level - 1)
      path[level - 1] = title
    }
    // Levels can be skipped.
    const titles = path.filter(title => title)
    return titles.length === 0 ? undefined : titles.join(separator)
  })
}

function* headingLines(text: string): Generator<{ start: number; level: number; title: string }> {
  let openFence: string | undefined
  for (let start = frontMatterEnd(text); start < text.length; start = lineEnd(text, start) + 1) {
    const line = text.slice(start, Math.min(lineEnd(text, start), start + lineCharsMax))
    const fence = fencePattern.exec(line)?.[1]
    if (fence && (openFence === undefined || fence.startsWith(openFence)))
      openFence = openFence === undefined ? fence : undefined
    const marks = openFence === undefined ? headingPattern.exec(line)?.[1] : undefined
    const title = marks && plainTitle(line.slice(line.indexOf(marks) + marks.length))
    if (title) yield { start, level: marks.length, title }
  }
}

function lineEnd(text: string, start: number): number {
  const end = text.indexOf('\n', start)
  return end < 0 ? text.length : end
}

/** Returns the offset after the front matter, which can contain comments that look like headings. */
function frontMatterEnd(text: string): number {
  if (!/^---\r?\n/.test(text)) return 0
  const end = text.indexOf('\n---', 3)
  return end < 0 ? 0 : end + 1
}

/** Returns a heading without its closing marks and its markup. */
function plainTitle(heading: string): string {
  return heading
    .trim()
    .replace(/(?<=^|[ \t])#+$/, '')
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/\*\*|__|`/g, '')
    .slice(0, headingCharsMax)
    .trim()
}

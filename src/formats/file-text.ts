import type { TextPlace } from '../base/text-layout.ts'
import { WbError } from '../contract/errors.ts'

/** Text of a file, in Markdown if the format of the file has headings, lists or tables. */
export interface FileText {
  readonly text: string
  /** Title that the file declares; null if it declares none. */
  readonly title: string | null
  /** Author that the file declares. */
  readonly author?: string | null
  /** Day of the last change that the file declares, such as `2026-03-01`. */
  readonly date?: string | null
  /** Pages, slides or sheets of the text; absent for other formats. */
  readonly places?: readonly TextPlace[]
}

/** A page, slide or sheet. */
export interface FilePart extends Omit<TextPlace, 'start'> {
  readonly text: string
}

/** Joins the parts of a file with an empty line. Omits parts without text. */
export function joinParts(parts: readonly FilePart[]): { text: string; places: TextPlace[] } {
  const places: TextPlace[] = []
  let text = ''
  for (const { text: partText, ...place } of parts) {
    const content = tidy(partText)
    if (content === '') continue
    if (text !== '') text += '\n\n'
    places.push({ start: text.length, ...place })
    text += content
  }
  return { text, places }
}

/** Returns the day of a timestamp such as `2026-03-01T12:00:00Z`; null if it is not one. */
export function dayOf(timestamp: string | null | undefined): string | null {
  return /^\d{4}-\d{2}-\d{2}/.exec(timestamp?.trim() ?? '')?.[0] ?? null
}

/** A file that a library cannot read. `problem` continues the sentence "the file …". */
export function unreadable(problem: string, hint?: string, cause?: unknown): WbError {
  return new WbError('extraction_failed', `the file ${problem}`, { ...(hint && { hint }) }, { cause })
}

/** Runs a reader of a format. Libraries throw errors of many kinds for damaged files. @throws extraction_failed */
export async function withReadableErrors<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    throw error instanceof WbError ? error : unreadable('is damaged', undefined, error)
  }
}

/** Removes spaces at the ends of lines, and reduces empty lines to one. */
export function tidy(text: string): string {
  return text
    .replace(/\r\n?/g, '\n')
    .replace(/[^\S\n]+$/gm, '')
    .replace(/\n{3,}/g, '\n\n')
    .trim()
}

/** Maximum length of a title, in UTF-16 units. The rest is cut. */
const titleCharsMax = 500

/** Returns a title in one line; null if it is empty. */
export function titleOf(text: string | null | undefined): string | null {
  const line = text
    ?.slice(0, 2 * titleCharsMax)
    .replace(/\s+/g, ' ')
    .trim()
  return line?.slice(0, titleCharsMax) || null
}

/** A cell of a table, as Markdown. Line breaks become spaces. */
function cellOf(text: string): string {
  return text.replace(/\s+/g, ' ').trim().replace(/[\\|]/g, '\\$&')
}

/** Returns rows as a table in Markdown, the first as its header. Omits rows without text. */
export function markdownTable(rows: readonly (readonly string[])[]): string {
  const filled = rows.map(row => row.map(cellOf)).filter(row => row.some(cell => cell !== ''))
  const width = filled.reduce(
    (widest, row) => Math.max(widest, row.findLastIndex(cell => cell !== '') + 1),
    0,
  )
  const [heads, ...others] = filled.map(
    row => `| ${Array.from({ length: width }, (_, at) => row[at] ?? '').join(' | ')} |`,
  )
  if (heads === undefined) return ''
  return [heads, `|${' --- |'.repeat(width)}`, ...others].join('\n')
}

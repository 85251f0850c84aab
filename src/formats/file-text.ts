import { WbError } from '../contract/errors.ts'

/** Text of a file, in Markdown if the format of the file has headings, lists or tables. */
export interface FileText {
  readonly text: string
  /** Title that the file declares; null if it declares none. */
  readonly title: string | null
}

/** A file that a library cannot read. `problem` continues the sentence "the file …". */
export function unreadable(problem: string, hint?: string, cause?: unknown): WbError {
  return new WbError('extraction_failed', `the file ${problem}`, { ...(hint && { hint }) }, { cause })
}

/** Removes spaces at the ends of lines, and reduces empty lines to one. */
export function tidy(text: string): string {
  return text
    .replace(/\r\n?/g, '\n')
    .replace(/[^\S\n]+$/gm, '')
    .replace(/\n{3,}/g, '\n\n')
    .trim()
}

/** Returns a title in one line; null if it is empty. */
export function titleOf(text: string | null | undefined): string | null {
  return text?.replace(/\s+/g, ' ').trim() || null
}

/** A cell of a table, as Markdown. Line breaks become spaces. */
function cellOf(text: string): string {
  return text.replace(/\s+/g, ' ').trim().replace(/[\\|]/g, '\\$&')
}

/** Returns rows as a table in Markdown, the first as its heads. Omits rows without text. */
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

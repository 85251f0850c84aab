import type { DocumentView } from '../../cli/documents/document-view.ts'
import type { TextRange } from '../../cli/passages/matches.ts'
import { passageLocation, passageTitle } from '../../cli/passages/print-passages.ts'
import { sourceAddress } from '../../cli/passages/source-address.ts'
import type { Output } from '../../cli/terminal/output.ts'
import { displayWidth, plainLine, truncate } from '../../cli/terminal/terminal-text.ts'
import { paintFor } from '../parts/paint.ts'
import { documentLines } from './document-lines.ts'

/** A part of a document to print. */
interface ShownDocument {
  readonly view: DocumentView
  readonly part: TextRange
  /** Folders that can contain the file of the document. */
  readonly folders: readonly string[]
}

/** Prints a part of a document: its title, location and text, and commands that show more. */
export async function showDocument({ view, part, folders }: ShownDocument, output: Output): Promise<void> {
  const { text, context, isMarkdown, isWhole } = view
  const hasColors = output.style.dim('') !== ''
  const hasCode = isMarkdown && /^ *(?:```|~~~)/m.test(text)
  const { highlight } =
    hasColors && hasCode ? await import('../markdown/highlight.ts') : { highlight: undefined }
  const options = { columns: output.width, isMarkdown, highlight, dimsContext: !isWhole }
  const address = sourceAddress(view, folders)
  const [title, ...location] = headLines(view, output)
  output.result(title)
  for (const line of location) output.result(line, address)
  output.result('')
  const paint = paintFor(hasColors)
  for (const line of documentLines(text, part, context?.passage, options)) output.result(paint(line))
  output.result('')
  if (!isWhole && view.passage) printNextCommands(view.passage.number, output)
}

function headLines(
  { document, passage, place, context }: DocumentView,
  { width, style }: Output,
): [title: string, ...location: string[]] {
  const number = passage ? `[${passage.number}] ` : ''
  const name = passageTitle({ document, id: document.documentId })
  const section = context?.section && plainLine(context.section)
  const title = section && section !== name ? `${name} › ${section}` : name
  const location = passageLocation({ document, place, chunkIndex: passage?.chunkIndex ?? null })
  const id = plainLine(document.documentId)
  const titleWidth = width - 3
  const fullLine = [location, id].filter(Boolean).join(' · ')
  // The ID is never truncated, so that it can be copied.
  const locationLines =
    displayWidth(fullLine) <= titleWidth ? [fullLine] : [truncate(location, titleWidth), id]
  return [
    `  ${number}${style.strong(truncate(title, titleWidth - number.length))}`,
    ...locationLines.map(line => style.dim(`  ${line}`)),
  ]
}

function printNextCommands(number: string, output: Output): void {
  const commands = [
    [`wb documents show ${number} --full${output.contextFlags}`, 'the whole document'],
    [`wb documents chunks ${number}${output.contextFlags}`, 'its chunks, starting with this one'],
  ] as const
  const width = Math.max(...commands.map(([command]) => command.length))
  for (const [command, description] of commands) output.note(`  ${command.padEnd(width)}    ${description}`)
}

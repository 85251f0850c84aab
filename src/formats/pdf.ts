import { getDocumentProxy } from 'unpdf'
import { WbError } from '../contract/errors.ts'
import { type FileText, joinParts, titleOf, unreadable } from './file-text.ts'
import { encrypted } from './zip.ts'

type Pdf = Awaited<ReturnType<typeof getDocumentProxy>>

/** A line of a page. Lengths are in points, measured from the lower left corner. */
interface Line {
  readonly text: string
  /** Size of the font. */
  readonly size: number
  readonly y: number
  /** End of the line. */
  readonly right: number
}

interface Page {
  readonly height: number
  readonly lines: readonly Line[]
}

/** Minimum size of a heading compared with the text. */
const headingRatio = 1.15
/** Maximum number of characters of a heading. */
const headingCharsMax = 150
/** Distance of two lines, in font sizes, from which they belong to different paragraphs. */
const paragraphGap = 1.6
/** A line that ends before this share of the longest line of a page is followed by a new line. */
const shortLineShare = 0.75
/** Share of a page, at its top and at its bottom, that can contain lines that are repeated on other pages. */
const marginShare = 0.2
/** Number of pages on which a line in the margins must occur to be left out. Numbers can differ. */
const repeatedPagesMin = 3
/** Titles that programs write if the author did not choose one. */
const automaticTitle =
  /^(untitled|microsoft (word|powerpoint|excel) - |.*\.(docx?|pptx?|xlsx?|indd|tex|pdf)$)/i
/** Signs before list items, with those of the fonts Symbol and Wingdings. */
const bullet = /^[•●▪◦‣–\uf0a7\uf0b7\uf0d8\uf0fc]\s*/

/**
 * Returns the text of a PDF with its headings, recognized by the sizes of the fonts, and with its paragraphs in one line
 * each. Omits lines in the margins that are repeated on other pages.
 *
 * @throws extraction_failed  the file is damaged or encrypted
 */
export async function readPdf(bytes: Uint8Array): Promise<FileText> {
  return withPdf(bytes, async pdf => {
    const pages: Page[] = []
    for (let number = 1; number <= pdf.numPages; number++) pages.push(await readPage(pdf, number))
    const textSize = textSizeOf(pages.flatMap(({ lines }) => lines))
    const content = withoutRepeatedLines(pages, textSize)
    const levels = headingLevels(content.flat(), textSize)
    const { text, places } = joinParts(
      content.map((lines, at) => ({ text: blocksOf(lines, levels).join('\n\n'), page: at + 1 })),
    )
    if (text === '')
      throw new WbError('empty_document', 'the pages of the file contain no text; perhaps they are scanned', {
        hint: 'Recognize the text with OCR, for example with ocrmypdf, or configure a document converter.',
      })
    return { text, places, ...(await propertiesOf(pdf, text)) }
  })
}

/** Returns the text of each page. @throws extraction_failed  the file is damaged or encrypted */
export async function readPdfPages(bytes: Uint8Array): Promise<string[]> {
  return withPdf(bytes, async pdf => {
    const pages: string[] = []
    for (let number = 1; number <= pdf.numPages; number++)
      pages.push((await readPage(pdf, number)).lines.map(({ text }) => text).join('\n'))
    return pages
  })
}

async function withPdf<T>(bytes: Uint8Array, use: (pdf: Pdf) => Promise<T>): Promise<T> {
  try {
    // The library takes the buffer, so it gets a copy.
    const pdf = await getDocumentProxy(Uint8Array.from(bytes), {
      isEvalSupported: false,
      useSystemFonts: false,
      verbosity: 0,
    })
    try {
      return await use(pdf)
    } finally {
      await pdf.destroy()
    }
  } catch (error) {
    if (error instanceof WbError) throw error
    const name = error instanceof Error ? error.name : ''
    if (name === 'PasswordException') throw encrypted()
    throw unreadable('is a damaged PDF', undefined, error)
  }
}

async function readPage(pdf: Pdf, number: number): Promise<Page> {
  const page = await pdf.getPage(number)
  const { items } = await page.getTextContent()
  const lines: Line[] = []
  let text = ''
  let size = 0
  let y = 0
  let right = 0
  const endLine = () => {
    const trimmed = text
      .replace(/(?:\s?\.){5,}/g, ' … ')
      .replace(/\s+/g, ' ')
      .trim()
    if (trimmed !== '') lines.push({ text: trimmed, size, y, right })
    text = ''
    size = 0
    right = 0
  }
  for (const item of items) {
    if (!('str' in item)) continue
    if (item.str.trim() !== '') {
      size = Math.max(size, item.height)
      y = Number(item.transform[5])
      right = Math.max(right, Number(item.transform[4]) + item.width)
    }
    text += item.str
    if (item.hasEOL) endLine()
  }
  endLine()
  const height = page.view[3]! - page.view[1]!
  page.cleanup()
  return { height, lines }
}

/**
 * Returns the lines of each page without running heads, running feet and page numbers: the outermost lines that occur at the
 * same height on several pages, apart from numbers, and that are not larger than the text.
 */
function withoutRepeatedLines(pages: readonly Page[], textSize: number): (readonly Line[])[] {
  const keyOf = ({ text, y }: Line) => `${Math.round(y)} ${text.replace(/\d+/g, '#')}`
  const isInMargin = ({ height }: Page, { y }: Line) =>
    y < height * marginShare || y > height * (1 - marginShare)
  const counts = new Map<string, number>()
  for (const page of pages)
    for (const line of page.lines)
      if (isInMargin(page, line)) counts.set(keyOf(line), (counts.get(keyOf(line)) ?? 0) + 1)
  return pages.map(page => {
    const isRepeated = (line: Line) =>
      isInMargin(page, line) &&
      line.size < textSize * headingRatio &&
      counts.get(keyOf(line))! >= repeatedPagesMin
    const downward = page.lines.toSorted((a, b) => b.y - a.y)
    const content = downward.slice(
      downward.findIndex(line => !isRepeated(line)),
      downward.findLastIndex(line => !isRepeated(line)) + 1,
    )
    const kept = new Set(content)
    return page.lines.filter(line => kept.has(line))
  })
}

/** Returns the size of the font in which most of the text is. */
function textSizeOf(lines: readonly Line[]): number {
  const chars = new Map<number, number>()
  for (const { text, size } of lines)
    chars.set(Math.round(size), (chars.get(Math.round(size)) ?? 0) + text.length)
  const [textSize] = [...chars].reduce((most, entry) => (entry[1] > most[1] ? entry : most), [0, 0])
  return textSize
}

/** Returns the level of a heading for each size of a font that is larger than the text. */
function headingLevels(lines: readonly Line[], textSize: number): ReadonlyMap<number, number> {
  const sizes = new Set(lines.map(({ size }) => Math.round(size)))
  const larger = [...sizes].filter(size => size >= textSize * headingRatio).sort((x, y) => y - x)
  return new Map(larger.map((size, at) => [size, Math.min(at + 1, 4)]))
}

/** Joins the lines of a page to headings, list items and paragraphs. */
function blocksOf(lines: readonly Line[], levels: ReadonlyMap<number, number>): string[] {
  const shortLine = shortLineShare * lines.reduce((longest, { right }) => Math.max(longest, right), 0)
  const blocks: { text: string; level: number; last: Line }[] = []
  for (const line of lines) {
    const level = line.text.length <= headingCharsMax ? (levels.get(Math.round(line.size)) ?? 0) : 0
    const block = blocks.at(-1)
    const continues =
      block &&
      block.level === level &&
      !bullet.test(line.text) &&
      block.last.y - line.y <= paragraphGap * line.size &&
      block.last.y >= line.y
    if (!continues) blocks.push({ text: line.text.replace(bullet, '- '), level, last: line })
    else {
      const isShort = level === 0 && block.last.right < shortLine
      block.text = isShort ? `${block.text}\n${line.text}` : joinLines(block.text, line.text)
      block.last = line
    }
  }
  return blocks.map(({ text, level }) => (level > 0 ? `${'#'.repeat(level)} ${text}` : text))
}

/** Joins two lines of a paragraph. Removes the hyphen of a word that continues in lowercase in the second line. */
function joinLines(first: string, second: string): string {
  if (/\p{L}[-\u00AD]$/u.test(first) && /^\p{Ll}/u.test(second)) return first.slice(0, -1) + second
  return /\p{Lu}-$/u.test(first) && /^\p{Lu}/u.test(second) ? first + second : `${first} ${second}`
}

async function propertiesOf(pdf: Pdf, text: string): Promise<Pick<FileText, 'title' | 'author' | 'date'>> {
  const { info } = await pdf.getMetadata()
  const { Title, Author, ModDate, CreationDate } = info as Partial<
    Record<'Title' | 'Author' | 'ModDate' | 'CreationDate', unknown>
  >
  const declared = titleOf(stringOf(Title))
  const title = declared && !automaticTitle.test(declared) ? declared : titleOf(/^#+ (.+)/.exec(text)?.[1])
  const [, year, month, day] = /^D:(\d{4})(\d{2})(\d{2})/.exec(stringOf(ModDate ?? CreationDate)) ?? []
  return { title, author: titleOf(stringOf(Author)), date: year ? `${year}-${month}-${day}` : null }
}

function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

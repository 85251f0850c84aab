import { BreakList, findBreaks, type TextBreaks } from './breaks.ts'
import { endOfText, lastLine, nextLine, skipSpace } from './space.ts'
import { findTables } from './tables.ts'

/**
 * Types of breaks in a structured text. A break with a higher number is a better place to split. Headings of level 6 to 1 have
 * `heading` to `heading + 5`.
 */
export const structureStrength = {
  line: 1,
  sentence: 2,
  row: 3,
  nested: 4,
  item: 5,
  /** A list, table or code after a line that ends with a colon. */
  introduced: 6,
  block: 7,
  heading: 8,
} as const

/** Maximum length of the part of a line that determines its kind. */
const lineStartChars = 200
const fencePattern = /^ {0,3}(`{3,}|~{3,})/
const headingPattern = /^ {0,3}(#{1,6})(?:\s|$)/
const itemPattern = /^\s*(?:[-*+•]|\d{1,9}[.)])\s/

type LineKind = 'text' | 'item' | 'heading' | 'open' | 'code' | 'close' | 'table'

/**
 * Finds the starts of sections, blocks, list items, table rows, lines and sentences of a Markdown text or of prose.
 *
 * The breaks between a heading and its text, and between the header of a table and its first row, are weak. In fenced code, blank
 * lines are better breaks than others. Takes linear time.
 */
export function findStructure(text: string): TextBreaks {
  const breaks = new BreakList()
  const sentences = new SentenceCursor(findBreaks(text))
  const tables = findTables(text)
  let table = tables.next()
  let openFence: string | undefined
  let before: LineKind | undefined
  let isAfterBlank = false
  let isInList = false
  let endsWithColon = false
  for (let start = 0; start < text.length; ) {
    const end = nextLine(text, start + 1)
    const first = skipSpace(text, start)
    if (first >= end) {
      isAfterBlank = true
      start = first === text.length ? first : lastLine(text, end, first)
      continue
    }
    const line = text.slice(start, Math.min(end, start + lineStartChars))
    while (!table.done && table.value.end <= start) table = tables.next()
    const inTable = !table.done && table.value.start <= start ? table.value : undefined
    let kind: LineKind = 'text'
    let level = 0
    if (openFence !== undefined) {
      const closes = fencePattern.exec(line)?.[1]?.startsWith(openFence) === true
      kind = closes ? 'close' : 'code'
      if (closes) openFence = undefined
    } else if (inTable) kind = 'table'
    else {
      const fence = fencePattern.exec(line)?.[1]
      if (fence && !line.slice(line.indexOf(fence) + fence.length).includes('`')) {
        kind = 'open'
        openFence = fence
      } else {
        level = headingPattern.exec(line)?.[1]?.length ?? 0
        if (level > 0) kind = 'heading'
        else if (itemPattern.test(line)) kind = 'item'
      }
    }
    const isIndented = first - start >= 2
    const isSentence = sentences.takeAt(start)
    if (before !== undefined)
      breaks.add(
        start,
        strengthBefore({
          before,
          kind,
          level,
          isAfterBlank,
          isIndented,
          isInList,
          endsWithColon,
          isSentence,
          isBodyRow: inTable !== undefined && start > inTable.bodyStart,
          isTableStart: inTable?.start === start,
        }),
      )
    if (kind === 'text' || kind === 'item')
      for (const offset of sentences.takeUntil(end)) breaks.add(offset, structureStrength.sentence)
    else sentences.skipUntil(end)
    isInList = kind === 'item' || (isInList && (isIndented || !isAfterBlank) && kind !== 'heading')
    endsWithColon = text[endOfText(text, end) - 1] === ':'
    before = kind
    isAfterBlank = false
    start = end
  }
  return breaks
}

interface LineContext {
  /** Kind of the last line that is not blank. */
  readonly before: LineKind
  readonly kind: LineKind
  /** Level of a heading; 0 for other lines. */
  readonly level: number
  readonly isAfterBlank: boolean
  readonly isIndented: boolean
  readonly isInList: boolean
  readonly endsWithColon: boolean
  readonly isSentence: boolean
  /** True for rows of a table after the first one below its header. */
  readonly isBodyRow: boolean
  readonly isTableStart: boolean
}

/** Returns the strength of the break at the start of a line; 0 for no break. */
function strengthBefore(line: LineContext): number {
  const { before, kind, isAfterBlank, isIndented, isInList } = line
  const { block, introduced, item, nested, row, sentence, heading } = structureStrength
  if (kind === 'close' || before === 'open') return 0
  if (before === 'heading') return structureStrength.line
  if (kind === 'code') return isAfterBlank ? row : structureStrength.line
  if (kind === 'heading') return heading + 6 - line.level
  if (kind === 'table' && !line.isTableStart) return line.isBodyRow ? row : structureStrength.line
  if (isInList && kind === 'item') return isIndented ? nested : item
  if (isInList && isIndented) return isAfterBlank || kind !== 'text' ? nested : structureStrength.line
  const startsBlock = isAfterBlank || kind !== 'text' || before === 'close' || before === 'table'
  if (startsBlock) return line.endsWithColon && kind !== 'text' ? introduced : block
  return line.isSentence ? sentence : structureStrength.line
}

/** Reads ascending breaks of `findBreaks` once. */
class SentenceCursor {
  #at = 0
  constructor(private readonly breaks: TextBreaks) {}

  /** Returns true if there is a break at an offset. Skips it and those before it. */
  takeAt(offset: number): boolean {
    this.skipUntil(offset)
    const { offsets, count } = this.breaks
    if (this.#at === count || offsets[this.#at] !== offset) return false
    this.#at++
    return true
  }

  /** Yields the breaks before an offset. */
  *takeUntil(end: number): Generator<number> {
    const { offsets, count } = this.breaks
    for (; this.#at < count && offsets[this.#at]! < end; this.#at++) yield offsets[this.#at]!
  }

  skipUntil(end: number): void {
    const { offsets, count } = this.breaks
    while (this.#at < count && offsets[this.#at]! < end) this.#at++
  }
}

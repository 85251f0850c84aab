import { Lexer, type Token, type Tokens } from 'marked'

/**
 * A part of a Markdown text that is rendered separately: a paragraph, a heading, a list item, or lines of code. `gap`
 * is true if an empty line comes before it.
 */
export type Block =
  | { readonly kind: 'markdown'; readonly source: string; readonly gap: boolean }
  | {
      readonly kind: 'code'
      readonly lines: readonly string[]
      readonly language: string
      readonly gap: boolean
    }

/** State of reading Markdown that arrives in pieces. Finished blocks are removed, so the lexer reads them only once. */
export interface BlockReader {
  /** Unfinished text; inside a fence, the unfinished line. */
  readonly tail: string
  readonly fence: Fence | undefined
  /** Header of a table that is too long for one block; the next block repeats it. */
  readonly tableHead: string
  /** True if an empty line comes before the next block. */
  readonly gap: boolean
  /** True once a block has been removed. */
  readonly hasStarted: boolean
}

interface Fence {
  readonly mark: string
  readonly indent: number
  readonly language: string
  /** Lines that were not removed yet. */
  readonly lines: readonly string[]
  readonly gap: boolean
}

/** Number of code lines in one block. */
const FENCE_LINES_PER_BLOCK = 16
/** Maximum length of a block; longer blocks are split. */
const TAIL_CHARS_MAX = 4_000

/**
 * Matches deeply nested quotes and lists, on one line or by indentation. Each level uses stack space in the lexer, and
 * real texts have fewer levels.
 */
const deeplyNested = /^(?:(?:[^\S\n]*(?:>|[-*+](?=\s)|\d{1,9}[.)](?=\s))){32}| {128})/m

/** Returns true if Markdown is nested too deeply for the lexer. Show it as plain text. */
export function isTooDeep(source: string): boolean {
  return deeplyNested.test(source)
}

const fenceStart = /^( *)(`{3,}|~{3,})[^\S\n]*([^\s`]*)[^`\n]*$/

export const emptyReader: BlockReader = {
  tail: '',
  fence: undefined,
  tableHead: '',
  gap: false,
  hasStarted: false,
}

interface ReadResult {
  readonly reader: BlockReader
  readonly blocks: readonly Block[]
}

/**
 * Reads the next piece of a text.
 *
 * The time depends on the length of the piece and of the unfinished block, but not on earlier text.
 */
export function readPiece(reader: BlockReader, piece: string): ReadResult {
  const tail = reader.tail + piece
  if (!piece.includes('\n') && tail.length < TAIL_CHARS_MAX)
    return { reader: { ...reader, tail }, blocks: [] }
  return takeAllBlocks({ ...reader, tail })
}

/** Returns the unfinished text as blocks. The next piece can change them. */
export function unfinishedBlocks(reader: BlockReader): Block[] {
  const { fence, tail } = reader
  if (fence) {
    const isCode = tail !== '' && !closesFence(tail, fence)
    const lines = isCode ? [...fence.lines, removeIndent(tail, fence.indent)] : fence.lines
    return lines.length === 0 ? [] : [{ kind: 'code', lines, language: fence.language, gap: fence.gap }]
  }
  if (tail.trim() === '') return []
  const { reader: nextReader, blocks } = takeBlocks({ ...reader, tail: `${tail}\n` })
  if (nextReader.fence) return [...blocks, ...unfinishedBlocks(nextReader)]
  if (nextReader.tail.trim() === '') return [...blocks]
  return [
    ...blocks,
    {
      kind: 'markdown',
      source: nextReader.tableHead + nextReader.tail,
      gap: nextReader.gap && nextReader.hasStarted,
    },
  ]
}

function takeAllBlocks(reader: BlockReader): ReadResult {
  const blocks: Block[] = []
  let current = reader
  for (;;) {
    const step = current.fence ? takeCode(current, current.fence) : takeBlocks(current)
    blocks.push(...step.blocks)
    if (step.reader.fence === current.fence && step.reader.tail === current.tail) break
    current = step.reader
  }
  return { reader: current, blocks }
}

/** Removes finished blocks from a text outside of fences. */
function takeBlocks(reader: BlockReader): ReadResult {
  const end = reader.tail.lastIndexOf('\n') + 1
  const completeText = reader.tableHead + reader.tail.slice(0, end)
  const unfinishedLine = reader.tail.slice(end)
  const tokens: Token[] = tokensOf(completeText)
  const blocks: Block[] = []
  let { gap, hasStarted } = reader
  let consumed = 0
  const add = (raw: string) => {
    blocks.push({ kind: 'markdown', source: raw, gap: hasStarted && (gap || needsGapBefore(raw)) })
    hasStarted = true
    gap = /\n[^\S\n]*\n$/.test(raw)
    consumed += raw.length
  }
  const lastIndex = tokens.findLastIndex(({ type }) => type !== 'space')
  const isEnded = lastIndex < tokens.length - 1
  for (const [index, token] of tokens.entries()) {
    const isLast = index === lastIndex
    const opening = token.type === 'code' ? parseFence(token.raw) : undefined
    if (token.type === 'space') {
      gap = true
      consumed += token.raw.length
    } else if (opening) {
      const tail = completeText.slice(consumed + opening.start) + unfinishedLine
      return {
        reader: {
          tail,
          fence: { ...opening.fence, gap: hasStarted },
          tableHead: '',
          gap: false,
          hasStarted: true,
        },
        blocks,
      }
    } else if (token.type === 'list') {
      const items = (token as Tokens.List).items
      const finished = isLast ? items.slice(0, -1) : items
      const start = consumed
      for (const { raw } of finished) add(raw)
      if (isLast) break
      // Newlines after the last item belong to the list.
      consumed = start + token.raw.length
    } else if (!isLast || isFinished(token, isEnded)) add(token.raw)
    else break
  }
  const remaining = completeText.slice(consumed)
  const isBlank = remaining.trim() === ''
  if (isBlank && remaining !== '') gap = true
  const tail = isBlank ? unfinishedLine : remaining + unfinishedLine
  const isInTable = consumed === 0 && reader.tableHead !== ''
  const nextReader = {
    tail: isInTable ? reader.tail : tail,
    fence: undefined,
    gap,
    hasStarted,
    tableHead: isInTable ? reader.tableHead : '',
  }
  if (nextReader.tail.length < TAIL_CHARS_MAX) return { reader: nextReader, blocks }
  const split = splitLongBlock(nextReader)
  return { reader: split.reader, blocks: [...blocks, ...split.blocks] }
}

function tokensOf(source: string): Token[] {
  if (source.trim() === '') return []
  if (isTooDeep(source)) return [{ type: 'html', raw: source, text: source }]
  return new Lexer().blockTokens(source, [])
}

/**
 * Returns true if a last block other than a list cannot continue. Indented code can continue after an empty line; other
 * blocks end there.
 */
function isFinished({ type, raw }: Token, isEnded: boolean): boolean {
  if (type === 'heading' || type === 'hr') return isEnded || raw.endsWith('\n')
  return isEnded && type !== 'code'
}

function needsGapBefore(raw: string): boolean {
  return /^ {0,3}(?:#{1,6}\s|\|)/.test(raw)
}

/** Returns the fence at the start of a code block, and the offset of its first line. */
function parseFence(raw: string): { fence: Omit<Fence, 'gap'>; start: number } | undefined {
  const end = raw.indexOf('\n')
  const [, indent = '', mark = '', language = ''] = fenceStart.exec(end < 0 ? raw : raw.slice(0, end)) ?? []
  if (mark === '' || end < 0) return undefined
  return { fence: { mark, indent: indent.length, language, lines: [] }, start: end + 1 }
}

/** Removes finished lines of code, up to the end of the fence. */
function takeCode(reader: BlockReader, fence: Fence): ReadResult {
  const end = reader.tail.lastIndexOf('\n') + 1
  const completeLines = reader.tail.slice(0, end).split('\n').slice(0, -1)
  const blocks: Block[] = []
  let { lines, gap } = fence
  const emitLines = (count: number) => {
    blocks.push({ kind: 'code', lines: lines.slice(0, count), language: fence.language, gap })
    lines = lines.slice(count)
    gap = false
  }
  for (const [index, line] of completeLines.entries()) {
    if (closesFence(line, fence)) {
      if (lines.length > 0) emitLines(lines.length)
      const tail =
        completeLines
          .slice(index + 1)
          .map(rest => `${rest}\n`)
          .join('') + reader.tail.slice(end)
      return { reader: { tail, fence: undefined, tableHead: '', gap: true, hasStarted: true }, blocks }
    }
    lines = [...lines, removeIndent(line, fence.indent)]
    if (lines.length >= 2 * FENCE_LINES_PER_BLOCK) emitLines(FENCE_LINES_PER_BLOCK)
  }
  const tail = reader.tail.slice(end)
  const keepsTail = tail.length < TAIL_CHARS_MAX
  if (!keepsTail) lines = [...lines, removeIndent(tail, fence.indent)]
  if (completeLines.length === 0 && keepsTail) return { reader, blocks }
  return { reader: { ...reader, tail: keepsTail ? tail : '', fence: { ...fence, lines, gap } }, blocks }
}

function closesFence(line: string, { mark }: Fence): boolean {
  const text = line.trim()
  return text.length >= mark.length && text === mark[0]!.repeat(text.length)
}

function removeIndent(line: string, indent: number): string {
  return line.replace(new RegExp(`^ {0,${indent}}`), '')
}

/**
 * Splits a block that is too long. It is split after a line or, if that is not possible, after a word. The rest of a
 * table repeats the header, and the rest of a code block stays code.
 */
function splitLongBlock(reader: BlockReader): ReadResult {
  const { tail, gap, hasStarted, tableHead } = reader
  const splitIndex = findSplit(tail)
  const piece = tableHead + tail.slice(0, splitIndex)
  const remainingTail = tail.slice(splitIndex)
  const block: Block = { kind: 'markdown', source: piece, gap: hasStarted && gap }
  const remaining = { tail: remainingTail, tableHead: '', gap: false, hasStarted: true }
  const openFence = findOpenFence(piece)
  if (openFence)
    return { reader: { ...remaining, fence: { ...openFence, lines: [], gap: false } }, blocks: [block] }
  const head = /^([^\n]*\|[^\n]*\n[ \t]*\|?[ \t:|-]*-[ \t:|-]*\n)/.exec(piece)?.[1] ?? ''
  return { reader: { ...remaining, fence: undefined, tableHead: head }, blocks: [block] }
}

function findSplit(tail: string): number {
  const lineStart = tail.lastIndexOf('\n') + 1
  if (lineStart > TAIL_CHARS_MAX / 2) return lineStart
  const wordStart = tail.lastIndexOf(' ') + 1
  return wordStart > TAIL_CHARS_MAX / 2 ? wordStart : tail.length
}

/** Returns the fence that a piece opens and does not close. */
function findOpenFence(piece: string): Omit<Fence, 'gap' | 'lines'> | undefined {
  let openFence: Omit<Fence, 'gap' | 'lines'> | undefined
  for (const line of piece.split('\n')) {
    const [, indent = '', mark = '', language = ''] = fenceStart.exec(line) ?? []
    if (openFence) {
      if (closesFence(line, { ...openFence, lines: [], gap: false })) openFence = undefined
    } else if (mark !== '') openFence = { mark, indent: indent.length, language }
  }
  return openFence
}

/** Returns the blocks of a complete text. */
export function blocksOf(text: string): Block[] {
  const { reader, blocks } = readPiece(emptyReader, text.endsWith('\n') ? text : `${text}\n`)
  return [...blocks, ...unfinishedBlocks(reader)]
}

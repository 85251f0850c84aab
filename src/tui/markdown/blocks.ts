import { Lexer, type Token, type Tokens } from 'marked'

/** A part of a Markdown text that is rendered alone: a paragraph, a heading, a list item, or lines of code. */
export type Block =
  | { readonly kind: 'markdown'; readonly source: string; readonly gap: boolean }
  | {
      readonly kind: 'code'
      readonly lines: readonly string[]
      readonly language: string
      readonly gap: boolean
    }

/** Markdown that arrives in pieces. Finished blocks are removed, so they are lexed only once. */
export interface BlockReader {
  /** Unfinished text; in a fence, the unfinished line. */
  readonly tail: string
  readonly fence: Fence | undefined
  /** Head of a table that was too long for one block. */
  readonly tableHead: string
  /** An empty line comes before the next block. */
  readonly gap: boolean
  /** A block was removed already. */
  readonly begun: boolean
}

interface Fence {
  readonly mark: string
  readonly indent: number
  readonly language: string
  /** Lines that are not removed yet. */
  readonly lines: readonly string[]
  readonly gap: boolean
}

/** Lines of a fence in one block. */
const FENCE_LINES_PER_BLOCK = 16
/** Longer blocks are split. */
const TAIL_CHARS_MAX = 4_000

/**
 * Nested quotes and lists, on one line or by indentation. Each level takes some of the stack, and real texts have fewer
 * levels.
 */
const deeplyNested = /^(?:(?:[^\S\n]*(?:>|[-*+](?=\s)|\d{1,9}[.)](?=\s))){32}| {128})/m

/** Returns true if a text is nested too deeply to be lexed. It is shown as plain text. */
export function isTooDeep(source: string): boolean {
  return deeplyNested.test(source)
}

const fenceStart = /^( *)(`{3,}|~{3,})[^\S\n]*([^\s`]*)[^`\n]*$/

export const emptyReader: BlockReader = {
  tail: '',
  fence: undefined,
  tableHead: '',
  gap: false,
  begun: false,
}

interface ReadResult {
  readonly reader: BlockReader
  readonly blocks: readonly Block[]
}

/**
 * Reads the next piece of a text.
 *
 * The time depends on the length of the piece and of the unfinished block, and not on the text before them.
 */
export function readPiece(reader: BlockReader, piece: string): ReadResult {
  const tail = reader.tail + piece
  if (!piece.includes('\n') && tail.length < TAIL_CHARS_MAX)
    return { reader: { ...reader, tail }, blocks: [] }
  return takeAllBlocks({ ...reader, tail })
}

/** Returns the unfinished text as blocks, which the next piece can change. */
export function unfinishedBlocks(reader: BlockReader): Block[] {
  const { fence, tail } = reader
  if (fence) {
    const lines = tail === '' ? fence.lines : [...fence.lines, removeIndent(tail, fence.indent)]
    return lines.length === 0 ? [] : [{ kind: 'code', lines, language: fence.language, gap: fence.gap }]
  }
  if (tail.trim() === '') return []
  const { reader: rest, blocks } = takeBlocks({ ...reader, tail: `${tail}\n` })
  if (rest.fence) return [...blocks, ...unfinishedBlocks(rest)]
  if (rest.tail.trim() === '') return [...blocks]
  return [...blocks, { kind: 'markdown', source: rest.tableHead + rest.tail, gap: rest.gap && rest.begun }]
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
  const whole = reader.tableHead + reader.tail.slice(0, end)
  const open = reader.tail.slice(end)
  const tokens: Token[] = tokensOf(whole)
  const blocks: Block[] = []
  let { gap, begun } = reader
  let used = 0
  const add = (raw: string) => {
    blocks.push({ kind: 'markdown', source: raw, gap: begun && (gap || needsGapBefore(raw)) })
    begun = true
    gap = /\n[^\S\n]*\n$/.test(raw)
    used += raw.length
  }
  const last = tokens.findLastIndex(({ type }) => type !== 'space')
  const isEnded = last < tokens.length - 1
  for (const [at, token] of tokens.entries()) {
    const isLast = at === last
    const fence = token.type === 'code' ? parseFence(token.raw) : undefined
    if (token.type === 'space') {
      gap = true
      used += token.raw.length
    } else if (fence) {
      const tail = whole.slice(used + fence.start) + open
      return {
        reader: { tail, fence: { ...fence.of, gap: begun }, tableHead: '', gap: false, begun: true },
        blocks,
      }
    } else if (token.type === 'list') {
      const items = (token as Tokens.List).items
      const finished = isLast ? items.slice(0, -1) : items
      const start = used
      for (const { raw } of finished) add(raw)
      if (isLast) break
      // Newlines after the last item belong to the list.
      used = start + token.raw.length
    } else if (!isLast || isFinished(token, isEnded)) add(token.raw)
    else break
  }
  const left = whole.slice(used)
  const isBlank = left.trim() === ''
  if (isBlank && left !== '') gap = true
  const tail = isBlank ? open : left + open
  const isTabled = used === 0 && reader.tableHead !== ''
  const rest = {
    tail: isTabled ? reader.tail : tail,
    fence: undefined,
    gap,
    begun,
    tableHead: isTabled ? reader.tableHead : '',
  }
  if (rest.tail.length < TAIL_CHARS_MAX) return { reader: rest, blocks }
  const cutting = splitLongBlock(rest)
  return { reader: cutting.reader, blocks: [...blocks, ...cutting.blocks] }
}

function tokensOf(source: string): Token[] {
  if (source.trim() === '') return []
  if (isTooDeep(source)) return [{ type: 'html', raw: source, text: source }]
  return new Lexer().blockTokens(source, [])
}

/** Indented code can continue after an empty line; other blocks except lists end there. */
function isFinished({ type, raw }: Token, isEnded: boolean): boolean {
  if (type === 'heading' || type === 'hr') return isEnded || raw.endsWith('\n')
  return isEnded && type !== 'code'
}

function needsGapBefore(raw: string): boolean {
  return /^ {0,3}(?:#{1,6}\s|\|)/.test(raw)
}

/** Returns the fence at the start of a code block, and the offset of its first line. */
function parseFence(raw: string): { of: Omit<Fence, 'gap'>; start: number } | undefined {
  const end = raw.indexOf('\n')
  const [, indent = '', mark = '', language = ''] = fenceStart.exec(end < 0 ? raw : raw.slice(0, end)) ?? []
  if (mark === '' || end < 0) return undefined
  return { of: { mark, indent: indent.length, language, lines: [] }, start: end + 1 }
}

/** Removes finished lines of code, up to the end of the fence. */
function takeCode(reader: BlockReader, fence: Fence): ReadResult {
  const end = reader.tail.lastIndexOf('\n') + 1
  const complete = reader.tail.slice(0, end).split('\n').slice(0, -1)
  const blocks: Block[] = []
  let { lines, gap } = fence
  const takeOff = (count: number) => {
    blocks.push({ kind: 'code', lines: lines.slice(0, count), language: fence.language, gap })
    lines = lines.slice(count)
    gap = false
  }
  for (const [at, line] of complete.entries()) {
    if (closesFence(line, fence)) {
      if (lines.length > 0) takeOff(lines.length)
      const tail =
        complete
          .slice(at + 1)
          .map(rest => `${rest}\n`)
          .join('') + reader.tail.slice(end)
      return { reader: { tail, fence: undefined, tableHead: '', gap: true, begun: true }, blocks }
    }
    lines = [...lines, removeIndent(line, fence.indent)]
    if (lines.length >= 2 * FENCE_LINES_PER_BLOCK) takeOff(FENCE_LINES_PER_BLOCK)
  }
  const tail = reader.tail.slice(end)
  const kept = tail.length < TAIL_CHARS_MAX
  if (!kept) lines = [...lines, removeIndent(tail, fence.indent)]
  if (complete.length === 0 && kept) return { reader, blocks }
  return { reader: { ...reader, tail: kept ? tail : '', fence: { ...fence, lines, gap } }, blocks }
}

function closesFence(line: string, { mark }: Fence): boolean {
  const text = line.trim()
  return text.length >= mark.length && text === mark[0]!.repeat(text.length)
}

function removeIndent(line: string, indent: number): string {
  return line.replace(new RegExp(`^ {0,${indent}}`), '')
}

/** Splits a block that is too long, after a line or a word. A table continues with its head, and code as code. */
function splitLongBlock(reader: BlockReader): ReadResult {
  const { tail, gap, begun, tableHead } = reader
  const at = findSplit(tail)
  const piece = tableHead + tail.slice(0, at)
  const rest = tail.slice(at)
  const block: Block = { kind: 'markdown', source: piece, gap: begun && gap }
  const cutOff = { tail: rest, tableHead: '', gap: false, begun: true }
  const inside = findOpenFence(piece)
  if (inside) return { reader: { ...cutOff, fence: { ...inside, lines: [], gap: false } }, blocks: [block] }
  const head = /^([^\n]*\|[^\n]*\n[ \t]*\|?[ \t:|-]*-[ \t:|-]*\n)/.exec(piece)?.[1] ?? ''
  return { reader: { ...cutOff, fence: undefined, tableHead: head }, blocks: [block] }
}

function findSplit(tail: string): number {
  const line = tail.lastIndexOf('\n') + 1
  if (line > TAIL_CHARS_MAX / 2) return line
  const word = tail.lastIndexOf(' ') + 1
  return word > TAIL_CHARS_MAX / 2 ? word : tail.length
}

/** Returns the fence that a piece opens and does not close. */
function findOpenFence(piece: string): Omit<Fence, 'gap' | 'lines'> | undefined {
  let open: Omit<Fence, 'gap' | 'lines'> | undefined
  for (const line of piece.split('\n')) {
    const [, indent = '', mark = '', language = ''] = fenceStart.exec(line) ?? []
    if (open) {
      if (closesFence(line, { ...open, lines: [], gap: false })) open = undefined
    } else if (mark !== '') open = { mark, indent: indent.length, language }
  }
  return open
}

/** Returns the blocks of a complete text. */
export function blocksOf(text: string): Block[] {
  const { reader, blocks } = readPiece(emptyReader, text.endsWith('\n') ? text : `${text}\n`)
  return [...blocks, ...unfinishedBlocks(reader)]
}

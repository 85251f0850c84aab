import { BreakList, type TextBreaks } from './breaks.ts'
import { lastLine, nextLine, skipSpace } from './space.ts'
import { structureStrength } from './structure-breaks.ts'

/** File names of source code, and of data whose indentation shows its structure. */
const codeNames =
  /(?:^|[/\\])(?:Dockerfile|Makefile|Rakefile|Gemfile)$|\.(?:[cm]?[jt]sx?|pyi?|rb|go|rs|java|kts?|scala|groovy|gradle|c|h|cc|cpp|hpp|cxx|hh|cs|fs|swift|php|p[lm]|lua|r|jl|dart|exs?|erl|hs|mli?|clj[sc]?|el|lisp|sh|bash|zsh|fish|ps1|bat|sql|vue|svelte|s?css|less|proto|thrift|tf|hcl|toml|ya?ml|json|xml|ini|cfg|conf|nix|zig)$/i

/** Returns true if a file is source code, by its name. */
export function isCodeFile(fileName: string | null): boolean {
  return codeNames.test(fileName ?? '')
}

/** Number of columns of a tab. */
const tabColumns = 4
/** Maximum number of columns of an indentation that are counted. */
const columnsMax = 200
/** Number of lines from which the width of an indentation step is derived. */
const sampleLines = 500

/**
 * Finds the starts of lines in source code of any language. The best ones follow a blank line: the less a line is indented, the
 * better, so that functions and classes stay whole. Lines that close a block are the worst. Takes linear time.
 */
export function findCodeBreaks(text: string): TextBreaks {
  const { line, sentence, row, block } = structureStrength
  const breaks = new BreakList()
  const step = indentationStep(text)
  let before: number | undefined
  let isAfterBlank = false
  for (const { start, first, columns } of codeLines(text)) {
    if (first === undefined) {
      isAfterBlank = true
      continue
    }
    const depth = Math.ceil(columns / step)
    const closes = /^(?:[})\]]|end\b)/.test(text.slice(first, first + 4))
    if (before !== undefined) {
      if (closes) breaks.add(start, line)
      else if (isAfterBlank) breaks.add(start, Math.max(row + 1, block - depth))
      else breaks.add(start, depth === 0 && before > 0 ? row : depth <= before ? sentence : line)
    }
    before = depth
    isAfterBlank = false
  }
  return breaks
}

/** Returns the smallest indentation of the first lines in columns, or that of a tab. */
function indentationStep(text: string): number {
  let step = 0
  let lines = 0
  for (const { first, columns } of codeLines(text)) {
    if (lines++ === sampleLines) break
    if (first !== undefined && columns > 1 && (step === 0 || columns < step)) step = columns
  }
  return step || tabColumns
}

interface CodeLine {
  readonly start: number
  /** Offset of the first character that is not white space; undefined for blank lines, which are one entry. */
  readonly first: number | undefined
  readonly columns: number
}

function* codeLines(text: string): Generator<CodeLine> {
  for (let start = 0; start < text.length; ) {
    const end = nextLine(text, start + 1)
    const first = skipSpace(text, start)
    if (first < end) {
      yield { start, first, columns: columnsOf(text, start, first) }
      start = end
    } else {
      yield { start, first: undefined, columns: 0 }
      start = first === text.length ? first : lastLine(text, end, first)
    }
  }
}

function columnsOf(text: string, start: number, first: number): number {
  let columns = 0
  for (let offset = start; offset < first && columns < columnsMax; offset++)
    columns += text[offset] === '\t' ? tabColumns : 1
  return columns
}

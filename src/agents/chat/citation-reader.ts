import { stopwords } from '../../base/words.ts'
import type { Citation } from '../../contract/chat.ts'
import type { Citations } from './citations.ts'

/**
 * Maximum amount by which an invented citation exceeds the highest citation number. A larger number in brackets is
 * probably a year or a size, and is not removed.
 */
const inventedDistanceMax = 20

const numberOrRange = String.raw`\d{1,4}(?: ?[-–] ?\d{1,4})?`
const numberSequence = `${numberOrRange}(?: ?[,;] ?${numberOrRange}){0,15}`
/** `[1]`, `[1, 2]`, `[1; 2]`, `[1-3]`, `[^1]`, `【1】` or `【1†source】`. */
const citationGroup = String.raw`(?:\[(?:\^\d{1,4}|${numberSequence})\]|【${numberSequence}(?:†[^【】\n]{0,60})?】)`
const citationGroups = new RegExp(citationGroup, 'g')
/** A run of consecutive citation groups, with the spaces before it. */
const citationRun = new RegExp(`( {0,200})((?:${citationGroup}(?: ?${citationGroup}){0,15})?)`, 'y')
/** An incomplete run at the end of the received text. The next piece may continue it. */
const incompleteCitationRun = new RegExp(
  ` {0,199}(?:${citationGroup} ?){0,15}(?:\\[[\\d^,;–\\- ]{0,200}|【[^【】\\n]{0,260})?$`,
  'y',
)

const lineMarker = String.raw`(?:[ \t>]|[-*+](?=[ \t])|\d{1,9}[.)](?=[ \t]))`
/** Indentation, quotes and list items before the text of a line. */
const lineHead = new RegExp(`${lineMarker}{0,60}`, 'y')
const incompleteLineHead = new RegExp(`${lineMarker}{0,60}(?:[-*+]|\\d{1,9}[.)]?|\`{1,200}|~{1,200})?$`, 'y')
/** The first line of a code block. Its info string contains no backtick. @see CommonMark 4.5 */
const fenceLine = /(?:(`{3,})[^`\n]*|(~{3,})[^\n]*)(?=\n|$)/y
/**
 * Maximum length for which an incomplete first line of a code block is buffered. A longer line is classified without
 * waiting for its end.
 */
const fenceCharsMax = 1_000
const indentation = /^ {0,60}(?: {4}|\t)/
const listMarker = /[-*+\d]/
/** Maximum length of a run of backticks. A longer run is read as several runs. */
const backticksMax = 200
const backticks = new RegExp(`\`{1,${backticksMax}}`, 'y')
const texCommand = /\\[a-z]{1,5}/iy
const htmlTag = /<(\/?)([a-z]{0,10})/iy
/** HTML elements whose text is code. */
const codeElements = { block: /^(?:pre|script|style|textarea)$/, inline: /^(?:code|kbd|samp|var|math)$/ }
/** Characters that follow a citation at the end of a phrase. */
const phraseEnds = '\n.,;!?)。，、；！？）'
const plainText = /[^\n`$\\<=[【 ]+/y

/** Number of characters before a citation that are examined. */
const tailChars = 40
/** Matches text after which a number in brackets is a value or a label, not a citation. */
const beforeValue = /(?:[=:,([{|<∈]| [-+*/>])$/
/** Matches text after which a list of numbers in brackets is an array or an interval. */
const beforeArray = /(?:[=,[{<∈]| [-+*/>]|["']:|\w\()$/
const lastWord = /\p{L}+$/u
/** Words that precede a number that is a name or a value, as in "press [5]" or "returns [5]". */
const namingWords = new Set(
  `answer argument array button chapter choose chosen click column element enter equals equation exercise figure gives
   index input item key level line list number option output outputs page part press prints question result return
   returned returns row section select set sets step table tuple type value values vector version yields`.split(
    /\s+/,
  ),
)

/** State of the current line. */
interface LineState {
  isStart: boolean
  /** True if nothing has followed the line head yet. */
  isBlank: boolean
  /** True if a letter or digit has followed the line head. */
  hasWord: boolean
  isIndented: boolean
  /** True if the line contains characters that suggest a formula. */
  isTechnical: boolean
}

const newLine = (): LineState => ({
  isStart: true,
  isBlank: true,
  hasWord: false,
  isIndented: false,
  isTechnical: false,
})

/** Surroundings of a run of citations. */
interface RunSurroundings {
  /** True if the line is not indented code, and nothing before the run suggests a formula. */
  readonly isProse: boolean
  /** True if the run directly follows a word or bracket, like an array index. */
  readonly isAttached: boolean
  /** True if a list of numbers at this position is an array. */
  readonly isArray: boolean
  /** True if a citation can follow the text before the run, and punctuation or the end of the line follows the run. */
  readonly endsPhrase: boolean
}

/** Number of characters read from the input, and the text that replaces them, if any. */
interface ReadStep {
  readonly length: number
  readonly text?: string
}

/**
 * Reads a streamed answer in Markdown. Collects the passages that it cites, rewrites citations in the form `[1]`, and
 * removes invented citations. A number is removed only if it looks like a citation and is close to the numbers in use.
 * Everything else stays unchanged: code, formulas, links, years, ranges and lists.
 */
export class CitationReader {
  readonly #citations: Citations
  readonly #usedNumbers = new Set<number>()
  #pending = ''
  #line = newLine()
  /** The marks that close the current code block. */
  #fence: string | undefined
  /** The mark that closes the current formula or HTML element. */
  #closingMark: string | undefined
  /** The backticks that close the current code span. */
  #codeSpan: string | undefined
  /** Last characters of the input so far. */
  #tail = '\n'
  /** Number of invented citations that were removed. */
  removedCount = 0

  constructor(citations: Citations) {
    this.#citations = citations
  }

  /** The passages that the answer cites, sorted by number. */
  get citedPassages(): Citation[] {
    return [...this.#usedNumbers].sort((a, b) => a - b).map(number => this.#citations.get(number)!)
  }

  /** Reads the next piece of the answer. Returns the text that later pieces cannot change. */
  read(piece: string): string {
    return this.#advance(this.#pending + piece, false)
  }

  /** Ends the answer, and returns the rest of its text. */
  end(): string {
    return this.#advance(this.#pending, true)
  }

  #advance(text: string, isEnd: boolean): string {
    let [at, read] = [0, '']
    while (at < text.length) {
      const isHead = this.#line.isStart
      const step = this.#step(text, at, isEnd)
      if (!step) break
      const piece = text.slice(at, at + step.length)
      read += step.text ?? piece
      if (!isHead) {
        this.#line.isBlank &&= piece.trim() === ''
        this.#line.hasWord ||= /[\p{L}\p{N}]/u.test(piece)
      }
      this.#tail = (this.#tail + piece.slice(-tailChars)).slice(-tailChars)
      at += step.length
    }
    this.#pending = text.slice(at)
    return read
  }

  /** Returns undefined if the next step depends on text that has not arrived. */
  #step(text: string, at: number, isEnd: boolean): ReadStep | undefined {
    if (this.#line.isStart) return this.#readLineHead(text, at, isEnd)
    const next = text[at]!
    if (next === '\n') return this.#endLine()
    if (this.#fence) return { length: lengthUntil('\n', text, at) }
    if (next === ' ' || next === '[' || next === '【') return this.#readRun(text, at, isEnd)
    if (next === '`') return this.#readBackticks(text, at, isEnd)
    if (next === '$' || next === '\\') return this.#readFormulaMark(text, at, isEnd)
    if (next === '<') return this.#readTag(text, at, isEnd)
    if (next === '=') {
      this.#line.isTechnical = true
      return { length: 1 }
    }
    return { length: matchAt(plainText, text, at)![0].length }
  }

  #endLine(): ReadStep {
    if (this.#line.isBlank) this.#endParagraph()
    this.#line = newLine()
    return { length: 1 }
  }

  #endParagraph(): void {
    this.#codeSpan = undefined
    if (!codeElements.block.test(this.#closingMark?.slice(2) ?? '')) this.#closingMark = undefined
  }

  #readLineHead(text: string, at: number, isEnd: boolean): ReadStep | undefined {
    if (!isEnd && matchAt(incompleteLineHead, text, at)) return undefined
    const head = matchAt(lineHead, text, at)![0]
    const from = at + head.length
    let length = head.length
    if (text.startsWith('```', from) || text.startsWith('~~~', from)) {
      const end = text.indexOf('\n', from)
      if (end < 0 && !isEnd && text.length - from < fenceCharsMax) return undefined
      // Only indentation and quote marks can precede the end of a code block.
      if (!this.#fence || !listMarker.test(head)) length += this.#readFence(text, from)
    }
    if (listMarker.test(head)) this.#codeSpan = undefined
    this.#line.isStart = false
    this.#line.isIndented = indentation.test(head)
    return { length }
  }

  /** Returns the length of the marks that start or end a code block; 0 for other text. */
  #readFence(text: string, at: number): number {
    const marks = matchAt(fenceLine, text, at)?.slice(1).find(Boolean)
    if (!marks) return 0
    if (!this.#fence) {
      this.#fence = marks
      this.#codeSpan = undefined
      return marks.length
    }
    const isRestBlank = text.slice(at + marks.length, at + lengthUntil('\n', text, at)).trim() === ''
    if (!marks.startsWith(this.#fence) || !isRestBlank) return 0
    this.#fence = undefined
    return marks.length
  }

  /** Reads backticks. A code span ends at the same number of backticks, or with its paragraph or list item. */
  #readBackticks(text: string, at: number, isEnd: boolean): ReadStep | undefined {
    const marks = matchAt(backticks, text, at)![0]
    if (at + marks.length === text.length && marks.length < backticksMax && !isEnd) return undefined
    if (this.#codeSpan === marks) this.#codeSpan = undefined
    else this.#codeSpan ??= marks
    return { length: marks.length }
  }

  /**
   * Reads the mark that opens or closes a formula: `$$`, `\[` and `\]`, `\(` and `\)`, or `\begin` and `\end`. A
   * formula ends with its paragraph at the latest.
   */
  #readFormulaMark(text: string, at: number, isEnd: boolean): ReadStep | undefined {
    if (at + 1 === text.length && !isEnd) return undefined
    const name = matchAt(texCommand, text, at)?.[0]
    if (name && at + name.length === text.length && name.length < '\\begin'.length && !isEnd) return undefined
    const mark = name ?? text.slice(at, at + 2)
    if (mark[0] === '$' && mark !== '$$') {
      this.#line.isTechnical = true
      return { length: 1 }
    }
    if (mark === '\\\n' || this.#codeSpan) return { length: 1 }
    if (name) this.#line.isTechnical = true
    if (mark === this.#closingMark) this.#closingMark = undefined
    else this.#closingMark ??= closingMarks[mark]
    return { length: mark.length }
  }

  #readTag(text: string, at: number, isEnd: boolean): ReadStep | undefined {
    const [whole, slash, name] = (matchAt(htmlTag, text, at) ?? ['<', '', '']) as [string, string, string]
    if (at + whole.length === text.length && !isEnd && name.length < 10) return undefined
    const element = name.toLowerCase()
    const isCode = codeElements.block.test(element) || codeElements.inline.test(element)
    if (isCode && !this.#codeSpan) {
      if (slash === '') this.#closingMark ??= `</${element}`
      else if (this.#closingMark === `</${element}`) this.#closingMark = undefined
    }
    return { length: whole.length }
  }

  #readRun(text: string, at: number, isEnd: boolean): ReadStep | undefined {
    if (!isEnd && matchAt(incompleteCitationRun, text, at)) return undefined
    const [whole, blanks, groups] = matchAt(citationRun, text, at) as unknown as [string, string, string]
    if (groups === '') return { length: whole.length || 1 }
    const after = text[at + whole.length] ?? '\n'
    const isDefinition = after === ':' && this.#line.isBlank
    if (this.#closingMark || this.#codeSpan || isDefinition || '({'.includes(after))
      return { length: whole.length }
    const before = this.#line.isBlank ? '' : this.#tail.trimEnd()
    const cleaned = this.#cleanRun(groups, {
      isProse: !this.#line.isIndented && !this.#line.isTechnical,
      isAttached: blanks === '' && /[\w\])]$/.test(this.#tail),
      isArray: beforeArray.test(before) || after === ']',
      endsPhrase: phraseEnds.includes(after) && this.#line.hasWord && canPrecedeCitation(before),
    })
    return { length: whole.length, text: cleaned === '' ? '' : blanks + cleaned }
  }

  /** Rewrites known citations in the form `[1]`, and removes invented ones. */
  #cleanRun(groups: string, { isProse, isAttached, isArray, endsPhrase }: RunSurroundings): string {
    const areKnown = (numbers: readonly number[]) => numbers.every(number => this.#citations.get(number))
    const hasKnown = [...groups.matchAll(citationGroups)].some(([group]) => areKnown(citedNumbers(group)))
    const text = groups.replace(citationGroups, group => {
      const numbers = citedNumbers(group)
      const isIndex = isAttached && /^\[\d/.test(group)
      if (areKnown(numbers)) {
        if ((isIndex || isArray) && numbers.length > 1) return group
        for (const number of numbers) this.#usedNumbers.add(number)
        return isProse ? numbers.map(number => `[${number}]`).join('') : group
      }
      if (!isProse || isIndex || !this.#isInvented(group, endsPhrase || hasKnown)) return group
      this.removedCount++
      return ''
    })
    return text === groups ? text : text.replace(/ +/g, ' ').trim()
  }

  /** @param isLikely  true if a citation is plausible at this position; ignored for a group with a dagger */
  #isInvented(group: string, isLikely: boolean): boolean {
    const { highestNumber } = this.#citations
    const [number, ...others] = citedNumbers(group)
    if (highestNumber === 0 || number! <= highestNumber || others.length > 0 || group.startsWith('[^'))
      return false
    return group.includes('†') || (isLikely && number! <= highestNumber + inventedDistanceMax)
  }
}

const closingMarks: Readonly<Record<string, string>> = {
  $$: '$$',
  '\\[': '\\]',
  '\\(': '\\)',
  '\\begin': '\\end',
}

/** Returns false if the text before a number in brackets suggests a value, a label, or a part of the sentence. */
function canPrecedeCitation(before: string): boolean {
  const word = lastWord.exec(before)?.[0].toLowerCase() ?? ''
  return !beforeValue.test(before) && !stopwords.has(word) && !namingWords.has(word)
}

/**
 * Returns the numbers of a group, for example 1, 2, 3 and 5 for `[1-3, 5]`. For an invalid range, includes 0, which is
 * never a citation number.
 */
function citedNumbers(group: string): number[] {
  const [numberList] = group.slice(1, -1).replace('^', '').split('†')
  return numberList!.split(/[,;]/).flatMap(each => {
    const [from, to = from] = each.split(/[-–]/).map(Number) as [number, number?]
    if (to < from || to - from > inventedDistanceMax) return [0, to]
    return Array.from({ length: to - from + 1 }, (_, at) => from + at)
  })
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at
  return pattern.exec(text)
}

function lengthUntil(mark: string, text: string, at: number): number {
  const end = text.indexOf(mark, at)
  return (end < 0 ? text.length : end) - at
}

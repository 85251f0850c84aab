import type { Citation } from '../../contract/chat.ts'
import type { Citations } from './citations.ts'

/** A number at most this far above the last one in use can be an invented citation. A larger one is a year or a size. */
const inventedMax = 20

const item = String.raw`\d{1,4}(?: ?[-–] ?\d{1,4})?`
const list = `${item}(?: ?[,;] ?${item}){0,15}`
/** `[1]`, `[1, 2]`, `[1; 2]`, `[1-3]`, `[^1]`, `【1】` or `【1†source】`. */
const group = String.raw`(?:\[(?:\^\d{1,4}|${list})\]|【${list}(?:†[^【】\n]{0,60})?】)`
const groupAnywhere = new RegExp(group, 'g')
/** Groups that follow each other, and the blanks before them. */
const run = new RegExp(`( {0,200})((?:${group}(?: ?${group}){0,15})?)`, 'y')
/** The beginning of a run at the end of the received text, which the next piece may continue. */
const begunRun = new RegExp(
  ` {0,199}(?:${group} ?){0,15}(?:\\[[\\d^,;–\\- ]{0,200}|【[^【】\\n]{0,260})?$`,
  'y',
)

const marker = String.raw`(?:[ \t>]|[-*+](?=[ \t])|\d{1,9}[.)](?=[ \t]))`
/** Indentation, quotes and list items before the text of a line. */
const lineHead = new RegExp(`${marker}{0,60}`, 'y')
const begunLineHead = new RegExp(`${marker}{0,60}(?:[-*+]|\\d{1,9}[.)]?|\`{1,200}|~{1,200})?$`, 'y')
/** The first line of a code block. Its info string contains no backtick. @see CommonMark 4.5 */
const fenceLine = /(?:(`{3,})[^`\n]*|(~{3,})[^\n]*)(?=\n|$)/y
/** First line of a code block that is waited for; of a longer one, what has arrived decides. */
const fenceCharsMax = 1_000
const indentation = /^ {0,60}(?: {4}|\t)/
/** Characters that follow a citation at the end of a phrase. */
const closers = '\n.,;:!?)。，、；：！？）'
const plain = /[^\n`$\\[【 ]+/y

/** State of the current line. */
interface LineState {
  isStart: boolean
  /** No text has followed the head of the line. */
  isBlank: boolean
  isIndented: boolean
  isInlineCode: boolean
  hasDollar: boolean
}

const newLine = (): LineState => ({
  isStart: true,
  isBlank: true,
  isIndented: false,
  isInlineCode: false,
  hasDollar: false,
})

/** Surroundings of a run of citations. */
interface CitationContext {
  /** The line is neither indented code nor contains a dollar sign, which may begin a formula. */
  readonly isProse: boolean
  /** It follows a word or bracket directly, like an array index. */
  readonly isAttached: boolean
  /** Between text and punctuation or the end of the line. */
  readonly endsPhrase: boolean
}

/** Length of a piece of the input, and the text that replaces it, if any. */
interface ReadStep {
  readonly length: number
  readonly text?: string
}

/**
 * Reads a streamed answer in Markdown: collects the passages that it cites, writes citations as `[1]`, and removes
 * invented ones. A number is removed only if it looks like a citation and is close to the numbers in use. Everything else
 * stays unchanged: code, formulas, links, years, ranges and lists.
 */
export class CitationReader {
  readonly #citations: Citations
  readonly #used = new Set<number>()
  #held = ''
  #line = newLine()
  /** The marks that close the current code block. */
  #fence: string | undefined
  /** The marks that close the current formula. */
  #formula: string | undefined
  /** Last character of the input so far. */
  #last = '\n'
  /** Invented citations that were removed. */
  dropped = 0

  constructor(citations: Citations) {
    this.#citations = citations
  }

  /** The passages that were cited, by number. */
  get used(): Citation[] {
    return [...this.#used].sort((a, b) => a - b).map(number => this.#citations.of(number)!)
  }

  /** Returns the text that no later piece can change. */
  read(piece: string): string {
    return this.#advance(this.#held + piece, false)
  }

  /** Returns the text that was held back, at the end of the answer. */
  end(): string {
    return this.#advance(this.#held, true)
  }

  #advance(text: string, isEnd: boolean): string {
    let [at, read] = [0, '']
    while (at < text.length) {
      const isHead = this.#line.isStart
      const step = this.#step(text, at, isEnd)
      if (!step) break
      const piece = text.slice(at, at + step.length)
      read += step.text ?? piece
      if (!isHead) this.#line.isBlank &&= piece.trim() === ''
      this.#last = piece.at(-1) ?? this.#last
      at += step.length
    }
    this.#held = text.slice(at)
    return read
  }

  /** Returns undefined if the next step depends on text that has not arrived. */
  #step(text: string, at: number, isEnd: boolean): ReadStep | undefined {
    if (this.#line.isStart) return this.#readLineHead(text, at, isEnd)
    const next = text[at]!
    if (next === '\n') return this.#endLine()
    if (this.#fence) return { length: lengthUntil('\n', text, at) }
    if (next === ' ' || next === '[' || next === '【') return this.#readRun(text, at, isEnd)
    if (next === '`') this.#line.isInlineCode = !this.#line.isInlineCode
    else if (next === '$' || next === '\\') return this.#readFormulaMark(text, at, isEnd)
    else return { length: matchAt(plain, text, at)![0].length }
    return { length: 1 }
  }

  #endLine(): ReadStep {
    if (this.#line.isBlank) this.#formula = undefined
    this.#line = newLine()
    return { length: 1 }
  }

  #readLineHead(text: string, at: number, isEnd: boolean): ReadStep | undefined {
    if (!isEnd && matchAt(begunLineHead, text, at)) return undefined
    const head = matchAt(lineHead, text, at)![0]
    const from = at + head.length
    if (text.startsWith('```', from) || text.startsWith('~~~', from)) {
      const end = text.indexOf('\n', from)
      if (end < 0 && !isEnd && text.length - from < fenceCharsMax) return undefined
      this.#readFence(text, from)
    }
    this.#line.isStart = false
    this.#line.isIndented = indentation.test(head)
    return { length: head.length }
  }

  #readFence(text: string, at: number): void {
    const marks = matchAt(fenceLine, text, at)?.slice(1).find(Boolean)
    if (!this.#fence) this.#fence = marks
    else if (marks?.startsWith(this.#fence) && isBlankAfter(marks.length)) this.#fence = undefined
    function isBlankAfter(length: number): boolean {
      return text.slice(at + length, at + lengthUntil('\n', text, at)).trim() === ''
    }
  }

  /** A formula stands between `$$`, `\[` and `\]`, or `\(` and `\)`; it ends with its paragraph at the latest. */
  #readFormulaMark(text: string, at: number, isEnd: boolean): ReadStep | undefined {
    if (at + 1 === text.length && !isEnd) return undefined
    const mark = text.slice(at, at + 2)
    if (mark[0] === '$' && mark !== '$$') {
      this.#line.hasDollar = true
      return { length: 1 }
    }
    if (mark === '\\\n' || this.#line.isInlineCode) return { length: 1 }
    if (mark === this.#formula) this.#formula = undefined
    else this.#formula ??= closingMarks[mark]
    return { length: mark.length }
  }

  #readRun(text: string, at: number, isEnd: boolean): ReadStep | undefined {
    if (!isEnd && matchAt(begunRun, text, at)) return undefined
    const [whole, blanks, groups] = matchAt(run, text, at) as unknown as [string, string, string]
    if (groups === '') return { length: whole.length || 1 }
    const after = text[at + whole.length] ?? '\n'
    const isDefinition = after === ':' && this.#line.isBlank
    if (this.#formula || this.#line.isInlineCode || isDefinition || '({'.includes(after))
      return { length: whole.length }
    const cleaned = this.#cleanRun(groups, {
      isProse: !this.#line.isIndented && !this.#line.hasDollar,
      isAttached: blanks === '' && /[\w\])]/.test(this.#last),
      endsPhrase: closers.includes(after) && !this.#line.isBlank,
    })
    return { length: whole.length, text: cleaned === '' ? '' : blanks + cleaned }
  }

  /** @returns the groups with known citations as `[1]` and without invented ones */
  #cleanRun(groups: string, { isProse, isAttached, endsPhrase }: CitationContext): string {
    const areKnown = (numbers: readonly number[]) => numbers.every(number => this.#citations.of(number))
    const parsed = [...groups.matchAll(groupAnywhere)].map(([each]) => ({
      each,
      numbers: citedNumbers(each),
    }))
    const hasKnown = parsed.some(({ numbers }) => areKnown(numbers))
    let text = groups
    for (const { each, numbers } of parsed) {
      const isIndex = isAttached && /^\[\d/.test(each)
      const isFootnote = each.startsWith('[^')
      if (areKnown(numbers) && !(isIndex && numbers.length > 1)) {
        for (const number of numbers) this.#used.add(number)
        if (isProse) text = text.replace(each, numbers.map(number => `[${number}]`).join(''))
      } else if (
        isProse &&
        !isIndex &&
        !isFootnote &&
        (endsPhrase || hasKnown) &&
        this.#isInvented(numbers)
      ) {
        this.dropped++
        text = text.replace(each, '')
      }
    }
    return text === groups ? text : text.replace(/ +/g, ' ').trim()
  }

  #isInvented(numbers: readonly number[]): boolean {
    const { last } = this.#citations
    return last > 0 && numbers.length === 1 && numbers[0]! > last && numbers[0]! <= last + inventedMax
  }
}

const closingMarks: Readonly<Record<string, string>> = { $$: '$$', '\\[': '\\]', '\\(': '\\)' }

/** Returns the numbers of a group: `[1-3, 5]` is 1, 2, 3 and 5. An invalid range has a number that no passage has. */
function citedNumbers(group: string): number[] {
  const [listed] = group.slice(1, -1).replace('^', '').split('†')
  return listed!.split(/[,;]/).flatMap(each => {
    const [from, to = from] = each.split(/[-–]/).map(Number) as [number, number?]
    if (to < from || to - from > inventedMax) return [0, to]
    return Array.from({ length: to - from + 1 }, (_, at) => from + at)
  })
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at
  return pattern.exec(text)
}

function lengthUntil(end: string, text: string, at: number): number {
  const found = text.indexOf(end, at)
  return (found < 0 ? text.length : found) - at
}

import { CodeScanner } from './code-scanner.ts'

/** Part of an answer, in the order in which the model wrote it. */
export type AnswerPart =
  | { readonly kind: 'text' | 'reasoning'; readonly delta: string }
  /** Turns all text so far into reasoning. */
  | { readonly kind: 'reclassified' }

const opening = /^<(think|thinking|thought|reasoning)>/i
const openingTags = ['<think>', '<thinking>', '<thought>', '<reasoning>']
const startOfThought = '<think>'
const endOfThought = '</think>'
const tagCharsMax = 16
/** Maximum white space before an answer that is held back; more is part of the answer. */
const leadingCharsMax = 1_000

/**
 * Splits text into pieces of at most 2048 characters, because each step searches the whole piece for marks.
 */
const pieces = /[\s\S]{1,2048}/gu

/** Opening marks of tool calls and their closing marks. Null means that the call ends with the answer. */
const callMarks: Readonly<Record<string, string | null>> = {
  '<tool_call>': '</tool_call>',
  '[TOOL_CALLS]': null,
}

/**
 * Splits the text of a streamed answer into the answer, reasoning in tags, and tool calls in tags.
 *
 * Reasoning is the text in `<think>…</think>` at the beginning, or before a `</think>` on its own line without an
 * opening tag, because some chat templates contain the opening tag. Tags in code, and `<think>` after the answer began,
 * are text.
 */
export class AnswerText {
  #state: 'start' | 'reasoning' | 'answer' | 'call' = 'start'
  /** Characters that are not classified yet; few, except for white space before the answer. */
  #held = ''
  #parts: AnswerPart[] = []
  /** Closing tag of the reasoning, or of the call. */
  #closing: string | null = null
  #call: string[] = []
  /** True if no more text can be reasoning. */
  #isSettled = false
  /** True after a tool call: the white space that follows is not part of the answer. */
  #isAfterCall = false
  #endsLine = true
  readonly #code = new CodeScanner()
  readonly #marks: readonly string[]

  /** @param takeCall  reads a tool call with its marks, or returns false if it is text; undefined without tools */
  constructor(private readonly takeCall: ((call: string) => boolean) | undefined) {
    this.#marks = takeCall ? Object.keys(callMarks) : []
  }

  /** Treats all text as answer, because reasoning arrived in a separate field. */
  settle(): void {
    this.#isSettled = true
  }

  read(delta: string): AnswerPart[] {
    return (delta.match(pieces) ?? []).flatMap(piece => {
      this.#held += piece
      return this.#drain(false)
    })
  }

  /** Returns the text that was held back, at the end of the answer. */
  end(): AnswerPart[] {
    return this.#drain(true)
  }

  #drain(isEnd: boolean): AnswerPart[] {
    const steps = {
      start: () => this.#start(isEnd),
      reasoning: () => this.#reasoning(isEnd),
      answer: () => this.#answer(isEnd),
      call: () => this.#inCall(isEnd),
    }
    while (steps[this.#state]());
    const parts = this.#parts
    this.#parts = []
    return parts
  }

  #start(isEnd: boolean): boolean {
    const rest = this.#held.trimStart()
    const [tag, name] = opening.exec(rest) ?? []
    if (tag !== undefined) {
      this.#held = rest.slice(tag.length)
      this.#closing = `</${name}>`
      this.#state = 'reasoning'
      this.#isSettled = true
      return true
    }
    const isOpen = openingTags.some(one => one.startsWith(rest.toLowerCase()))
    if (isOpen && !isEnd && this.#held.length < leadingCharsMax) return false
    if (this.#isSettled) this.#held = rest
    this.#state = 'answer'
    return true
  }

  #reasoning(isEnd: boolean): boolean {
    const at = this.#held.indexOf(this.#closing!)
    if (at !== -1) {
      this.#add('reasoning', this.#held.slice(0, at))
      this.#held = this.#held.slice(at + this.#closing!.length)
      this.#state = 'start'
      return true
    }
    this.#add('reasoning', this.#takeUntil(isEnd ? [] : [this.#closing!]))
    return false
  }

  #answer(isEnd: boolean): boolean {
    if (this.#isAfterCall) this.#held = this.#held.trimStart()
    if (this.#held === '') return false
    this.#isAfterCall = false
    const marks = this.#isSettled ? this.#marks : [startOfThought, endOfThought, ...this.#marks]
    const found = earliest(this.#held, marks)
    if (!found) {
      this.#addText(this.#takeUntil(isEnd ? [] : marks))
      return false
    }
    const { at, mark } = found
    this.#addText(this.#held.slice(0, at))
    this.#held = this.#held.slice(at + mark.length)
    if (this.#code.isInside) this.#addText(mark)
    else if (mark === startOfThought) {
      this.#isSettled = true
      this.#addText(mark)
    } else if (mark !== endOfThought) this.#beginCall(mark)
    else if (this.#held === '' && !isEnd) {
      // The next character shows whether the line ends after the mark.
      this.#held = mark
      return false
    } else this.#endThought()
    return true
  }

  #endThought(): void {
    this.#isSettled = true
    if (this.#endsLine || /^\r?\n/.test(this.#held)) {
      this.#parts.push({ kind: 'reclassified' })
      this.#state = 'start'
    } else this.#addText(endOfThought)
  }

  #beginCall(mark: string): void {
    this.#state = 'call'
    this.#call = [mark]
    this.#closing = callMarks[mark]!
  }

  /** Moves classified text out of the held text, so that a long call is searched only once. */
  #inCall(isEnd: boolean): boolean {
    const closing = this.#closing
    const at = closing === null ? -1 : this.#held.indexOf(closing)
    if (at === -1) {
      this.#call.push(this.#takeUntil(isEnd || closing === null ? [] : [closing]))
      if (!isEnd) return false
    } else {
      this.#call.push(this.#held.slice(0, at + closing!.length))
      this.#held = this.#held.slice(at + closing!.length)
    }
    const call = this.#call.join('')
    this.#call = []
    this.#state = 'answer'
    if (!this.takeCall!(call)) this.#addText(call)
    else this.#isAfterCall = true
    return true
  }

  /** Takes the held text, except an end that could be the beginning of a mark. */
  #takeUntil(marks: readonly string[]): string {
    const kept = tailOf(this.#held, marks)
    const text = this.#held.slice(0, this.#held.length - kept)
    this.#held = this.#held.slice(text.length)
    return text
  }

  #addText(delta: string): void {
    if (delta === '') return
    this.#code.read(delta)
    this.#endsLine = delta.endsWith('\n')
    this.#add('text', delta)
  }

  #add(kind: 'text' | 'reasoning', delta: string): void {
    if (delta !== '') this.#parts.push({ kind, delta })
  }
}

/**
 * Finds the first of several marks, each of which begins with `<` or `[`. A separate search for each mark
 * would read the text several times.
 */
function earliest(text: string, marks: readonly string[]): { at: number; mark: string } | undefined {
  for (const { index } of text.matchAll(/[<[]/g)) {
    const mark = marks.find(one => text.startsWith(one, index))
    if (mark) return { at: index, mark }
  }
  return undefined
}

/** Returns the length of the longest suffix of a text that is the beginning of a mark. */
function tailOf(text: string, marks: readonly string[]): number {
  for (let length = Math.min(text.length, tagCharsMax); length > 0; length--) {
    const tail = text.slice(text.length - length)
    if (marks.some(mark => mark.length > length && mark.startsWith(tail))) return length
  }
  return 0
}

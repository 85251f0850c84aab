import { CodeScanner } from './code-scanner.ts'

/** A part of an answer. The parts arrive in the order in which the model wrote them. */
export type AnswerPart =
  | { readonly kind: 'text' | 'reasoning'; readonly delta: string }
  /** Reports that all text parts so far are reasoning. */
  | { readonly kind: 'reclassified' }

const openingPattern = /^<(think|thinking|thought|reasoning)>/i
const openingTags = ['<think>', '<thinking>', '<thought>', '<reasoning>']
const thinkTag = '<think>'
const thinkEndTag = '</think>'
const tagCharsMax = 16
/** Maximum length of initial white space that is buffered, because a tag can follow. Longer white space is text. */
const leadingCharsMax = 1_000

/**
 * Matches pieces of at most 2048 characters. Long text is read in pieces, because each step searches all pending text
 * for markers.
 */
const piecePattern = /[\s\S]{1,2048}/gu

/** Closing markers of tool calls, by opening marker. Null means that the call extends to the end of the answer. */
const callMarkers: Readonly<Record<string, string | null>> = {
  '<tool_call>': '</tool_call>',
  '[TOOL_CALLS]': null,
}

/**
 * Splits the text of a streamed answer into answer text, reasoning in tags, and tool calls in tags.
 *
 * Reasoning is the text in `<think>…</think>` at the start. Some chat templates contain the opening tag, so all text
 * before a `</think>` at the start or end of a line is also reasoning. Tags in code, and a `<think>` after the start of
 * the answer, are text.
 */
export class AnswerSplitter {
  #state: 'start' | 'reasoning' | 'answer' | 'call' = 'start'
  /** Characters that are not classified yet: usually few, except for white space before the answer. */
  #pending = ''
  #parts: AnswerPart[] = []
  /** Closing tag of the current reasoning or tool call. */
  #closingTag: string | null = null
  #call: string[] = []
  /** True if no more reasoning can follow, only answer text and tool calls. */
  #isReasoningOver = false
  /** True directly after a tool call. White space is not part of the answer there. */
  #isAfterCall = false
  #endsLine = true
  readonly #code = new CodeScanner()
  readonly #markers: readonly string[]

  /**
   * @param onToolCall  called with each tool call, including its markers; returns false if the text is not a tool call.
   *   Undefined if the model has no tools
   */
  constructor(private readonly onToolCall: ((call: string) => boolean) | undefined) {
    this.#markers = onToolCall ? Object.keys(callMarkers) : []
  }

  /** Treats all following text as answer text. Call this if reasoning arrives in a separate field. */
  treatAllAsAnswer(): void {
    this.#isReasoningOver = true
  }

  read(delta: string): AnswerPart[] {
    return (delta.match(piecePattern) ?? []).flatMap(piece => {
      this.#pending += piece
      return this.#drain(false)
    })
  }

  /** Ends the answer, and returns the parts that were still pending. */
  end(): AnswerPart[] {
    return this.#drain(true)
  }

  #drain(isEnd: boolean): AnswerPart[] {
    const steps = {
      start: () => this.#start(isEnd),
      reasoning: () => this.#reasoning(isEnd),
      answer: () => this.#answer(isEnd),
      call: () => this.#toolCall(isEnd),
    }
    while (steps[this.#state]());
    const parts = this.#parts
    this.#parts = []
    return parts
  }

  #start(isEnd: boolean): boolean {
    const rest = this.#pending.trimStart()
    const [tag, name] = openingPattern.exec(rest) ?? []
    if (tag !== undefined) {
      this.#pending = rest.slice(tag.length)
      this.#closingTag = `</${name}>`
      this.#state = 'reasoning'
      this.#isReasoningOver = true
      return true
    }
    const canBecomeTag = openingTags.some(tag => tag.startsWith(rest.toLowerCase()))
    if (canBecomeTag && !isEnd && this.#pending.length < leadingCharsMax) return false
    if (this.#isReasoningOver) this.#pending = rest
    this.#state = 'answer'
    return true
  }

  #reasoning(isEnd: boolean): boolean {
    const at = this.#pending.indexOf(this.#closingTag!)
    if (at !== -1) {
      this.#add('reasoning', this.#pending.slice(0, at))
      this.#pending = this.#pending.slice(at + this.#closingTag!.length)
      this.#state = 'start'
      return true
    }
    this.#add('reasoning', this.#takeUntil(isEnd ? [] : [this.#closingTag!]))
    return false
  }

  #answer(isEnd: boolean): boolean {
    if (this.#isAfterCall) this.#pending = this.#pending.trimStart()
    if (this.#pending === '') return false
    this.#isAfterCall = false
    const markers = this.#isReasoningOver ? this.#markers : [thinkTag, thinkEndTag, ...this.#markers]
    const firstMarker = findFirstMarker(this.#pending, markers)
    if (!firstMarker) {
      this.#addText(this.#takeUntil(isEnd ? [] : markers))
      return false
    }
    const { at, marker } = firstMarker
    this.#addText(this.#pending.slice(0, at))
    this.#pending = this.#pending.slice(at + marker.length)
    if (this.#code.isInside) this.#addText(marker)
    else if (marker === thinkTag) {
      this.#isReasoningOver = true
      this.#addText(marker)
    } else if (marker !== thinkEndTag) this.#startCall(marker)
    else if (this.#pending === '' && !isEnd) {
      // The next character shows whether the line ends after the tag.
      this.#pending = marker
      return false
    } else this.#endUnopenedReasoning()
    return true
  }

  #endUnopenedReasoning(): void {
    this.#isReasoningOver = true
    if (this.#endsLine || /^\r?\n/.test(this.#pending)) {
      this.#parts.push({ kind: 'reclassified' })
      this.#state = 'start'
    } else this.#addText(thinkEndTag)
  }

  #startCall(marker: string): void {
    this.#state = 'call'
    this.#call = [marker]
    this.#closingTag = callMarkers[marker]!
  }

  /** Moves text to the call after it was searched, so that no part of a long call is searched twice. */
  #toolCall(isEnd: boolean): boolean {
    const closing = this.#closingTag
    const at = closing === null ? -1 : this.#pending.indexOf(closing)
    if (at === -1) {
      this.#call.push(this.#takeUntil(isEnd || closing === null ? [] : [closing]))
      if (!isEnd) return false
    } else {
      this.#call.push(this.#pending.slice(0, at + closing!.length))
      this.#pending = this.#pending.slice(at + closing!.length)
    }
    const call = this.#call.join('')
    this.#call = []
    this.#state = 'answer'
    if (!this.onToolCall!(call)) this.#addText(call)
    else this.#isAfterCall = true
    return true
  }

  /** Removes and returns the pending text, except for trailing characters that could be the start of a marker. */
  #takeUntil(markers: readonly string[]): string {
    const partialLength = partialMarkerLength(this.#pending, markers)
    const text = this.#pending.slice(0, this.#pending.length - partialLength)
    this.#pending = this.#pending.slice(text.length)
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
 * Finds the first of several markers, which must start with `<` or `[`. Reads the text once, not once per marker.
 */
function findFirstMarker(
  text: string,
  markers: readonly string[],
): { at: number; marker: string } | undefined {
  for (const { index } of text.matchAll(/[<[]/g)) {
    const marker = markers.find(candidate => text.startsWith(candidate, index))
    if (marker) return { at: index, marker }
  }
  return undefined
}

/** Returns the length of the longest suffix of a text that is the start of a marker, but not a whole marker. */
function partialMarkerLength(text: string, markers: readonly string[]): number {
  for (let length = Math.min(text.length, tagCharsMax); length > 0; length--) {
    const tail = text.slice(text.length - length)
    if (markers.some(marker => marker.length > length && marker.startsWith(tail))) return length
  }
  return 0
}

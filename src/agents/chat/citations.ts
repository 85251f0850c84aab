import type { Citation } from '../../contract/chat.ts'
import type { Passage } from '../tools/tool.ts'

/**
 * The passages of a conversation, by the numbers that answers cite them by. A passage keeps its number in later turns,
 * as long as the turn that found it is remembered.
 */
export class Citations {
  readonly #byNumber = new Map<number, Citation>()
  readonly #numbers = new Map<string, number>()
  #last = 0

  /** @param known  of earlier turns */
  constructor(known: readonly Citation[] = []) {
    for (const citation of known) this.#add(citation)
  }

  /** The number of a passage; a new one where it is not known. */
  numberOf(passage: Passage): number {
    const known = this.#numbers.get(keyOf(passage))
    if (known !== undefined) return known
    this.#add({ ...passage, number: this.#last + 1 })
    return this.#last
  }

  of(number: number): Citation | undefined {
    return this.#byNumber.get(number)
  }

  #add(citation: Citation): void {
    this.#byNumber.set(citation.number, citation)
    this.#numbers.set(keyOf(citation), citation.number)
    this.#last = Math.max(this.#last, citation.number)
  }
}

function keyOf({ knowledgeBaseId, chunkId }: Passage): string {
  return `${knowledgeBaseId} ${chunkId}`
}

/** What may still become a citation: `[`, numbers and commas, perhaps a `]`, at the end of what came so far. */
const begun = /\[[\d, ]{0,110}\]?$/
/** No longer than what is held back. */
const cited = /\[(\d{1,4}(?: ?, ?\d{1,4}){0,15})\](?!\()/g
const fence = /^ {0,3}(?:```|~~~)/
/** Stands where a citation was dropped. @see Unicode 23.7, noncharacters */
const dropMark = '\uFDD0'
/** Where citations were dropped, the blanks around them, and what follows. */
const gap = new RegExp(`(?<! )( *)${dropMark}[ ${dropMark}]*([\\n.,;:!?)]?)`, 'g')
/** So many blanks at the end wait for what follows. */
const blanksMax = 200
/** As much of a line tells whether it is a fence. */
const fenceChars = 6

/**
 * Reads an answer as it comes: drops citations that point to nothing, and gathers the others. What stands in code is
 * left as it is, and so is `[1](url)`, which is a link.
 */
export class CitationReader {
  readonly #used = new Set<number>()
  #held = ''
  /** Blanks and marks at the end of what is read. */
  #blanks = ''
  /** How the line begins that is being read. */
  #head = ''
  /** What of the line came by now leaves code open. */
  #isInCode = false
  #isFenced = false
  dropped = 0

  constructor(private readonly citations: Citations) {}

  /** The passages that were cited, by number. */
  get used(): Citation[] {
    return [...this.#used].sort((a, b) => a - b).map(number => this.citations.of(number)!)
  }

  /** @returns as much of the text as is certain */
  read(piece: string): string {
    const text = this.#held + piece
    const at = begun.exec(text)?.index ?? text.length
    this.#held = text.slice(at)
    const cleaned = this.#blanks + this.#clean(text.slice(0, at))
    const end = blanksFrom(cleaned)
    this.#blanks = cleaned.slice(end)
    return withoutGaps(cleaned.slice(0, end))
  }

  /** What was held back, once nothing follows. */
  end(): string {
    const rest = this.#held
    this.#held = ''
    const cleaned = this.#blanks + this.#clean(rest)
    this.#blanks = ''
    return withoutGaps(cleaned)
  }

  #clean(text: string): string {
    return text
      .split(/(?<=\n)/)
      .map(part => this.#cleanPart(part))
      .join('')
  }

  /** @param part  of one line; a line may be as long as the answer, so that no part of it is looked at twice */
  #cleanPart(part: string): string {
    const isEnd = part.endsWith('\n')
    this.#head = (this.#head + part.slice(0, fenceChars)).slice(0, fenceChars)
    const isFence = fence.test(this.#head)
    if (isFence && isEnd) this.#isFenced = !this.#isFenced
    const cleaned = isFence || this.#isFenced ? part : this.#cleanText(part)
    if (!isEnd) return cleaned
    this.#head = ''
    this.#isInCode = false
    return cleaned
  }

  #cleanText(part: string): string {
    let from = 0
    const pass = (to: number) => {
      if (part.slice(from, to).split('`').length % 2 === 0) this.#isInCode = !this.#isInCode
      from = to
    }
    const cleaned = part.replace(cited, (whole, list: string, offset: number) => {
      pass(offset)
      return this.#isInCode ? whole : this.#known(list)
    })
    pass(part.length)
    return cleaned
  }

  #known(list: string): string {
    const numbers = list.split(',').map(Number)
    const known = numbers.filter(number => this.citations.of(number))
    for (const number of known) this.#used.add(number)
    this.dropped += numbers.length - known.length
    return known.map(number => `[${number}]`).join('') || dropMark
  }
}

/** Where the blanks and marks begin that a text ends with. */
function blanksFrom(text: string): number {
  let at = text.length
  while (at > 0 && text.length - at < blanksMax && ` ${dropMark}`.includes(text[at - 1]!)) at--
  return at
}

/** A dropped citation takes a blank along: all of them before punctuation and at the end of a line. */
function withoutGaps(text: string): string {
  return text.replace(gap, (whole, before: string, next: string, offset: number) => {
    if (next !== '' || offset + whole.length === text.length) return next
    return before || whole.endsWith(' ') ? ' ' : ''
  })
}

import { lowerBound } from '../../storage/record-set.ts'
import type { TextBreaks } from './breaks.ts'
import { type ChunkMeasure, measureChars } from './chunk-measure.ts'
import {
  addSpan,
  type Chunker,
  type ChunkOptions,
  type ChunkSpan,
  codePointLength,
  splitsSurrogatePair,
} from './chunker.ts'
import { findCodeBreaks } from './code-breaks.ts'
import { endOfText, firstLineStart, lastWord, skipSpace } from './space.ts'
import { findStructure, structureStrength } from './structure-breaks.ts'

/**
 * Splits a text along its structure: sections, then blocks, list items, table rows, sentences and lines, and source code at blank
 * lines with little indentation. A part that fits into a chunk is not split. A larger part is split at its best breaks into
 * chunks of about equal size.
 *
 * A chunk contains several sections only if it contains them whole, and the first ones are shorter than `minChars`. Chunks overlap
 * only inside a paragraph or a code block. Every character except white space is in a chunk.
 */
export const structureChunker: Chunker = {
  id: 'structure:1',
  engine: 'workbase',
  strategy: 'structure',
  description:
    'Chunks that follow the structure of a text: sections, paragraphs, list items, table rows, sentences, and functions of source code. A part that fits into a chunk is not split. Sizes can be in tokens.',
  supportsTokens: true,
  chunk,
}

function chunk(text: string, options: ChunkOptions): ChunkSpan[] {
  const last = endOfText(text, text.length)
  if (last === 0) return []
  const breaks = options.isCode ? findCodeBreaks(text) : findStructure(text)
  const measure = options.measure?.(text) ?? measureChars(text)
  const packer = new StructurePacker(text, { measure, last, breaks, options })
  return packer.pack()
}

/** A chunk that can still grow. `strength` is that of the break at its start. */
interface OpenChunk {
  readonly start: number
  readonly strength: number
  end: number
}

/** Strength of the start of the text, and of a start inside a word or sentence. */
const textStart = structureStrength.heading + 6
const insideSentence = 0

class StructurePacker {
  readonly #text: string
  readonly #measure: ChunkMeasure
  readonly #options: ChunkOptions
  readonly #overlap: number
  /** Offsets of the parts that are not split further: the start of the text, and the breaks. */
  readonly #starts: Int32Array
  readonly #strengths: Uint8Array
  readonly #last: number
  readonly #spans: ChunkSpan[] = []
  #open: OpenChunk | undefined

  constructor(
    text: string,
    parts: {
      readonly measure: ChunkMeasure
      readonly last: number
      readonly breaks: TextBreaks
      readonly options: ChunkOptions
    },
  ) {
    const { offsets, strengths, count } = parts.breaks
    this.#text = text
    this.#measure = parts.measure
    this.#options = parts.options
    this.#overlap = Math.min(parts.options.overlapChars, Math.floor(parts.options.maxChars / 2))
    this.#last = parts.last
    this.#starts = new Int32Array(count + 1)
    this.#starts[0] = firstLineStart(text)
    this.#starts.set(offsets.subarray(0, count), 1)
    this.#strengths = new Uint8Array(count + 1)
    this.#strengths[0] = textStart
    this.#strengths.set(strengths.subarray(0, count), 1)
  }

  pack(): ChunkSpan[] {
    this.#split(0, this.#starts.length, Number.POSITIVE_INFINITY)
    this.#close()
    return this.#overlap === 0 ? this.#spans : this.#withOverlap()
  }

  /**
   * Adds the parts `from` to `to` - 1 to chunks.
   *
   * @param target  size that chunks should have; infinite for as large as possible
   */
  #split(from: number, to: number, target: number): void {
    const start = this.#starts[from]!
    const end = this.#endBefore(to)
    const strength = this.#strengths[from]!
    const size = this.#measure.size(start, end)
    const capacity = this.#capacity(strength)
    if (size <= capacity) {
      this.#add(start, end, strength, target)
      return
    }
    if (this.#open && this.#measure.size(this.#open.start, this.#open.end) >= this.#options.minChars)
      this.#close()
    if (to - from === 1) {
      this.#splitWords(start, end, strength)
      return
    }
    const best = this.#strengths.subarray(from + 1, to).reduce((left, right) => Math.max(left, right), 0)
    const evenSize = size / Math.ceil(size / capacity)
    for (let part = from; part < to; ) {
      let next = part + 1
      while (next < to && this.#strengths[next]! < best) next++
      this.#split(part, next, evenSize)
      part = next
    }
  }

  /** Adds a part that fits into a chunk. */
  #add(start: number, end: number, strength: number, target: number): void {
    if (this.#open && this.#canGrow(this.#open, { end, strength }, target)) this.#open.end = end
    else {
      this.#close()
      this.#open = { start, end, strength }
    }
  }

  #canGrow(open: OpenChunk, part: { end: number; strength: number }, target: number): boolean {
    const size = this.#measure.size(open.start, open.end)
    const grown = this.#measure.size(open.start, part.end)
    if (grown > this.#capacity(open.strength) || target - size < grown - target) return false
    if (part.strength < structureStrength.heading) return true
    return size < this.#options.minChars && part.strength <= open.strength
  }

  /** Splits a sentence or line that is too long between words, or else inside a word. */
  #splitWords(from: number, end: number, strength: number): void {
    const { maxChars } = this.#options
    this.#close()
    let start = this.#measure.size(from, end) > maxChars ? skipSpace(this.#text, from) : from
    let startStrength = strength
    while (this.#measure.size(start, end) > maxChars) {
      const limit = this.#measure.endWithin(start, maxChars)
      const word = lastWord(this.#text, start + 1, limit)
      const cut = word > start ? word : this.#cutInWord(start, limit)
      addSpan(this.#spans, start, endOfText(this.#text, cut))
      start = skipSpace(this.#text, cut)
      startStrength = insideSentence
    }
    if (start < end) this.#open = { start, end, strength: startStrength }
  }

  #cutInWord(start: number, limit: number): number {
    if (limit <= start) return start + codePointLength(this.#text, start)
    if (!splitsSurrogatePair(this.#text, limit)) return limit
    return limit - 1 > start ? limit - 1 : limit + 1
  }

  #close(): void {
    if (this.#open) addSpan(this.#spans, this.#open.start, this.#open.end)
    this.#open = undefined
  }

  /** Returns the maximum size of a chunk without its overlap. */
  #capacity(strength: number): number {
    return overlaps(strength) ? this.#options.maxChars - this.#overlap : this.#options.maxChars
  }

  #endBefore(part: number): number {
    return part === this.#starts.length ? this.#last : endOfText(this.#text, this.#starts[part]!)
  }

  /** Moves the starts of chunks backward to a break, if that does not leave the block. */
  #withOverlap(): ChunkSpan[] {
    let part = 0
    /** Index of the last part that starts a block. */
    let block = 0
    let previousStart = -1
    return this.#spans.map(({ start, end }) => {
      while (part + 1 < this.#starts.length && this.#starts[part + 1]! <= start) {
        part++
        if (!overlaps(this.#strengths[part]!)) block = part
      }
      let moved = start
      if (this.#starts[part] === start && overlaps(this.#strengths[part]!)) {
        const low = Math.max(previousStart + 1, this.#starts[block]!)
        moved = this.#overlapStart(low, start, end)
      }
      previousStart = moved
      return { start: moved, end }
    })
  }

  /** Returns the first break from `low` on that is within the overlap before `start`, or `start` without such a break. */
  #overlapStart(low: number, start: number, end: number): number {
    const { maxChars } = this.#options
    for (let at = lowerBound(this.#starts, low); this.#starts[at]! < start; at++) {
      const offset = this.#starts[at]!
      const isSmall = this.#measure.size(offset, start) <= this.#overlap
      if (isSmall && this.#measure.size(offset, end) <= maxChars) return offset
    }
    return start
  }
}

/** Returns true if a chunk that starts at a break of this strength overlaps with the previous one. */
function overlaps(strength: number): boolean {
  return strength === structureStrength.line || strength === structureStrength.sentence
}

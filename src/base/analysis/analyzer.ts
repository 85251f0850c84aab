import { BoundedCache, copyPart } from '../bounded-cache.ts'
import { characterKinds, kindAt, kindOfUnit, sizeAt } from './characters.ts'
import { CompoundAnalyzer } from './compound.ts'
import { loadLanguage } from './languages.ts'
import { type ParsedQuery, parseTextQuery, type QueryOptions } from './query.ts'
import { SegmentedTextAnalyzer } from './segmented-text.ts'
import type { Tokenizer, TokenSequence } from './token.ts'
import { WordAnalyzer } from './word-analyzer.ts'

/** Maximum length of a compound in UTF-16 units. Of a longer word, only the beginning is analyzed. */
const compoundUnitsMax = 256
/** Maximum length in UTF-16 units of a run of text without spaces. A longer run is analyzed in parts. */
const segmentedUnitsMax = 1024
/** Maximum length of a cached compound or run in UTF-16 units. */
const cachedUnitsMax = 64
/** Maximum number of cached tokens. */
const cachedTokensMax = 1 << 18

/** Version of the rules. Increment it when the terms of any language change, so that texts are indexed again. */
export const analyzerVersion = 1

/** The terms of a text for a posting store. */
export interface TermCounts {
  /** Number of occurrences by term. */
  readonly counts: ReadonlyMap<string, number>
  /** Number of words, for ranking. */
  readonly words: number
}

/**
 * Splits texts and queries into terms by the rules of a language. Terms are opaque; equal terms match. A term has at most
 * 64 UTF-16 units, which are at most 192 bytes in UTF-8. The rest of a longer word is ignored.
 */
export class Analyzer implements Tokenizer {
  /** BCP-47 code without region, or `auto`. */
  readonly language: string
  readonly #words: WordAnalyzer
  readonly #compounds: CompoundAnalyzer
  readonly #segmented: SegmentedTextAnalyzer
  readonly #cache = new BoundedCache<string, TokenSequence>(
    cachedTokensMax,
    ({ tokens }) => tokens.length + 1,
  )

  constructor(language: string, words: WordAnalyzer, segmented: SegmentedTextAnalyzer) {
    this.language = language
    this.#words = words
    this.#compounds = new CompoundAnalyzer(words)
    this.#segmented = segmented
  }

  /** Counts the terms of a text, including stop words. Takes linear time. */
  countTerms(text: string): TermCounts {
    const counts = new Map<string, number>()
    let words = 0
    this.scan(text, sequence => {
      words += sequence.words
      for (const { term } of sequence.tokens) counts.set(term, (counts.get(term) ?? 0) + 1)
    })
    return { counts, words }
  }

  /** Splits a query into the terms to rank by, phrases, and the word that is being typed. */
  parseQuery(text: string, options: QueryOptions = {}): ParsedQuery {
    return parseTextQuery(this, text, options)
  }

  wordTerms(word: string): readonly string[] {
    return this.#words.analyze(word).terms
  }

  scan(text: string, visit: (sequence: TokenSequence) => void): void {
    let at = 0
    while (at < text.length) {
      const kind = kindAt(text, at)
      if (kind === characterKinds.word) {
        const end = compoundEnd(text, at)
        visit(this.#analyzeCompound(text.slice(at, Math.min(end, at + compoundUnitsMax))))
        at = end
      } else if (kind === characterKinds.segmented) {
        at = this.#scanSegmented(text, at, visit)
      } else {
        at += sizeAt(text, at)
      }
    }
  }

  #scanSegmented(text: string, from: number, visit: (sequence: TokenSequence) => void): number {
    let at = from
    let previous: string | undefined
    while (at < text.length && kindAt(text, at) === characterKinds.segmented) {
      const start = at
      while (
        at < text.length &&
        kindAt(text, at) === characterKinds.segmented &&
        (at - start < segmentedUnitsMax || (isMark(text, at) && at - start < 2 * segmentedUnitsMax))
      )
        at += sizeAt(text, at)
      const sequence = this.#analyzeRun(text.slice(start, at), previous)
      previous = sequence.characters?.at(-1)
      visit(sequence)
    }
    return at
  }

  #analyzeCompound(compound: string): TokenSequence {
    return this.#cache.get(compound) ?? this.#store(compound, this.#compounds.analyze(copyPart(compound)))
  }

  #analyzeRun(run: string, previous: string | undefined): TokenSequence {
    if (previous !== undefined) return this.#segmented.analyze(run, previous)
    return this.#cache.get(run) ?? this.#store(run, this.#segmented.analyze(copyPart(run)))
  }

  #store(text: string, sequence: TokenSequence): TokenSequence {
    if (text.length > cachedUnitsMax) return sequence
    this.#cache.set(copyPart(text), sequence)
    return sequence
  }
}

/**
 * Loads the rules of a language: `auto`, or a BCP-47 tag such as `de`.
 *
 * @throws RangeError  the tag is not well-formed
 */
export async function openAnalyzer({ language }: { language: string }): Promise<Analyzer> {
  const loaded = await loadLanguage(language)
  return new Analyzer(loaded.code, new WordAnalyzer(loaded), new SegmentedTextAnalyzer(loaded))
}

function isMark(text: string, at: number): boolean {
  return /^\p{M}/u.test(text.slice(at, at + 2))
}

/**
 * Returns the end of the compound that starts at a word. A compound that is too long ends at its last joiner within the
 * maximum length. A single word is never split.
 */
function compoundEnd(text: string, start: number): number {
  let at = start
  let lastJoiner = -1
  while (at < text.length) {
    const unit = text.charCodeAt(at)
    const isPair = unit >= 0xd800 && unit < 0xdc00
    const kind = isPair ? kindAt(text, at) : kindOfUnit(unit)
    if (kind === characterKinds.word) {
      at += isPair ? sizeAt(text, at) : 1
    } else if (kind === characterKinds.joiner) {
      const next = joinedWordStart(text, at)
      if (next === -1) break
      lastJoiner = at
      at = next
    } else {
      break
    }
    if (at - start > compoundUnitsMax && lastJoiner > start) return lastJoiner
  }
  return symbolEnd(text, start, at)
}

/** Returns where the word after a joiner starts, or -1. Only `::` and `__` may be doubled. */
function joinedWordStart(text: string, joiner: number): number {
  const isDoubled = text[joiner + 1] === text[joiner] && (text[joiner] === ':' || text[joiner] === '_')
  const next = joiner + (isDoubled ? 2 : 1)
  return next < text.length && kindAt(text, next) === characterKinds.word ? next : -1
}

/** Returns the end of a word, including the symbols of a programming language, such as `C++` or `F#`. */
function symbolEnd(text: string, start: number, end: number): number {
  if (end - start > 2) return end
  const symbol = text.startsWith('++', end) ? 2 : text[end] === '#' ? 1 : 0
  if (symbol === 0 || !/^[A-Za-z]+$/.test(text.slice(start, end))) return end
  const after = end + symbol
  return after < text.length && kindAt(text, after) !== characterKinds.separator ? end : after
}

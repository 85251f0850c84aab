import type { Analyzer } from '../../base/analysis/analyzer.ts'
import type { ParsedQuery, TypedWord } from '../../base/analysis/query.ts'
import { characterTermPrefix } from '../../base/analysis/segmented-text.ts'
import { similarTerms } from '../../base/analysis/similar-terms.ts'
import type { WordMatch } from '../content.ts'
import type { PostingReader, WeightedWord } from './postings/posting-reader.ts'
import type { VisibleRecords } from './postings/record-masks.ts'

/** Maximum number of terms that complete a word that is being typed: the most frequent ones. */
const COMPLETIONS_MAX = 50
/** Maximum number of similar terms that replace a word without a match. */
const SIMILAR_TERMS_MAX = 5
/**
 * Maximum number of words without a match that are replaced: the first ones. Each can take milliseconds, and a text of
 * many unknown words is not misspelled.
 */
const REPLACED_WORDS_MAX = 4

/** A word of a query, with the terms to rank by. It has no terms if no visible record contains one. */
export interface ExpandedWord extends WeightedWord {
  readonly word: string
  readonly match: WordMatch
}

/**
 * Turns a query into words to rank by, with the terms of visible records: completes the word that is being typed, and
 * replaces words without a match by similar ones.
 */
export class WordExpansion {
  readonly #postings: PostingReader

  constructor(postings: PostingReader) {
    this.#postings = postings
  }

  expand(
    collection: number,
    { terms, typedWord }: ParsedQuery,
    analyzer: Analyzer,
    visible: VisibleRecords | undefined,
  ): ExpandedWord[] {
    const completions = typedWord ? this.#complete(collection, typedWord, visible) : []
    const words = this.#groupByWord(terms)
    const counts = this.#count(
      collection,
      words.map(word => word.terms),
      visible,
    )
    const known = new Set(
      words.flatMap(({ word }, at) => (word !== undefined && counts[at]! > 0 ? [word] : [])),
    )
    let replaceable = REPLACED_WORDS_MAX
    return [
      ...words.flatMap(({ word, terms }, at): ExpandedWord[] => {
        const found = { word: word ?? partOf(terms[0]!), match: 'word', weight: 1 } as const
        if (counts[at]! > 0) return [{ ...found, terms }]
        if (word === undefined || isCompoundOf(word, known)) return []
        if (replaceable-- <= 0) return [{ ...found, terms: [] }]
        return [this.#similar(collection, word, analyzer, visible) ?? { ...found, terms: [] }]
      }),
      ...(typedWord
        ? [{ word: typedWord.prefixes[0]!, match: 'prefix' as const, terms: completions, weight: 1 }]
        : []),
    ]
  }

  /** Groups the terms of each word, because they are ranked as one term. A term without a word is a separate group. */
  #groupByWord(terms: ParsedQuery['terms']): { word: string | undefined; terms: string[] }[] {
    const words: { word: string | undefined; terms: string[] }[] = []
    const byWord = new Map<string, string[]>()
    for (const { term, word } of terms) {
      const known = word === undefined ? undefined : byWord.get(word)
      if (known) {
        known.push(term)
        continue
      }
      const added = { word, terms: [term] }
      words.push(added)
      if (word !== undefined) byWord.set(word, added.terms)
    }
    return words
  }

  #count(
    collection: number,
    words: readonly (readonly string[])[],
    visible: VisibleRecords | undefined,
  ): number[] {
    const groups = words.map(terms => [terms])
    return this.#postings
      .countOccurrences(collection, { groups, among: [], visible })
      .groups.map(({ records }) => records)
  }

  /**
   * Returns the terms that begin with the unfinished word. If there are none, returns the longest term that can be the stem
   * of the complete word.
   */
  #complete(
    collection: number,
    { prefixes, shorterTerms }: TypedWord,
    visible: VisibleRecords | undefined,
  ): string[] {
    const found = prefixes.flatMap(prefix =>
      this.#postings.expandPrefix(collection, { prefix, limit: COMPLETIONS_MAX, visible }),
    )
    const completions = [
      ...new Set(found.map(({ term }) => term).filter(term => !term.startsWith(characterTermPrefix))),
    ]
    if (completions.length > 0) return completions
    const shorter = [...shorterTerms].sort((a, b) => b.length - a.length)
    const counts = this.#count(
      collection,
      shorter.map(term => [term]),
      visible,
    )
    return shorter.filter((_, at) => counts[at]! > 0).slice(0, 1)
  }

  #similar(
    collection: number,
    word: string,
    analyzer: Analyzer,
    visible: VisibleRecords | undefined,
  ): ExpandedWord | undefined {
    const list = {
      from: (from: string, limit: number) => this.#postings.listTerms(collection, { from, limit }),
      count: (term: string) => this.#count(collection, [[term]], visible)[0]!,
    }
    const similar = similarTerms(analyzer, word, list, SIMILAR_TERMS_MAX)
    const nearest = similar.filter(({ distance }) => distance === similar[0]!.distance)
    if (nearest.length === 0) return undefined
    const terms = nearest.map(({ term }) => term)
    return { word, match: 'similar', terms, weight: 1 / (1 + nearest[0]!.distance) }
  }
}

/** Returns the letters of a term that is a part of a text without spaces. */
function partOf(term: string): string {
  return term.startsWith(characterTermPrefix) ? term.slice(characterTermPrefix.length) : term
}

/** Returns true if a word without a match has a part that was found, as `userid` of `user_id`. */
function isCompoundOf(word: string, known: ReadonlySet<string>): boolean {
  return [...known].some(other => word.includes(other))
}

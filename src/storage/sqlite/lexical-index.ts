import type { Analyzers } from '../../base/analysis/analyzers.ts'
import { compilePhrase, type Phrase } from '../../base/analysis/phrase.ts'
import { WbError } from '../../contract/errors.ts'
import type { CollectionKey, Occurrences, ScoredRecord, SearchConstraints, WordScores } from '../content.ts'
import type { AllowedRecords } from './allowed-records.ts'
import { type CollectionRow, requireCollection } from './collections.ts'
import type { SqliteConnection } from './connection.ts'
import { FullTextIndex } from './full-text-index.ts'
import type { ExplainQuery, LexicalQuery, OccurrencesQuery } from './lexical-query.ts'
import { findActivePostingIndex, type PostingIndexRow } from './postings/index-rows.ts'
import { PostingReader } from './postings/posting-reader.ts'
import type { VisibleRecords } from './postings/record-masks.ts'
import { type ExpandedWord, WordExpansion } from './word-expansion.ts'

/** Maximum number of records, best first, whose texts are checked for the exact phrases of a query. */
const PHRASE_CANDIDATES_MAX = 2_000

/**
 * Ranks records by the words of a query. Uses the posting index of a collection. While that is being built, uses the
 * full-text table that an earlier version created.
 *
 * Calls must run inside `Analyzers.run`.
 */
export class LexicalIndex {
  readonly #connection: SqliteConnection
  readonly #allowedRecords: AllowedRecords
  readonly #analyzers: Analyzers
  readonly #postings: PostingReader
  readonly #expansion: WordExpansion
  readonly #fullText: FullTextIndex

  constructor(connection: SqliteConnection, allowedRecords: AllowedRecords, analyzers: Analyzers) {
    this.#connection = connection
    this.#allowedRecords = allowedRecords
    this.#analyzers = analyzers
    this.#postings = new PostingReader(connection)
    this.#expansion = new WordExpansion(this.#postings)
    this.#fullText = new FullTextIndex(connection, allowedRecords)
  }

  /**
   * Returns the records that contain any of the query's words, best first; equal scores by ascending record. With a posting
   * index, they also contain all its phrases, and words without a match are replaced by similar ones.
   *
   * @throws hybrid_not_supported    the collection was created without lexical search, or its posting index is not
   *                                 complete and `statistics` is not `collection`
   * @throws collection_unavailable  there is no such collection
   */
  search(key: CollectionKey, query: LexicalQuery): ScoredRecord[] {
    return this.#read(key, (collection, index) => {
      if (!index) return this.#fullText.search(collection, query)
      const { phrases, words: expanded } = this.#parse(collection, index, query)
      const words = expanded.filter(hasTerms)
      const visible = this.#visibleRecords(collection, query)
      const { limit } = query
      if (phrases.length === 0) return this.#postings.search(collection.id, { words, limit, visible })
      const required = phrases.flatMap(phrase => phrase.required)
      const candidates = { words, limit: PHRASE_CANDIDATES_MAX, visible, required }
      return this.#withPhrases(this.#postings.search(collection.id, candidates), phrases, limit)
    })
  }

  /**
   * Returns the words of a query with their part in the scores of the given records.
   *
   * @throws hybrid_not_supported, collection_unavailable  as `search`
   */
  explain(key: CollectionKey, query: ExplainQuery): WordScores {
    return this.#read(key, (collection, index) => {
      if (!index) return this.#fullText.explain(collection, query)
      const { words } = this.#parse(collection, index, query)
      const visible = this.#visibleRecords(collection, query)
      const { among } = query
      const { records, groups } = this.#postings.countOccurrences(collection.id, {
        groups: words.map(({ terms }) => [terms]),
        among: [],
        visible,
      })
      return {
        records,
        words: words.map((expanded, at) => {
          const { word, match, terms } = expanded
          const found = { words: hasTerms(expanded) ? [expanded] : [], limit: among.length, visible, among }
          const scores = this.#postings.search(collection.id, found)
          return { word, match, terms, records: groups[at]!.records, scores }
        }),
      }
    })
  }

  /** Returns the phrases of a query, and its words with the terms to rank by. */
  #parse(
    collection: CollectionRow,
    { language }: PostingIndexRow,
    { text, isTyping = false, visibility }: Pick<LexicalQuery, 'text' | 'isTyping' | 'visibility'>,
  ): { phrases: readonly Phrase[]; words: readonly ExpandedWord[] } {
    const analyzer = this.#analyzers.get(language)
    const parsed = analyzer.parseQuery(text, { isTyping })
    // Ignores the filter, so that a word that occurs only in other records is not replaced by a similar one.
    const visible = this.#visibleRecords(collection, { visibility })
    return {
      phrases: parsed.phrases,
      words: this.#expansion.expand(collection.id, parsed, analyzer, visible),
    }
  }

  /** Returns the first `limit` candidates that contain all phrases, in the order of the candidates. */
  #withPhrases(
    candidates: readonly ScoredRecord[],
    phrases: readonly Phrase[],
    limit: number,
  ): ScoredRecord[] {
    const read = this.#connection.prepare<{ title: string | null; text: string | null }>(
      'SELECT title, text FROM record WHERE record = ?',
    )
    const found: ScoredRecord[] = []
    for (const candidate of candidates) {
      if (found.length === limit) break
      const { title, text } = read.get(candidate.record)!
      if (phrases.every(phrase => phrase.matches(text ?? '') || phrase.matches(title ?? '')))
        found.push(candidate)
    }
    return found
  }

  /**
   * Counts words over the records that a caller may see.
   *
   * @throws hybrid_not_supported    the collection was created without lexical search
   * @throws collection_unavailable  there is no such collection
   */
  countOccurrences(key: CollectionKey, query: OccurrencesQuery): Occurrences {
    return this.#read(key, (collection, index) => {
      if (!index) return this.#fullText.countOccurrences(collection, query)
      const analyzer = this.#analyzers.get(index.language)
      const groups = query.words.map(word => compilePhrase(analyzer, word)?.required ?? [])
      const counted = this.#postings.countOccurrences(collection.id, {
        groups,
        among: query.among,
        visible: this.#visibleRecords(collection, query),
      })
      return {
        records: counted.records,
        words: counted.groups.map((occurrences, at) => ({ word: query.words[at]!, ...occurrences })),
      }
    })
  }

  #read<T>(
    key: CollectionKey,
    read: (collection: CollectionRow, index: PostingIndexRow | undefined) => T,
  ): T {
    return this.#connection.snapshot(() => {
      const collection = requireCollection(this.#connection, key)
      if (!collection.lexical)
        throw new WbError('hybrid_not_supported', 'the collection was created without lexical search')
      return read(collection, findActivePostingIndex(this.#connection, collection.id))
    })
  }

  #visibleRecords(collection: CollectionRow, constraints: SearchConstraints): VisibleRecords | undefined {
    const { visibility, filter } = constraints
    if (!visibility.filter && !filter) return undefined
    const key = JSON.stringify([visibility.filter, filter])
    const read = () => this.#allowedRecords.allowed(collection, constraints)!.ascending
    return { key, read }
  }
}

function hasTerms({ terms }: ExpandedWord): boolean {
  return terms.length > 0
}

import { queryWords } from '../../base/words.ts'
import { WbError } from '../../contract/errors.ts'
import type { Occurrences, ScoredRecord, WordScores } from '../content.ts'
import type { RecordSet } from '../record-set.ts'
import type { AllowedRecords } from './allowed-records.ts'
import { type CollectionRow, textTable } from './collections.ts'
import type { SqliteConnection } from './connection.ts'
import type { ExplainQuery, LexicalQuery, OccurrencesQuery } from './lexical-query.ts'

/** Weight of a match in the title, relative to a match in the text. */
const TITLE_WEIGHT = '3.0'
const TEXT_WEIGHT = '1.0'

/**
 * Ranks records by words with the full-text table of an earlier schema (BM25 with k1 = 1.2, b = 0.75). Each call must run in
 * a transaction.
 *
 * @see https://www.sqlite.org/fts5.html#the_bm25_function
 */
export class FullTextIndex {
  readonly #connection: SqliteConnection
  readonly #allowedRecords: AllowedRecords

  constructor(connection: SqliteConnection, allowedRecords: AllowedRecords) {
    this.#connection = connection
    this.#allowedRecords = allowedRecords
  }

  /**
   * Returns the records that contain any of the query's words, best first; equal scores by ascending record.
   *
   * @throws hybrid_not_supported  `statistics` is not `collection`
   */
  search(collection: CollectionRow, query: LexicalQuery): ScoredRecord[] {
    requireWholeCollection(query)
    const match = matchOf(query.text)
    const allowed = this.#allowedRecords.allowed(collection, query)
    if (match === '' || allowed?.size === 0) return []
    return this.#rank(textTable(collection.id), match, query.limit, allowed)
  }

  /**
   * Returns the words of a query with their part in the scores of the given records.
   *
   * @throws hybrid_not_supported  as `search`
   */
  explain(collection: CollectionRow, query: ExplainQuery): WordScores {
    requireWholeCollection(query)
    const allowed = this.#allowedRecords.allowed(collection, query)
    const counted = this.countOccurrences(collection, { ...query, words: queryWords(query.text) })
    const table = textTable(collection.id)
    return {
      records: counted.records,
      words: counted.words.map(({ word, records, among }) => {
        const explained = new Set(among.filter(record => allowed?.has(record) ?? true))
        const scores = this.#rank(table, phraseOf(word), explained.size, explained)
        return { word, match: 'word', terms: records > 0 ? [word] : [], records, scores }
      }),
    }
  }

  /** Counts words over the records that a caller may see. Reads all index entries of each word. */
  countOccurrences(collection: CollectionRow, { words, among, visibility }: OccurrencesQuery): Occurrences {
    const allowed = this.#allowedRecords.allowed(collection, { visibility })
    const table = textTable(collection.id)
    const matching = this.#connection.prepare<{ record: number }>(
      `SELECT rowid AS record FROM ${table} WHERE ${table} MATCH ?`,
    )
    const counted = words.map(word => {
      const records = matching.all(phraseOf(word)).map(({ record }) => record)
      const visible = new Set(allowed ? records.filter(record => allowed.has(record)) : records)
      return { word, records: visible.size, among: among.filter(record => visible.has(record)) }
    })
    return { records: allowed ? allowed.size : collection.records, words: counted }
  }

  /** Ranks all matches, and skips records that are not allowed before applying the limit. */
  #rank(
    table: string,
    match: string,
    limit: number,
    allowed: Pick<RecordSet, 'has'> | undefined,
  ): ScoredRecord[] {
    const rows = this.#connection
      .prepare<ScoredRecord>(
        `SELECT rowid AS record, -bm25(${table}, ${TITLE_WEIGHT}, ${TEXT_WEIGHT}) AS score FROM ${table}
          WHERE ${table} MATCH ? ORDER BY score DESC, record LIMIT ?`,
      )
      .iterate(match, allowed ? -1 : limit)
    const ranked: ScoredRecord[] = []
    for (const row of rows) {
      if (allowed && !allowed.has(row.record)) continue
      ranked.push(row)
      if (ranked.length === limit) break
    }
    return ranked
  }
}

/** @throws hybrid_not_supported */
function requireWholeCollection({ statistics }: Pick<LexicalQuery, 'statistics'>): void {
  if (statistics !== 'collection')
    throw new WbError(
      'hybrid_not_supported',
      'the lexical index of the knowledge base is not complete yet; until then, only callers who may see all its documents can use lexical search',
      { hint: 'Retry in a few minutes.' },
    )
}

/** Returns a full-text expression that matches any word of a text; empty if the text has no words. */
export function matchOf(text: string): string {
  return queryWords(text).map(phraseOf).join(' OR ')
}

/** Returns a word as a quoted full-text string. Words contain no quotes. */
function phraseOf(word: string): string {
  return `"${word}"`
}

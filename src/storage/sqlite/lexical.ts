import { stopwords } from '../../base/words.ts'
import { WbError } from '../../contract/errors.ts'
import type { CollectionKey, Reach, Scored } from '../content.ts'
import type { Statistics } from '../visibility.ts'
import { requireCollection, textTable } from './collections.ts'
import type { Connection } from './connection.ts'
import type { Reaches } from './reach.ts'

/** A match in the title counts this much more than one in the text. */
const TITLE_WEIGHT = '3.0'
const TEXT_WEIGHT = '1.0'
/** Different words of a query that are looked up; a longer query is a text, whose first words tell what it is about. */
const QUERY_WORDS_MAX = 256

export interface LexicalQuery extends Reach {
  readonly text: string
  readonly limit: number
  readonly statistics: Statistics
}

/**
 * Lexical ranking by the full-text index of the collection (BM25 with k1 = 1.2, b = 0.75).
 *
 * @see https://www.sqlite.org/fts5.html#the_bm25_function
 */
export class Lexical {
  readonly #connection: Connection
  readonly #reaches: Reaches

  constructor(connection: Connection, reaches: Reaches) {
    this.#connection = connection
    this.#reaches = reaches
  }

  /**
   * Records that hold any of the query's words, best first; equal scores by record, ascending.
   *
   * @throws hybrid_not_supported    the collection has no full-text index, or scores must not count hidden rows
   * @throws collection_unavailable  there is no such collection
   */
  search(key: CollectionKey, query: LexicalQuery): Scored[] {
    if (query.statistics !== 'collection')
      throw new WbError('hybrid_not_supported', 'this store cannot rank by words over the visible rows only')
    return this.#connection.snapshot(() => {
      const collection = requireCollection(this.#connection, key)
      if (!collection.lexical)
        throw new WbError('hybrid_not_supported', 'the collection was made without a full-text index')
      const match = matchOf(query.text)
      const allowed = this.#reaches.allowed(collection, query)
      if (match === '' || allowed?.size === 0) return []
      return this.#rank(textTable(collection.id), match, query.limit, allowed)
    })
  }

  /** The engine ranks every match; what is not allowed is passed over before the cut. */
  #rank(table: string, match: string, limit: number, allowed: ReadonlySet<number> | undefined): Scored[] {
    const rows = this.#connection
      .prepare<Scored>(
        `SELECT rowid AS record, -bm25(${table}, ${TITLE_WEIGHT}, ${TEXT_WEIGHT}) AS score FROM ${table}
          WHERE ${table} MATCH ? ORDER BY score DESC, record LIMIT ?`,
      )
      .iterate(match, allowed ? -1 : limit)
    const ranked: Scored[] = []
    for (const row of rows) {
      if (allowed && !allowed.has(row.record)) continue
      ranked.push(row)
      if (ranked.length === limit) break
    }
    return ranked
  }
}

/** A full-text expression that any of the words satisfies; empty when there is none. */
export function matchOf(text: string): string {
  // The characters that unicode61 takes for parts of a token; quotes cannot be among them.
  const words = new Set(text.toLowerCase().match(/[\p{L}\p{N}\p{M}\p{Co}]+/gu))
  const telling = [...words].filter(word => !stopwords.has(word))
  const asked = telling.length > 0 ? telling : [...words]
  return asked
    .slice(0, QUERY_WORDS_MAX)
    .map(word => `"${word}"`)
    .join(' OR ')
}

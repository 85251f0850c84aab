import { analyzerVersion } from '../../base/analysis/analyzer.ts'
import type { Analyzers } from '../../base/analysis/analyzers.ts'
import { languageCode } from '../../base/analysis/languages.ts'
import { textTable } from './collections.ts'
import type { CommitQueue, DeferStep } from './commit-queue.ts'
import type { SqliteConnection } from './connection.ts'
import type { IndexedText, PostingChanges } from './posting-changes.ts'
import { listPostingIndexes, type PostingIndexRow } from './postings/index-rows.ts'
import { POSTING_SLICE_MAX, PostingWriter } from './postings/posting-writer.ts'
import type { PostingRecord } from './postings/segment-builder.ts'

/** Collection whose posting index is missing, or was built for another language or analyzer version. */
interface DueCollection {
  readonly id: number
  readonly language: string | null
  readonly fullText: 0 | 1
}

/** Records to add to an index that is being filled. */
interface BackfillSlice {
  readonly collection: DueCollection
  /** Record after which the slice begins. */
  readonly after: number
  readonly records: readonly PostingRecord[]
}

/**
 * Fills the posting indexes of collections that have none, or whose language has changed, by ascending record. Each step
 * is one transaction, and continues after the last step of any process. The last step of a collection makes its index the
 * active one.
 */
export class PostingBackfill {
  readonly #connection: SqliteConnection
  readonly #queue: CommitQueue
  readonly #changes: PostingChanges
  readonly #analyzers: Analyzers
  readonly #writer: PostingWriter

  constructor(
    connection: SqliteConnection,
    queue: CommitQueue,
    changes: PostingChanges,
    analyzers: Analyzers,
  ) {
    this.#connection = connection
    this.#queue = queue
    this.#changes = changes
    this.#analyzers = analyzers
    this.#writer = new PostingWriter(connection)
  }

  /** Indexes the next records; returns false if all indexes are complete. */
  async step(): Promise<boolean> {
    const collection = this.#due()
    if (!collection) return false
    const slice = await this.#analyzers.run(() => this.#readSlice(collection))
    await this.#queue.run({
      run: defer => this.#apply(slice, defer),
      shouldCommit: isCurrent => isCurrent,
    })
    return true
  }

  #due(id?: number): DueCollection | undefined {
    return this.#connection
      .prepare<DueCollection>(
        `SELECT id, language, full_text AS fullText FROM collection WHERE reindex = 1 AND id >= ? AND id <= ? ORDER BY id LIMIT 1`,
      )
      .get(id ?? 0, id ?? Number.MAX_SAFE_INTEGER)
  }

  /** Reads and analyzes the next records. Runs before the transaction, to keep the transaction short. */
  #readSlice(collection: DueCollection): BackfillSlice {
    const language = languageCode(collection.language)
    const after = this.#target(collection)?.lastRecord ?? 0
    const records = this.#texts(collection.id, after, POSTING_SLICE_MAX).map(text =>
      this.#changes.analyze(language, text),
    )
    return { collection, after, records }
  }

  /** Returns the index that is being filled; undefined if no index is being filled. */
  #target({ id, language }: DueCollection): PostingIndexRow | undefined {
    return listPostingIndexes(this.#connection, id).findLast(
      index =>
        index.active === 0 && index.analyzer === analyzerVersion && index.language === languageCode(language),
    )
  }

  #texts(collection: number, after: number, limit: number): IndexedText[] {
    return this.#connection
      .prepare<IndexedText>(
        `SELECT record, title, text FROM record INDEXED BY record_by_collection
          WHERE collection = ? AND record > ? AND (title IS NOT NULL OR text IS NOT NULL) ORDER BY record LIMIT ?`,
      )
      .all(collection, after, limit)
  }

  /**
   * Adds a slice.
   *
   * @returns false if the slice is out of date, because the language has changed or another process did the work
   */
  #apply(
    { collection: { id, language, fullText }, after, records }: BackfillSlice,
    defer: DeferStep,
  ): boolean {
    const collection = this.#due(id)
    if (collection?.language !== language) return false
    const index = this.#target(collection) ?? this.#begin(collection)
    if (index.lastRecord !== after) return false
    const find = this.#connection.prepare('SELECT 1 FROM record WHERE record = ?')
    this.#writer.add(
      index,
      records.filter(({ record }) => find.get(record) !== undefined),
    )
    if (this.#texts(id, records.at(-1)?.record ?? after, 1).length === 0) {
      this.#writer.activate(index)
      this.#connection.prepare('UPDATE collection SET reindex = 0, full_text = 0 WHERE id = ?').run(id)
      if (fullText) defer(() => this.#connection.database.exec(`DROP TABLE IF EXISTS ${textTable(id)}`))
    }
    return true
  }

  /** Creates the next generation of an index. Drops an incomplete one for another language or analyzer version. */
  #begin({ id, language }: DueCollection): PostingIndexRow {
    const indexes = listPostingIndexes(this.#connection, id)
    for (const index of indexes) if (index.active === 0) this.#writer.drop(index)
    const key = { collection: id, generation: (indexes.at(-1)?.generation ?? 0) + 1 }
    this.#writer.create(key, { language: languageCode(language), analyzer: analyzerVersion })
    return this.#target({ id, language, fullText: 0 })!
  }
}

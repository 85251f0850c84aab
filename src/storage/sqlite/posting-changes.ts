import { analyzerVersion } from '../../base/analysis/analyzer.ts'
import type { Analyzers } from '../../base/analysis/analyzers.ts'
import { languageCode } from '../../base/analysis/languages.ts'
import type { ContentWrite } from '../content.ts'
import { findCollection } from './collections.ts'
import type { CommitParticipant, DeferStep } from './commit-queue.ts'
import type { SqliteConnection } from './connection.ts'
import { findActivePostingIndex, listPostingIndexes, type PostingIndexRow } from './postings/index-rows.ts'
import { PostingWriter } from './postings/posting-writer.ts'
import type { PostingRecord } from './postings/segment-builder.ts'

/** The texts of a record that lexical search covers. */
export interface IndexedText {
  readonly record: number
  readonly title: string | null
  readonly text: string | null
}

/** Changes of a commit to the postings of one collection. */
interface PendingPostings {
  /** Records with the index that they were analyzed for. */
  readonly added: { readonly index: PostingIndexRow; readonly record: PostingRecord }[]
  readonly removed: number[]
}

/**
 * Keeps posting indexes up to date with their records. Collects the changes of a commit, and applies them before its end,
 * so that each collection gets one segment per commit.
 */
export class PostingChanges implements CommitParticipant {
  readonly #connection: SqliteConnection
  readonly #analyzers: Analyzers
  readonly #writer: PostingWriter
  readonly #pending = new Map<number, PendingPostings>()

  constructor(connection: SqliteConnection, analyzers: Analyzers) {
    this.#connection = connection
    this.#analyzers = analyzers
    this.#writer = new PostingWriter(connection)
  }

  /** Loads the languages that changes need. Languages that other processes change in the meantime are loaded later. */
  async loadLanguages(changes: readonly ContentWrite[]): Promise<void> {
    for (const change of changes) {
      if (change.op === 'createCollection' && change.lexical)
        await this.#analyzers.load(languageCode(change.language))
      if (change.op !== 'upsert') continue
      const collection = findCollection(this.#connection, change)
      const index = collection && findActivePostingIndex(this.#connection, collection.id)
      if (index) await this.#analyzers.load(index.language)
    }
  }

  begin(): void {
    this.#pending.clear()
  }

  /** Creates the empty index of a new collection. */
  create(collection: number, language: string | null): void {
    const key = { collection, generation: 1 }
    this.#writer.create(key, { language: languageCode(language), analyzer: analyzerVersion })
    this.#writer.activate(key)
  }

  /**
   * Adds a record to the active index, if the collection has one. `PostingBackfill` adds it to an index that is being
   * filled.
   */
  add(collection: number, text: IndexedText, defer: DeferStep): void {
    const index = findActivePostingIndex(this.#connection, collection)
    if (!index) return
    const record = this.analyze(index.language, text)
    defer(() => this.#pendingOf(collection).added.push({ index, record }))
  }

  /** Removes a record from all indexes. */
  remove(collection: number, record: number, defer: DeferStep): void {
    defer(() => this.#pendingOf(collection).removed.push(record))
  }

  dropCollection(collection: number): void {
    this.#writer.dropCollection(collection)
  }

  /** Counts the terms of a record. */
  analyze(language: string, { record, title, text }: IndexedText): PostingRecord {
    const analyzer = this.#analyzers.get(language)
    return {
      record,
      title: analyzer.countTerms(title ?? '').counts,
      text: analyzer.countTerms(text ?? '').counts,
    }
  }

  beforeCommit(): void {
    for (const [collection, { added, removed }] of this.#pending) {
      const gone = new Set(removed)
      for (const index of listPostingIndexes(this.#connection, collection)) {
        // If the backfill replaced the index in this commit, it has already read these records from the table.
        const records = added.filter(each => each.index.id === index.id && !gone.has(each.record.record))
        this.#writer.add(
          index,
          records.map(({ record }) => record),
        )
        this.#writer.remove(index, removed)
      }
    }
    this.#pending.clear()
  }

  #pendingOf(collection: number): PendingPostings {
    let pending = this.#pending.get(collection)
    if (!pending) {
      pending = { added: [], removed: [] }
      this.#pending.set(collection, pending)
    }
    return pending
  }
}

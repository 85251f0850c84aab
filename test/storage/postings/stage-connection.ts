import { SqliteConnection } from '../../../src/storage/sqlite/connection.ts'
import { PostingMerger } from '../../../src/storage/sqlite/postings/posting-merger.ts'
import { PostingReader } from '../../../src/storage/sqlite/postings/posting-reader.ts'
import { PostingWriter } from '../../../src/storage/sqlite/postings/posting-writer.ts'
import { postingsSchema, segmentBytesSchema } from '../../../src/storage/sqlite/postings/schema.ts'

/** Ends a step after each write, so that the merges of small stores have several steps. */
const STEP_BYTES_MAX = 1

/** Active index of the tests. */
export const index = { collection: 1, generation: 1 }

/** Rules of the terms, which the tests make themselves. */
export const analysis = { language: 'auto', analyzer: 1 }

export interface Stage {
  readonly connection: SqliteConnection
  readonly writer: PostingWriter
  readonly reader: PostingReader
  readonly merger: PostingMerger
  /** Runs changes in one transaction. */
  write<T>(change: () => T): T
  /** Runs merge steps, all if `max` is not given; returns false when nothing is left to do. */
  merge(max?: number): boolean
}

const MEMORY = ':memory:'

/** Opens a connection to an existing store of postings. */
export function openStage(path: string, owner = 'one'): Stage {
  const connection = new SqliteConnection(path)
  // Not `makeDurable`, with which tests start from a migrated store.
  connection.database.pragma('journal_mode = WAL')
  const merger = new PostingMerger(connection, owner, STEP_BYTES_MAX)
  const write = <T>(change: () => T): T => {
    connection.prepare('BEGIN IMMEDIATE').run()
    try {
      const result = change()
      connection.prepare('COMMIT').run()
      return result
    } finally {
      connection.rollback()
    }
  }
  return {
    connection,
    writer: new PostingWriter(connection),
    reader: new PostingReader(connection),
    merger,
    write,
    merge(max = Number.POSITIVE_INFINITY) {
      for (let step = 0; step < max; step++) if (!write(() => merger.step(0))) return false
      return true
    },
  }
}

/** Creates a store with an empty active index. */
export function createStage(path = MEMORY): Stage {
  const stage = openStage(path)
  stage.connection.database.exec(postingsSchema + segmentBytesSchema)
  stage.write(() => {
    stage.writer.create(index, analysis)
    stage.writer.activate(index)
  })
  return stage
}

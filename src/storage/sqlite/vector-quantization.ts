import { WbError } from '../../contract/errors.ts'
import { QUANTIZED_FORMAT } from '../scan/quantized-rows.ts'
import { type VectorRow, vectorTable } from './collections.ts'
import type { CommitQueue } from './commit-queue.ts'
import type { SqliteConnection } from './connection.ts'
import { deleteQuantizedVectors, type QuantizedCollection, quantizeVectors } from './quantized-vectors.ts'

/** Number of vectors per block. */
export const QUANTIZED_BLOCK_ROWS = 1024

interface LargeCollection extends QuantizedCollection {
  readonly records: number
  /** Last record that a block covers; 0 if there is none. */
  readonly through: number
  /** Rows of all blocks, including those of deleted records. */
  readonly size: number
  /** 1 if all blocks have the format of this version of the runtime. */
  readonly isCurrent: 0 | 1
}

/** Returns true if vectors must be quantized. */
export function hasQuantizationWork(connection: SqliteConnection): boolean {
  return largeCollections(connection).some(each => isOutdated(each) || hasFullBlock(connection, each))
}

/**
 * Stores quantized vectors in the background: a block for each `QUANTIZED_BLOCK_ROWS` vectors, in ascending order of their
 * records. Searches quantize the vectors after the last block when they load them.
 *
 * Deleted records remain in their blocks. If more than half of the rows are of deleted records, all blocks of the
 * collection are written again.
 */
export class VectorQuantization {
  readonly #connection: SqliteConnection
  readonly #queue: CommitQueue
  /** Tables with a vector that cannot be read. */
  readonly #damaged = new Set<string>()

  constructor(connection: SqliteConnection, queue: CommitQueue) {
    this.#connection = connection
    this.#queue = queue
  }

  /** Writes or deletes blocks of one collection; returns false if nothing is left to do, or the store is in memory. */
  async step(): Promise<boolean> {
    if (this.#connection.database.memory) return false
    for (const collection of largeCollections(this.#connection)) {
      const table = vectorTable(collection.id, collection.generation)
      if (isOutdated(collection)) {
        await this.#queue.run({
          run: () => deleteQuantizedVectors(this.#connection, table),
          shouldCommit: () => true,
        })
        return true
      }
      if (!this.#damaged.has(table) && hasFullBlock(this.#connection, collection))
        if (await this.#addBlock(collection, table)) return true
    }
    return false
  }

  /** Reads and quantizes vectors before the transaction, so that it takes little time. */
  async #addBlock(collection: LargeCollection, table: string): Promise<boolean> {
    const vectors = this.#connection
      .prepare<VectorRow>(`SELECT record, data FROM ${table} WHERE record > ? ORDER BY record LIMIT ?`)
      .all(collection.through, QUANTIZED_BLOCK_ROWS)
    if (vectors.length < QUANTIZED_BLOCK_ROWS) return false
    try {
      const { facts, levels } = quantizeVectors(collection, vectors)
      await this.#queue.run({
        run: () => {
          const current = largeCollections(this.#connection).find(({ id }) => id === collection.id)
          const isSame =
            current?.generation === collection.generation && current.through === collection.through
          if (isSame)
            this.#connection
              .prepare(
                `INSERT INTO quantized_vectors (table_name, first, through, size, format, facts, levels)
                  VALUES (?, ?, ?, ?, ?, ?, ?)`,
              )
              .run(
                table,
                vectors[0]!.record,
                vectors.at(-1)!.record,
                vectors.length,
                QUANTIZED_FORMAT,
                Buffer.from(facts.buffer),
                Buffer.from(levels.buffer),
              )
        },
        shouldCommit: () => true,
      })
    } catch (error) {
      if (!(error instanceof WbError)) throw error
      // A search of the collection reports the damage.
      this.#damaged.add(table)
    }
    return true
  }
}

function largeCollections(connection: SqliteConnection): LargeCollection[] {
  return connection
    .prepare<LargeCollection>(
      `SELECT id, generation, dimension, metric, records, coalesce(max(through), 0) AS through,
          coalesce(sum(size), 0) AS size, coalesce(min(format = ${QUANTIZED_FORMAT}), 1) AS isCurrent
        FROM collection LEFT JOIN quantized_vectors ON table_name = 'vec_' || id || '_' || generation
        WHERE records >= ${QUANTIZED_BLOCK_ROWS} GROUP BY id ORDER BY id`,
    )
    .all()
}

/** Returns true if the blocks have another format, or more than half of their rows are of deleted records. */
function isOutdated({ isCurrent, size, records }: LargeCollection): boolean {
  return !isCurrent || size > 2 * records
}

function hasFullBlock(connection: SqliteConnection, { id, through }: LargeCollection): boolean {
  const last = connection
    .prepare(
      `SELECT 1 FROM record INDEXED BY record_by_collection WHERE collection = ? AND record > ?
        LIMIT 1 OFFSET ${QUANTIZED_BLOCK_ROWS - 1}`,
    )
    .get(id, through)
  return last !== undefined
}

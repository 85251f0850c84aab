import { WbError } from '../../contract/errors.ts'
import { QUANTIZED_FORMAT } from '../scan/quantized-rows.ts'
import { type VectorRow, vectorTable } from './collections.ts'
import type { CommitQueue } from './commit-queue.ts'
import type { SqliteConnection } from './connection.ts'
import { deleteQuantizedVectors, type QuantizedSpace, quantizeVectors } from './quantized-vectors.ts'

/** Number of vectors per block. */
const QUANTIZED_BLOCK_ROWS = 1024

interface LargeSpace extends QuantizedSpace {
  readonly collection: number
  readonly vectors: number
  /** Last record that a block covers; 0 without blocks. */
  readonly through: number
  /** Rows of all blocks, including those of deleted records. */
  readonly size: number
  /** 1 if all blocks have the format of this version of the runtime. */
  readonly isCurrent: 0 | 1
}

/** Returns true if vectors must be quantized. */
export function hasQuantizationWork(connection: SqliteConnection): boolean {
  return largeSpaces(connection).some(each => isOutdated(each) || hasFullBlock(connection, each))
}

/**
 * Stores quantized vectors in the background: a block for each `QUANTIZED_BLOCK_ROWS` vectors, in ascending order of their
 * records. Searches quantize the vectors after the last block when they load them.
 *
 * Deleted records remain in their blocks. If more than half of the rows are of deleted records, all blocks of the
 * space are written again.
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

  /** Writes or deletes blocks of one space; returns false if nothing is left to do, or the store is in memory. */
  async step(): Promise<boolean> {
    if (this.#connection.database.memory) return false
    for (const space of largeSpaces(this.#connection)) {
      const table = vectorTable(space)
      if (isOutdated(space)) {
        await this.#queue.run({
          run: () => deleteQuantizedVectors(this.#connection, table),
          shouldCommit: () => true,
        })
        return true
      }
      if (!this.#damaged.has(table) && hasFullBlock(this.#connection, space))
        if (await this.#addBlock(space, table)) return true
    }
    return false
  }

  /** Reads and quantizes vectors before the transaction, to keep the transaction short. */
  async #addBlock(space: LargeSpace, table: string): Promise<boolean> {
    const vectors = this.#connection
      .prepare<VectorRow>(`SELECT record, data FROM ${table} WHERE record > ? ORDER BY record LIMIT ?`)
      .all(space.through, QUANTIZED_BLOCK_ROWS)
    if (vectors.length < QUANTIZED_BLOCK_ROWS) return false
    try {
      const { facts, levels } = quantizeVectors(space, vectors)
      await this.#queue.run({
        run: () => {
          const current = largeSpaces(this.#connection).find(({ spaceId }) => spaceId === space.spaceId)
          const isSame = current?.generation === space.generation && current.through === space.through
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
      // A search of the space reports the damage.
      this.#damaged.add(table)
    }
    return true
  }
}

function largeSpaces(connection: SqliteConnection): LargeSpace[] {
  return connection
    .prepare<LargeSpace>(
      `SELECT id AS spaceId, collection, generation, dimension, metric, vectors, coalesce(max(through), 0) AS through,
          coalesce(sum(size), 0) AS size, coalesce(min(format = ${QUANTIZED_FORMAT}), 1) AS isCurrent
        FROM vector_space LEFT JOIN quantized_vectors ON table_name = 'vec_' || id || '_' || generation
        WHERE vectors >= ${QUANTIZED_BLOCK_ROWS} GROUP BY id ORDER BY id`,
    )
    .all()
}

/** Returns true if the blocks have another format, or more than half of their rows are of deleted records. */
function isOutdated({ isCurrent, size, vectors }: LargeSpace): boolean {
  return !isCurrent || size > 2 * vectors
}

/** Returns true if there are enough records for another block. Some may have no vector in the space. */
function hasFullBlock(connection: SqliteConnection, { collection, through }: LargeSpace): boolean {
  const last = connection
    .prepare(
      `SELECT 1 FROM record INDEXED BY record_by_collection WHERE collection = ? AND record > ?
        LIMIT 1 OFFSET ${QUANTIZED_BLOCK_ROWS - 1}`,
    )
    .get(collection, through)
  return last !== undefined
}

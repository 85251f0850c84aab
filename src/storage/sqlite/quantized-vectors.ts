import { isDeepStrictEqual } from 'node:util'
import { loadScanModule } from '../scan/module.ts'
import { areQuantizedRows, QUANTIZED_FORMAT, type QuantizedRows, selectRows } from '../scan/quantized-rows.ts'
import { Segment } from '../scan/segment.ts'
import { type CollectionRow, decodeVector, type VectorRow, vectorTable } from './collections.ts'
import type { SqliteConnection } from './connection.ts'

/** Fields of a vector space that are needed to find and to decode its quantized vectors. */
export type QuantizedSpace = Pick<CollectionRow, 'spaceId' | 'generation' | 'dimension' | 'metric'>

/** A row of `quantized_vectors`: the quantized vectors of the records from `first` to `through`. */
interface QuantizedBlock {
  readonly first: number
  readonly through: number
  readonly size: number
  readonly format: number
  readonly facts: Buffer
  readonly levels: Buffer
}

/** Returns the first block of a space after a record. */
function nextQuantizedBlock(
  connection: SqliteConnection,
  space: QuantizedSpace,
  after: number,
): QuantizedBlock | undefined {
  return connection
    .prepare<QuantizedBlock>(
      `SELECT first, through, size, format, facts, levels FROM quantized_vectors
        WHERE table_name = ? AND through > ? ORDER BY through LIMIT 1`,
    )
    .get(vectorTable(space), after)
}

/** Returns the quantized vectors of a block; undefined if it is damaged or has another format. */
function decodeQuantizedBlock(
  { facts, levels, size, format, first, through }: QuantizedBlock,
  dimension: number,
): QuantizedRows | undefined {
  if (format !== QUANTIZED_FORMAT) return undefined
  const isAligned = facts.byteOffset % Float64Array.BYTES_PER_ELEMENT === 0
  const { buffer, byteOffset, byteLength } = isAligned ? facts : Uint8Array.from(facts)
  const rows = {
    facts: new Float64Array(buffer, byteOffset, Math.floor(byteLength / Float64Array.BYTES_PER_ELEMENT)),
    levels: new Int8Array(levels.buffer, levels.byteOffset, levels.byteLength),
  }
  return areQuantizedRows(rows, { dimension, count: size, first, last: through }) ? rows : undefined
}

/**
 * Reads the stored quantized vectors of a space, in ascending order of their records. They include every vector up to the
 * last `through`. Stops at a block that cannot be used.
 *
 * Call it inside a transaction that has read `collection`.
 */
export function* readQuantizedVectors(
  connection: SqliteConnection,
  collection: CollectionRow,
): Generator<{ readonly rows: QuantizedRows; readonly through: number }> {
  for (let after = 0; ; ) {
    const block = nextQuantizedBlock(connection, collection, after)
    const rows = block && decodeQuantizedBlock(block, collection.dimension)
    if (!rows) return
    yield { rows: withoutDeleted(connection, collection, block, rows), through: block.through }
    after = block.through
  }
}

/** Quantizes vectors in the order of their records. */
export function quantizeVectors(space: QuantizedSpace, vectors: readonly VectorRow[]): QuantizedRows {
  const { dimension, metric } = space
  const table = vectorTable(space)
  const segment = new Segment(loadScanModule(), dimension, metric, () => [])
  segment.reserve(vectors.length)
  for (const row of vectors) segment.append(row.record, decodeVector(table, dimension, row))
  return segment.quantizedRows()
}

/**
 * Compares all stored quantized vectors with the exact vectors. Returns a description of each block that is damaged, that
 * overlaps another, or whose space does not exist.
 *
 * @throws control_plane_unavailable  an exact vector is damaged
 */
export function findQuantizationFaults(
  connection: SqliteConnection,
  spaces: readonly QuantizedSpace[],
): string[] {
  const tables = new Map(spaces.map(space => [vectorTable(space), space]))
  const blocks = connection
    .prepare<{ tableName: string; through: number }>(
      'SELECT table_name AS tableName, through FROM quantized_vectors ORDER BY table_name, through',
    )
    .all()
  return blocks.flatMap(({ tableName, through }, at) => {
    const space = tables.get(tableName)
    const previous = blocks[at - 1]
    const after = previous?.tableName === tableName ? previous.through : 0
    const isSound = space && isSoundBlock(connection, space, { after, through })
    return isSound ? [] : [`quantized_vectors ${tableName}/${through}`]
  })
}

function isSoundBlock(
  connection: SqliteConnection,
  space: QuantizedSpace,
  { after, through }: { after: number; through: number },
): boolean {
  const block = nextQuantizedBlock(connection, space, after)!
  // Another version of the runtime wrote the block, so this version does not use it.
  if (block.format !== QUANTIZED_FORMAT) return true
  const stored = decodeQuantizedBlock(block, space.dimension)
  if (!stored || block.first <= after) return false
  const vectors = connection
    .prepare<VectorRow>(
      `SELECT record, data FROM ${vectorTable(space)}
        WHERE record > ? AND record <= ? ORDER BY record`,
    )
    .all(after, through)
  const expected = quantizeVectors(space, vectors)
  const live = selectRows(stored, space.dimension, new Set(vectors.map(({ record }) => record)))
  return isDeepStrictEqual(live, expected)
}

/** Deletes the quantized vectors of a vector table. Call it when the table is dropped. */
export function deleteQuantizedVectors(connection: SqliteConnection, table: string): void {
  connection.prepare('DELETE FROM quantized_vectors WHERE table_name = ?').run(table)
}

/**
 * Removes the rows of deleted records from a block. A block contains all vectors of its range that existed when it was
 * written. Therefore, if every record has a vector and the number of records is unchanged, no record was deleted.
 */
function withoutDeleted(
  connection: SqliteConnection,
  { id, dimension, vectors, records }: CollectionRow,
  { first, through, size }: QuantizedBlock,
  rows: QuantizedRows,
): QuantizedRows {
  const source = 'FROM record INDEXED BY record_by_collection WHERE collection = ? AND record BETWEEN ? AND ?'
  const count = connection.prepare<{ live: number }>(`SELECT count(*) AS live ${source}`)
  if (vectors === records && count.get(id, first, through)!.live === size) return rows
  const live = connection.prepare<{ record: number }>(`SELECT record ${source}`).all(id, first, through)
  return selectRows(rows, dimension, new Set(live.map(({ record }) => record)))
}

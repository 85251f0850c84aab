import { isDeepStrictEqual } from 'node:util'
import { loadScanModule } from '../scan/module.ts'
import { areQuantizedRows, QUANTIZED_FORMAT, type QuantizedRows, selectRows } from '../scan/quantized-rows.ts'
import { Segment } from '../scan/segment.ts'
import { type CollectionRow, decodeVector, type VectorRow, vectorTable } from './collections.ts'
import type { SqliteConnection } from './connection.ts'

/** The members of a collection that its quantized vectors depend on. */
export type QuantizedCollection = Pick<CollectionRow, 'id' | 'generation' | 'dimension' | 'metric'>

/** A row of `quantized_vectors`: the quantized vectors of the records from `first` to `through`. */
export interface QuantizedBlock {
  readonly first: number
  readonly through: number
  readonly size: number
  readonly format: number
  readonly facts: Buffer
  readonly levels: Buffer
}

/** Returns the first block of a collection after a record. */
export function nextQuantizedBlock(
  connection: SqliteConnection,
  { id, generation }: QuantizedCollection,
  after: number,
): QuantizedBlock | undefined {
  return connection
    .prepare<QuantizedBlock>(
      `SELECT first, through, size, format, facts, levels FROM quantized_vectors
        WHERE table_name = ? AND through > ? ORDER BY through LIMIT 1`,
    )
    .get(vectorTable(id, generation), after)
}

/** Returns the quantized vectors of a block; undefined if it is damaged or has another format. */
export function decodeQuantizedBlock(
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
 * Reads the stored quantized vectors of a collection, in ascending order of their records. Up to the last record, these are
 * the vectors of all records that exist. Stops at a block that cannot be used.
 *
 * Call it inside a transaction that has read `collection`.
 */
export function* readQuantizedVectors(
  connection: SqliteConnection,
  collection: QuantizedCollection,
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
export function quantizeVectors(
  { id, generation, dimension, metric }: QuantizedCollection,
  vectors: readonly VectorRow[],
): QuantizedRows {
  const table = vectorTable(id, generation)
  const segment = new Segment(loadScanModule(), dimension, metric, () => [])
  segment.reserve(vectors.length)
  for (const row of vectors) segment.append(row.record, decodeVector(table, dimension, row))
  return segment.quantizedRows()
}

/**
 * Compares all stored quantized vectors with the exact vectors. Returns a description of each block that is damaged, whose
 * blocks overlap, or whose collection does not exist.
 *
 * @throws control_plane_unavailable  an exact vector is damaged
 */
export function findQuantizationFaults(
  connection: SqliteConnection,
  collections: readonly QuantizedCollection[],
): string[] {
  const tables = new Map(collections.map(each => [vectorTable(each.id, each.generation), each]))
  const blocks = connection
    .prepare<{ tableName: string; through: number }>(
      'SELECT table_name AS tableName, through FROM quantized_vectors ORDER BY table_name, through',
    )
    .all()
  return blocks.flatMap(({ tableName, through }, at) => {
    const collection = tables.get(tableName)
    const previous = blocks[at - 1]
    const after = previous?.tableName === tableName ? previous.through : 0
    const isSound = collection && isSoundBlock(connection, collection, { after, through })
    return isSound ? [] : [`quantized_vectors ${tableName}/${through}`]
  })
}

function isSoundBlock(
  connection: SqliteConnection,
  collection: QuantizedCollection,
  { after, through }: { after: number; through: number },
): boolean {
  const block = nextQuantizedBlock(connection, collection, after)!
  // Another version of the runtime wrote the block, so this version does not use it.
  if (block.format !== QUANTIZED_FORMAT) return true
  const stored = decodeQuantizedBlock(block, collection.dimension)
  if (!stored || block.first <= after) return false
  const vectors = connection
    .prepare<VectorRow>(
      `SELECT record, data FROM ${vectorTable(collection.id, collection.generation)}
        WHERE record > ? AND record <= ? ORDER BY record`,
    )
    .all(after, through)
  const expected = quantizeVectors(collection, vectors)
  const live = selectRows(stored, collection.dimension, new Set(vectors.map(({ record }) => record)))
  return isDeepStrictEqual(live, expected)
}

/** Deletes the quantized vectors of a vector table. Call it when the table is dropped. */
export function deleteQuantizedVectors(connection: SqliteConnection, table: string): void {
  connection.prepare('DELETE FROM quantized_vectors WHERE table_name = ?').run(table)
}

/** A block contains the vectors of all records that existed when it was written, and later records follow it. */
function withoutDeleted(
  connection: SqliteConnection,
  { id, dimension }: QuantizedCollection,
  { first, through, size }: QuantizedBlock,
  rows: QuantizedRows,
): QuantizedRows {
  const source = 'FROM record INDEXED BY record_by_collection WHERE collection = ? AND record BETWEEN ? AND ?'
  const count = connection.prepare<{ live: number }>(`SELECT count(*) AS live ${source}`)
  if (count.get(id, first, through)!.live === size) return rows
  const live = connection.prepare<{ record: number }>(`SELECT record ${source}`).all(id, first, through)
  return selectRows(rows, dimension, new Set(live.map(({ record }) => record)))
}

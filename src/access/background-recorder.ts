import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { ColumnValue, RowStore, RowTable, Write } from '../storage/rows.ts'
import { RecordLosses, RecordQueue } from './record-queue.ts'

/** Maximum number of records that wait to be stored. Additional records are lost, and counted. */
const queuedMax = 10_000
/** Maximum number of records per transaction. It is small, so that requests do not wait long. */
const recordsPerGroupMax = 100
/** Maximum time until a record is stored. A crash loses the records of this time. */
const delayMs = 1_000

export interface BackgroundRecorderDependencies {
  readonly clock: Clock
  readonly log: Log
}

/** Stores records in the background, so that a request never waits for them. Stores at most 100 in one group. */
export class BackgroundRecorder<Row> {
  readonly #losses: RecordLosses
  readonly #queue: RecordQueue<Row>
  readonly #listeners = new Set<(records: number) => void>()

  /**
   * @param lossWarning  message of the log line about records that were lost
   * @param store        stores a group of records; they are lost if it rejects
   */
  constructor(
    deps: BackgroundRecorderDependencies,
    lossWarning: string,
    store: (records: readonly Row[]) => Promise<void>,
  ) {
    this.#losses = new RecordLosses(deps, lossWarning)
    this.#queue = new RecordQueue({
      clock: deps.clock,
      losses: this.#losses,
      queuedMax,
      recordsPerGroupMax,
      delayMs,
      write: async records => {
        await store(records)
        for (const listener of this.#listeners) listener(records.length)
      },
    })
  }

  /** Number of records that were not stored, because the queue was full or the store failed. */
  get lost(): number {
    return this.#losses.total
  }

  /** Adds a record. Never throws or waits. */
  add(record: Row): void {
    this.#queue.add(record)
  }

  /** Resolves when all records added so far are stored or lost. */
  flushed(): Promise<void> {
    return this.#queue.flushed()
  }

  /** Calls `listener` when this process has stored records. Returns a function that removes the listener. */
  onStored(listener: (records: number) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async close(): Promise<void> {
    await this.flushed()
    this.#losses.close()
  }
}

/**
 * Inserts records in one transaction. Omits them if the row to which they belong was deleted in the meantime.
 *
 * @param owner  table and key of this row
 * @throws the failed outcome or the error of a write
 */
export async function insertRecords<Owner extends object, Row extends object>(
  rows: Pick<RowStore, 'atomic'>,
  owner: { readonly table: RowTable<Owner>; readonly key: readonly ColumnValue[] },
  table: RowTable<Row>,
  records: readonly Row[],
): Promise<void> {
  const outcome = await rows.atomic([
    { op: 'require', ...owner },
    ...records.map((row): Write => ({ op: 'insert', table, row })),
  ])
  if (!outcome.ok && outcome.at > 0) throw outcome
}

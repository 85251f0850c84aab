import { Analyzers } from '../../base/analysis/analyzers.ts'
import type { ThreadOperations } from '../../base/threads.ts'
import type {
  CollectionKey,
  ContentWrite,
  FitResult,
  Occurrences,
  RecordOwner,
  RecordVector,
  RecordView,
  ScoredRecord,
  SpaceKey,
  SpaceLease,
} from '../content.ts'
import type { Write, WriteOutcome } from '../rows.ts'
import type { Visibility } from '../visibility.ts'
import { AllowedRecords } from './allowed-records.ts'
import { CollectionStatsReader } from './collection-stats.ts'
import { CommitQueue } from './commit-queue.ts'
import type { SqliteConnection } from './connection.ts'
import { ContentChanges } from './content-changes.ts'
import { withStoreErrorsEach } from './faults.ts'
import { LexicalIndex } from './lexical-index.ts'
import type { LexicalQuery, OccurrencesQuery } from './lexical-query.ts'
import { PostingBackfill } from './posting-backfill.ts'
import { PostingChanges } from './posting-changes.ts'
import { type DocumentQuery, RecordReader } from './record-reader.ts'
import { SqliteRows } from './rows.ts'
import { SearchBatches } from './search-batches.ts'
import { StoreMaintenance } from './store-maintenance.ts'
import { type NearestQuery, VectorIndex } from './vector-index.ts'
import { VectorQuantization } from './vector-quantization.ts'
import { SpaceReads, SpaceWrites } from './vector-spaces.ts'

interface KeyedInput {
  readonly key: CollectionKey
}

interface SpaceInput {
  readonly key: SpaceKey
}

/** Creates all write operations, each call of which is a task of the group commit, and the background work. */
export function createWriter(connection: SqliteConnection) {
  const analyzers = new Analyzers()
  const postings = new PostingChanges(connection, analyzers)
  const queue = new CommitQueue(connection, [postings])
  const rows = new SqliteRows(connection)
  const changes = new ContentChanges(connection, postings)
  const spaces = new SpaceWrites(connection)
  const backfill = new PostingBackfill(connection, queue, postings, analyzers)
  const maintenance = new StoreMaintenance(
    connection,
    queue,
    backfill,
    new VectorQuantization(connection, queue),
  )
  const always = () => true
  /** Preparation of the last write. Writes are prepared one after another, because they must keep their order. */
  let preparation = Promise.resolve()
  const operations = withStoreErrorsEach({
    async write(input: { changes: readonly ContentWrite[]; rows: readonly Write[] }): Promise<WriteOutcome> {
      const prepared = preparation.then(() => postings.loadLanguages(input.changes))
      preparation = prepared.catch(() => {})
      await prepared
      const outcome = await analyzers.run(() =>
        queue.run<WriteOutcome>({
          run(defer) {
            const outcome = rows.apply(input.rows)
            if (!outcome.ok) return outcome
            const changed = changes.apply(input.changes, defer)
            return changed.ok ? changed : { ...changed, at: changed.at + input.rows.length }
          },
          shouldCommit: outcome => outcome.ok,
        }),
      )
      if (input.changes.length > 0) maintenance.wake()
      return outcome
    },
    lease: (input: SpaceInput & { owner: string; now: number; until: number }): Promise<boolean> =>
      queue.run({ run: () => spaces.lease(input.key, input.owner, input), shouldCommit: always }),
    release: (input: SpaceInput & { owner: string }): Promise<void> =>
      queue.run({ run: () => spaces.release(input.key, input.owner), shouldCommit: always }),
    async stage(
      input: SpaceInput & { lease: SpaceLease; vectors: readonly RecordVector[] },
    ): Promise<boolean> {
      const run = () => spaces.stage(input.key, input.lease, input.vectors)
      const isStaged = await queue.run({ run, shouldCommit: always })
      maintenance.wake()
      return isStaged
    },
    async swap(input: SpaceInput & { lease: SpaceLease; fitted: FitResult | undefined }): Promise<boolean> {
      const run = () => spaces.swap(input.key, input.lease, input.fitted)
      const isSwapped = await queue.run({ run, shouldCommit: always })
      maintenance.wake()
      return isSwapped
    },
    /** Starts the background work. */
    maintain: (_: object) => maintenance.start(),
    maintenanceFailure: (_: object) => maintenance.failure,
  } satisfies ThreadOperations)
  return { operations, close: () => maintenance.close() }
}

/** Creates the read operations on content that can take a long time. */
export function createReadOperations(connection: SqliteConnection) {
  const allowedRecords = new AllowedRecords(connection)
  const batches = new SearchBatches(new VectorIndex(connection, allowedRecords))
  const analyzers = new Analyzers()
  const lexical = new LexicalIndex(connection, allowedRecords, analyzers)
  const records = new RecordReader(connection)
  const spaces = new SpaceReads(connection)
  const stats = new CollectionStatsReader(connection)
  return withStoreErrorsEach({
    nearest: (input: SpaceInput & { query: NearestQuery }): Promise<ScoredRecord[]> =>
      batches.nearest(input.key, input.query),
    lexical: (input: KeyedInput & { query: LexicalQuery }): Promise<ScoredRecord[]> =>
      analyzers.run(() => lexical.search(input.key, input.query)),
    occurrences: (input: KeyedInput & { query: OccurrencesQuery }): Promise<Occurrences> =>
      analyzers.run(() => lexical.occurrences(input.key, input.query)),
    read: (
      input: KeyedInput & {
        records: readonly number[]
        options: { vectors: boolean; visibility: Visibility }
      },
    ): RecordView[] => records.read(input.key, input.records, input.options),
    owners: (input: KeyedInput & { ids: readonly string[] }): RecordOwner[] =>
      records.owners(input.key, input.ids),
    listByDocument: (input: KeyedInput & { query: DocumentQuery }): RecordView[] =>
      records.listByDocument(input.key, input.query),
    stats: (input: KeyedInput) => stats.stats(input.key),
    model: (input: KeyedInput) => spaces.model(input.key),
    passages: (input: KeyedInput & { after: number; limit: number }) =>
      spaces.passages(input.key, input.after, input.limit),
    unstaged: (input: SpaceInput & { generation: number; limit: number }) =>
      spaces.unstaged(input.key, input.generation, input.limit),
  } satisfies ThreadOperations)
}

export type WriteOperations = ReturnType<typeof createWriter>['operations']
export type ReadOperations = ReturnType<typeof createReadOperations>

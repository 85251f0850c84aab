import { Analyzers } from '../../base/analysis/analyzers.ts'
import type { OperationHost, ThreadOperations } from '../../base/threads.ts'
import type {
  CollectionKey,
  CompactedSize,
  ContentWrite,
  FitResult,
  Occurrences,
  RecordOwner,
  RecordVector,
  RecordView,
  ScoredRecord,
  SearchConstraints,
  SpaceKey,
  SpaceLease,
  StoreFile,
  WordScores,
} from '../content.ts'
import type { Write, WriteOutcome } from '../rows.ts'
import type { ScanWorkers } from '../scan/scan-workers.ts'
import type { Visibility } from '../visibility.ts'
import { AllowedRecords } from './allowed-records.ts'
import { readCollectionBytes, readCollectionStats } from './collection-stats.ts'
import { requireCollection } from './collections.ts'
import { CommitQueue } from './commit-queue.ts'
import type { SqliteConnection } from './connection.ts'
import { ContentChanges } from './content-changes.ts'
import { withStoreErrorsEach } from './faults.ts'
import { readFileSpace, shrinkFile } from './file-space.ts'
import { LexicalIndex } from './lexical-index.ts'
import type { ExplainQuery, LexicalQuery, OccurrencesQuery } from './lexical-query.ts'
import { PostingBackfill } from './posting-backfill.ts'
import { PostingChanges } from './posting-changes.ts'
import type { CompactionRange } from './postings/merge-plan.ts'
import type { CompactionStep } from './postings/posting-merger.ts'
import { TermCounter } from './postings/term-counter.ts'
import { type DirectQuery, type DocumentQuery, RecordReader } from './record-reader.ts'
import { SqliteRows } from './rows.ts'
import { SearchBatches } from './search-batches.ts'
import { SpaceRecovery } from './space-recovery.ts'
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

/** Creates the write operations, which run as tasks of the group commit, and the background work of the store. */
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
  const recovery = new SpaceRecovery(connection, queue)
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
      recovery.wake()
      return outcome
    },
    lease: (input: SpaceInput & { owner: string; now: number; until: number }): Promise<boolean> =>
      queue.run({ run: () => spaces.lease(input.key, input.owner, input), shouldCommit: always }),
    renew: (input: SpaceInput & { owner: string; until: number }): Promise<boolean> =>
      queue.run({ run: () => spaces.renew(input.key, input.owner, input.until), shouldCommit: always }),
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
    invalidate: (input: KeyedInput): Promise<void> =>
      queue.run({ run: () => spaces.invalidate(input.key), shouldCommit: always }),
    /** Starts the background work. */
    maintain(_: object) {
      maintenance.start()
      recovery.start()
    },
    compact: (input: KeyedInput & { range: CompactionRange | undefined }): Promise<CompactionStep> =>
      maintenance.compact(input.key, input.range),
    /** Returns some free space of the file to the disk. Returns the new size of the file. */
    async shrink(_: object): Promise<StoreFile> {
      await queue.run({ run: () => shrinkFile(connection), shouldCommit: always })
      return readFileSpace(connection)
    },
    truncateLog: (_: object): boolean => connection.truncateLog(),
    maintenanceFailure: (_: object) => maintenance.failure,
  } satisfies ThreadOperations)
  return {
    operations,
    async close() {
      await maintenance.close()
      await recovery.close()
    },
  }
}

/**
 * Creates the read operations on content that can take a long time.
 *
 * @param workers  threads that help with vector searches of large collections
 */
export function createReadOperations(connection: SqliteConnection, workers?: ScanWorkers) {
  const allowedRecords = new AllowedRecords(connection)
  const vectors = new VectorIndex(connection, allowedRecords, { workers })
  const batches = new SearchBatches(vectors)
  const analyzers = new Analyzers()
  const lexical = new LexicalIndex(connection, allowedRecords, analyzers)
  const records = new RecordReader(connection)
  const terms = new TermCounter(connection)
  const spaces = new SpaceReads(connection)
  return withStoreErrorsEach({
    nearest: (input: SpaceInput & { query: NearestQuery }): Promise<ScoredRecord[]> =>
      batches.nearest(input.key, input.query),
    lexical: (input: KeyedInput & { query: LexicalQuery }): Promise<ScoredRecord[]> =>
      analyzers.run(() => lexical.search(input.key, input.query)),
    explain: (input: KeyedInput & { query: ExplainQuery }): Promise<WordScores> =>
      analyzers.run(() => lexical.explain(input.key, input.query)),
    countOccurrences: (input: KeyedInput & { query: OccurrencesQuery }): Promise<Occurrences> =>
      analyzers.run(() => lexical.countOccurrences(input.key, input.query)),
    read: (
      input: SpaceInput & {
        records: readonly number[]
        options: { vectors: boolean; visibility: Visibility; charsMax?: number }
      },
    ): RecordView[] => records.read(input.key, input.records, input.options),
    owners: (input: KeyedInput & { ids: readonly string[]; visibility: Visibility }): RecordOwner[] =>
      records.owners(input.key, input.ids, input.visibility),
    listByDocument: (input: KeyedInput & { query: DocumentQuery }): RecordView[] =>
      records.listByDocument(input.key, input.query),
    numbersByDocument: ({
      key,
      query,
    }: KeyedInput & {
      query: { documentId: string; limit: number } & SearchConstraints
    }): number[] =>
      records.numbersByDocument(key, query, collection => allowedRecords.allowed(collection, query)),
    listDirect: (input: KeyedInput & { query: DirectQuery }): RecordView[] =>
      records.listDirect(input.key, input.query),
    async stats(input: KeyedInput) {
      const stats = readCollectionStats(connection, input.key)
      const { id } = requireCollection(connection, input.key)
      return { ...stats, residentBytes: vectors.residentBytesOf(id), terms: await terms.count(id) }
    },
    storedBytes: (input: { keys: readonly CollectionKey[] }) => readCollectionBytes(connection, input.keys),
    /** Figures that a compaction changes. */
    compactedSize(input: KeyedInput): CompactedSize {
      const { bytes, index } = readCollectionStats(connection, input.key)
      return {
        index: index && { segments: index.segments, bytes: bytes.postings },
        file: connection.database.memory ? null : readFileSpace(connection),
      }
    },
    model: (input: KeyedInput) => spaces.model(input.key),
    passages: (input: KeyedInput & { query: { after: number; limit: number; visibility: Visibility } }) =>
      spaces.passages(input.key, input.query),
    fitCounts: ({ key, visibility }: KeyedInput & { visibility: Visibility }) =>
      spaces.fitCounts(key, collection => allowedRecords.allowed(collection, { visibility })),
    unstaged: (input: SpaceInput & { generation: number; limit: number }) =>
      spaces.unstaged(input.key, input.generation, input.limit),
  } satisfies ThreadOperations)
}

export type WriteOperations = ReturnType<typeof createWriter>['operations']
export type ReadOperations = ReturnType<typeof createReadOperations>

/** The hosts that run the read and write operations of a store. */
export interface StoreHosts {
  readonly reads: OperationHost<ReadOperations>
  readonly writes: OperationHost<WriteOperations>
}

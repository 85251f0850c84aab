import type { Filter } from './filter.ts'
import type { Write, WriteOutcome } from './rows.ts'
import type { Statistics, Visibility } from './visibility.ts'

export type Metric = 'cosine' | 'dot' | 'euclidean'
export type Payload = Record<string, unknown>

/**
 * The records of a knowledge base, with one of its vector spaces. Names are unique in a workspace. `dimension`,
 * `metric`, `fitted`, `generation`, `vectors`, `fittedRecords` and `isModelOutdated` belong to the vector space.
 */
export interface Collection {
  /** Never reused in the same store. A name can be reused after its collection has been dropped. */
  readonly id: number
  readonly workspaceId: string
  readonly name: string
  /** Length of each vector; 0 if the collection has no vectors. */
  readonly dimension: number
  readonly metric: Metric
  /** True if the collection supports lexical search. */
  readonly lexical: boolean
  /** True if the runtime fits the vector space to the passages of the collection. */
  readonly fitted: boolean
  /**
   * Number of the current generation of the vector space, starting at 0. Vectors for another generation are rejected,
   * so that a search never mixes the vectors of two models.
   */
  readonly generation: number
  /**
   * Number of changes to the collection. Data that was derived from the collection is current as long as this number
   * stays the same.
   */
  readonly version: number
  readonly records: number
  /** Number of records with a vector in the current generation. */
  readonly vectors: number
  /**
   * For a space other than the default: the highest number of a record that got a vector. Records up to it have a vector. 0
   * for the default space.
   */
  readonly vectorsThrough: number
  /** Number of records that the current model was fitted to; 0 if there is no model yet. */
  readonly fittedRecords: number
  /** True if the model was fitted to rows that it may no longer learn from. */
  readonly isModelOutdated: boolean
  /** Model with which the store creates vectors from text; absent if the store does not create vectors. */
  readonly vectorService?: VectorService
  /** True if the store reranks its results with its own model. */
  readonly reranks?: boolean
}

/** Counts and sizes of a collection. They include records that the caller may not see. */
export interface CollectionStats {
  readonly records: number
  /** Time of the last change of a record in milliseconds since 1970; null if it is not known. */
  readonly changedAt: number | null
  readonly bytes: CollectionBytes
  /** Bytes of memory that vectors take; 0 until the first search, and after the store made room for other collections. */
  readonly residentBytes: number
  /** Estimated number of distinct terms in the index for lexical search; null if it is not known. */
  readonly terms: number | null
  /** Null if the store searches words without an index. */
  readonly index: LexicalIndexState | null
}

/** Stored bytes of a collection by part. */
export interface CollectionBytes {
  /** Titles and texts, in UTF-8. */
  readonly text: number
  /** Other fields of search results, as JSON in UTF-8. */
  readonly payload: number
  /** Vectors of the current generations of all spaces. */
  readonly vectors: number
  /** Index for lexical search, with the generation that is being built. */
  readonly postings: number
}

/** Part of a compaction that is running, with bytes done so far. */
export interface CollectionCompactionProgress {
  readonly part: 'index' | 'file'
  readonly done: number
  readonly total: number
}

/** Result of a compaction. */
export interface CollectionCompaction {
  readonly before: CompactedSize
  readonly after: CompactedSize
}

/** Figures that a compaction changes. */
export interface CompactedSize {
  /** Index for lexical search; null if words are not indexed. */
  readonly index: { readonly segments: number; readonly bytes: number } | null
  /** File of the whole store; null if the store has no file. */
  readonly file: StoreFile | null
}

/** Size of the file of a store in bytes, without its log. */
export interface StoreFile {
  readonly bytes: number
  /** Part of the file that new content will use. */
  readonly freeBytes: number
  /** True if a compaction can make the file smaller. */
  readonly canShrink: boolean
}

export interface LexicalIndexState {
  /** Code of the language; null if no generation is complete yet. */
  readonly language: string | null
  /** Number of the generation that searches read; null if no generation is complete yet. */
  readonly generation: number | null
  readonly segments: number
  /** Share of the indexed records that were deleted but are still stored, from 0 to 1. */
  readonly deletedShare: number
  /** True if the store has yet to check whether segments must be merged. */
  readonly isMerging: boolean
  /** Progress of the next generation; null if the index is complete. */
  readonly building: { readonly records: number; readonly recordsTotal: number } | null
  /** Last failure of the background work of this process; null if it has succeeded since then. */
  readonly failure: { readonly at: number; readonly message: string } | null
}

/** A model of a provider. */
export interface VectorService {
  readonly provider: string
  readonly modelName: string
}

/** A record to store. `vector` must have the dimension of the collection and contain finite numbers. */
export interface ContentRecord {
  readonly id: string
  readonly documentId: string | null
  readonly chunkIndex: number | null
  /** Lexical search covers `title` and `text`. */
  readonly title: string | null
  /** Embedded between `title` and `text`, and not part of lexical search; absent or null for none. */
  readonly context?: string | null
  readonly text: string | null
  /** All fields of a search result except `chunkText`. */
  readonly payload: Payload
  readonly vector: Float32Array
}

export interface CollectionKey {
  readonly workspaceId: string
  readonly name: string
}

/** A vector space of a collection. */
export interface SpaceKey extends CollectionKey {
  /** Name of the space; the default space if absent. Other spaces need a store with {@link VectorSpaces}. */
  readonly space?: string
}

/** Name of the space that is created with a collection, and to which `upsert` adds vectors. */
export const defaultSpace = 'default'

export function isDefaultSpace({ space }: SpaceKey): boolean {
  return space === undefined || space === defaultSpace
}

/** Returns a collection key as a string that can be used as the key of a map. */
export function collectionKeyText({ workspaceId, name }: CollectionKey): string {
  return JSON.stringify([workspaceId, name])
}

export type ContentWrite =
  | ({
      readonly op: 'createCollection'
      readonly dimension: number
      readonly metric: Metric
      readonly lexical: boolean
      /** Language of the texts for lexical search: a BCP-47 tag, or null for the default of the store. */
      readonly language: string | null
      /** True if the runtime fits the vector space to the passages of the collection. */
      readonly fitted: boolean
    } & CollectionKey)
  /** Never fails. */
  | ({ readonly op: 'dropCollection' } & CollectionKey)
  /**
   * Creates a further vector space, without vectors: see {@link VectorSpaces}. Fails with `exists` if the name is used,
   * and with `absent` if there is no such collection.
   */
  | ({
      readonly op: 'createSpace'
      readonly space: string
      readonly dimension: number
      readonly metric: Metric
      /** True if the space can be searched before all records have a vector: its first generation is current at once. */
      readonly isSearchable?: boolean
    } & CollectionKey)
  /** Deletes a vector space other than the default space. Never fails. */
  | ({ readonly op: 'dropSpace'; readonly space: string } & CollectionKey)
  /**
   * Makes another space the default space, with a generation after the current one, so that vectors for the previous default
   * space are rejected. The previous default space is deleted. Fails with `absent` if there is no such space, and with `stale`
   * if a record has no vector in it. The space is not fitted by the runtime.
   */
  | ({ readonly op: 'promoteSpace'; readonly space: string } & CollectionKey)
  /** Changes the language, see `createCollection`. The store indexes the records again in the background. Never fails. */
  | ({ readonly op: 'setLanguage'; readonly language: string | null } & CollectionKey)
  /**
   * Stores records with vectors of the default space, and replaces stored records that have the same IDs. Fails with
   * `stale` if `generation` is not the current one, and with `absent` if there is no such collection. Replaced and
   * deleted records lose their vectors in all spaces and generations.
   */
  | ({
      readonly op: 'upsert'
      readonly generation: number
      readonly records: readonly ContentRecord[]
    } & CollectionKey)
  /** Deletes the records of a document; never fails. */
  | ({ readonly op: 'deleteDocument'; readonly documentId: string } & CollectionKey)
  /** Deletes the records of all documents of a knowledge base; never fails. */
  | ({ readonly op: 'deleteDocuments'; readonly knowledgeBaseId: string } & CollectionKey)
  /** Fails with `absent` if there is no such record. */
  | ({ readonly op: 'deleteRecord'; readonly id: string } & CollectionKey)
  /**
   * Checks that `owners` would return the given owners. Fails with `stale` if it would not, and with `absent` if there is
   * no such collection.
   */
  | ({
      readonly op: 'requireOwners'
      readonly owners: readonly RecordOwner[]
      readonly visibility: Visibility
    } & CollectionKey)
  /**
   * Checks that records still exist, by their numbers. Fails with `stale` if one was replaced or deleted, and with `absent`
   * if there is no such collection.
   */
  | ({ readonly op: 'requireRecords'; readonly records: readonly number[] } & CollectionKey)

/** The document that a record belongs to. */
export interface RecordOwner {
  readonly id: string
  /** Null for a record without a document, and for a missing record. */
  readonly documentId: string | null
  readonly exists: boolean
  /** False for a record that the caller may not see. True for a missing record. */
  readonly isVisible: boolean
}

/**
 * A search result. `record` is a number that the store assigns to the record. It changes when the record is replaced.
 */
export interface ScoredRecord {
  readonly record: number
  readonly score: number
}

/** Conditions that every record in a search result satisfies. */
export interface SearchConstraints {
  readonly visibility: Visibility
  readonly filter?: Filter
}

export interface RecordView {
  readonly record: number
  readonly id: string
  readonly documentId: string | null
  readonly chunkIndex: number | null
  readonly context: string | null
  readonly text: string | null
  readonly payload: Payload
  readonly vector?: Float32Array
}

/** The number of records in which words occur. Counts only records that the caller may see. */
export interface Occurrences {
  /** Number of records that the caller may see. */
  readonly records: number
  readonly words: readonly WordOccurrences[]
}

export interface WordOccurrences {
  readonly word: string
  /** Number of visible records that contain the word, or a form that the index treats as the same word. */
  readonly records: number
  /** Those records of the query's `among` list that contain the word. */
  readonly among: readonly number[]
}

/** How the terms of a word were found: the word itself, words that it is the beginning of, or similar words. */
export type WordMatch = 'word' | 'prefix' | 'similar'

/** The words of a query, with their part in the scores of records. */
export interface WordScores {
  /** Number of records that the search can find: those that the caller may see, and that match the filter. */
  readonly records: number
  readonly words: readonly ScoredWord[]
}

/** A word of a query. */
export interface ScoredWord {
  /** The word in lowercase and without accents. */
  readonly word: string
  readonly match: WordMatch
  /** Terms of the index that were searched for the word; empty if no record that the caller may see contains one. */
  readonly terms: readonly string[]
  /** Number of records that the search can find and that contain one of the terms. */
  readonly records: number
  /** Scores for this word alone, of those requested records that contain it. */
  readonly scores: readonly ScoredRecord[]
}

/** Lexical search. If a store does not support it, such a search fails with `hybrid_not_supported`. */
export interface LexicalSearch {
  /**
   * Returns at most `limit` results, best first. If the store supports phrases, each result contains all phrases in
   * quotation marks. If `isTyping` is true, the last word of the text also matches words that begin with it. Fails with
   * `hybrid_not_supported` if the store does not support `statistics`.
   */
  search(
    key: CollectionKey,
    query: {
      text: string
      limit: number
      statistics: Statistics
      isTyping?: boolean | undefined
    } & SearchConstraints,
  ): Promise<ScoredRecord[]>
  /**
   * Explains a search with the same query: the score of a record is the sum of its scores for each word. Does not check
   * phrases. Fails like `search`.
   *
   * @param query.among  numbers of the records to explain; records that the search cannot find are ignored
   */
  explain(
    key: CollectionKey,
    query: {
      text: string
      among: readonly number[]
      statistics: Statistics
      isTyping?: boolean | undefined
    } & SearchConstraints,
  ): Promise<WordScores>
  /** For each word, counts the visible records that contain it, and lists the records in `among` that contain it. */
  countOccurrences(
    key: CollectionKey,
    query: { words: readonly string[]; among: readonly number[]; visibility: Visibility },
  ): Promise<Occurrences>
}

/** Lists records in order. If a store does not support it, a listing fails with `list_records_not_supported`. */
export interface RecordListing {
  /**
   * Returns the records of a document, ordered by chunk index, then by ID. Records without a chunk index come last.
   *
   * @param query.charsMax  like that of {@link ContentStore.read}
   */
  listByDocument(
    key: CollectionKey,
    query: {
      documentId: string
      after?: { chunkIndex: number | null; id: string }
      limit: number
      charsMax?: number
      visibility: Visibility
    },
  ): Promise<RecordView[]>
  /** Returns the numbers of the first records of a document that the constraints allow, in the order of its chunks. */
  numbersByDocument(
    key: CollectionKey,
    query: { documentId: string; limit: number } & SearchConstraints,
  ): Promise<number[]>
  /** Returns records without a document whose number is above `after`, in ascending order. */
  listDirect(
    key: CollectionKey,
    query: { after: number; limit: number; visibility: Visibility },
  ): Promise<RecordView[]>
}

/** The parts of a record that are embedded. `title` contains the title and the context. */
export interface StoredPassage {
  readonly record: number
  readonly title: string | null
  readonly text: string
}

/** Returns the lines that are embedded before the text of a record; null if there are none. */
export function embeddedTitle({ title, context }: Pick<ContentRecord, 'title' | 'context'>): string | null {
  if (context === undefined || context === null) return title
  return title === null ? context : `${title}\n${context}`
}

/** A passage without a vector in a space. */
export interface UnstagedPassage extends StoredPassage {
  /**
   * Vector of a record with the same title, context and text, which was deleted by the write that added this record; absent if there
   * was none. Only for the current generation.
   */
  readonly vector?: Float32Array
}

/** A passage for a fit. `text` is null if the fit may not see the passage. */
export interface FitPassage extends Omit<StoredPassage, 'text'> {
  readonly text: string | null
}

/** A fitted model in its stored form. */
export interface EncodedModel {
  readonly terms: string
  readonly weights: Uint8Array
}

/** The generation that vectors are computed for, and the owner of the lease of its space. */
export interface SpaceLease {
  readonly generation: number
  readonly owner: string
}

/** A vector of a record. It must have the dimension of the space and contain finite numbers. */
export interface RecordVector {
  readonly record: number
  readonly vector: Float32Array
}

/** Numbers that decide if a fit is due. They depend only on records that a model may learn from. */
export interface FitCounts {
  readonly records: number
  /**
   * Number of records that the current model was not fitted to. If the count has a filter, this includes deleted records that
   * the model was fitted to.
   */
  readonly unfitted: number
}

/** Result of a fit. */
export interface FitResult {
  readonly model: EncodedModel
  /** Number of records that the model was fitted to. */
  readonly records: number
  /** Highest record number that the fit read. Records with higher numbers count as unfitted. */
  readonly through: number
}

/**
 * Named vector spaces. Each space has a current generation, which searches read, and at most one next generation, which
 * is staged and then replaces the current one. `upsert` adds vectors of new records to the current generation of the
 * default space. The owner of the lease adds them to other spaces, with `unstaged` and `stage`.
 */
export interface VectorSpaces {
  /**
   * Acquires the lease of a space, or renews it for its owner. Returns false while another owner has the lease, and if there
   * is no such space. Staged vectors of the next generation are deleted when the lease is released or passes to another owner, so
   * that vectors of two models never mix.
   */
  lease(key: SpaceKey, owner: string, durationMs: number): Promise<boolean>
  /** Renews a lease. Returns false if the owner has lost it. */
  renew(key: SpaceKey, owner: string, durationMs: number): Promise<boolean>
  release(key: SpaceKey, owner: string): Promise<void>
  /**
   * Stores vectors in the next generation, or in the current generation of a space other than the default. Skips records
   * that no longer exist, and records that already have a vector. In the current generation, also skips records below
   * the last one that got a vector.
   *
   * @returns false, without storing anything, if the generation is neither of the two, if the current generation has
   *          never been swapped, or if the owner has lost the lease
   * @throws dimension_mismatch  the length of a vector is not the dimension of the space; nothing was changed
   */
  stage(key: SpaceKey, lease: SpaceLease, vectors: readonly RecordVector[]): Promise<boolean>
  /**
   * Returns at most `limit` records without a vector in a generation, in ascending order; in the current generation, only
   * records above the last one that got a vector.
   *
   * @throws collection_unavailable  there is no such space
   */
  unstaged(key: SpaceKey, generation: number, limit: number): Promise<UnstagedPassage[]>
  /**
   * Makes the next generation the current one and deletes the previous one, in one transaction.
   *
   * @param fitted  the new model of a space that the runtime fits; absent for other spaces
   * @returns false, without changing anything, if nothing was staged, if a record has no staged vector, or for the same
   *          reasons as `stage`
   */
  swap(key: SpaceKey, lease: SpaceLease, fitted?: FitResult): Promise<boolean>
  /**
   * Returns the collections with records that have no vector in the current generation of the space with this name, also
   * collections without such a space.
   */
  unfilled(space: string): Promise<(CollectionKey & { records: number; vectors: number })[]>
}

/** Default spaces that the runtime fits to the passages of a collection. */
export interface FittedSpaces extends VectorSpaces {
  /**
   * Returns the current model; undefined if no model has been fitted yet.
   *
   * @throws collection_unavailable  there is no such collection, or the runtime no longer fits its space, in which case the
   *                                 error has the fact `stale`
   */
  model(key: CollectionKey): Promise<{ generation: number; model: EncodedModel | undefined }>
  /** Returns passages with text and a record number above `after`, in ascending order. */
  passages(
    key: CollectionKey,
    query: { after: number; limit: number; visibility: Visibility },
  ): Promise<FitPassage[]>
  /**
   * Marks the model as outdated and all records as unfitted, so that a fit is due. A fit that is running will not replace the
   * model.
   */
  invalidate(key: CollectionKey): Promise<void>
  /** Returns the collections whose default spaces the runtime fits. */
  fittedCollections(): Promise<CollectionKey[]>
  /**
   * Counts the records that a model may learn from. Without a filter, it reads counters. With one, its time grows with the
   * records of the collection, like that of a search with the same filter. Returns undefined if there is no such collection.
   */
  fitCounts(key: CollectionKey, visibility: Visibility): Promise<FitCounts | undefined>
}

/**
 * Runs commands in the command language of the database. If a store does not support it, commands fail with
 * `driver_unavailable`.
 */
export interface RawCommands {
  /**
   * Runs a command and returns the unchanged response of the database.
   *
   * @param address.target  collection or table to run the command on; the keyspace if the name is null
   * @param command         object with one key, which is the name of the command
   * @throws data_api_error        the database rejected the command
   * @throws data_api_unavailable  the database does not respond
   */
  run(
    address: {
      readonly workspaceId: string
      readonly keyspace: string | null
      readonly target: { readonly kind: 'collection' | 'table'; readonly name: string | null }
    },
    command: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<Record<string, unknown>>
}

/**
 * Content of knowledge bases: records, their vectors and their text.
 *
 * Throws storage errors only: `collection_unavailable`, `driver_unavailable`, `data_api_error`,
 * `data_api_unavailable`.
 * Features that not every store has are optional members. The functions in `store-features.ts` return a feature, or
 * throw an error if it is missing.
 */
export interface ContentStore {
  readonly name: string
  collection(key: SpaceKey): Promise<Collection | undefined>
  /**
   * Returns statistics. A store on disk reads no records for them.
   *
   * @throws collection_unavailable  there is no such collection
   */
  stats(key: CollectionKey): Promise<CollectionStats>
  /** Returns stored bytes, in the order of `keys`; undefined for a collection that does not exist. Reads no records. */
  storedBytes(keys: readonly CollectionKey[]): Promise<(CollectionBytes | undefined)[]>
  /**
   * Removes the data of deleted records that is still stored, and returns the space to the disk. Searches and writes can run
   * in the meantime. Absent in a store that removes all data when a record is deleted.
   *
   * @throws collection_unavailable  there is no such collection
   * @throws the reason of the signal, after the current step; the work done so far is kept
   */
  readonly compact?: (
    key: CollectionKey,
    options: { signal: AbortSignal; onProgress(progress: CollectionCompactionProgress): void },
  ) => Promise<CollectionCompaction>
  /**
   * Applies content changes and row writes in one transaction. If one fails, the result contains its index in the list
   * of all row writes followed by all content changes.
   *
   * @throws dimension_mismatch  the length of a vector is not the dimension of the collection; nothing was changed
   */
  write(changes: readonly ContentWrite[], rows: readonly Write[]): Promise<WriteOutcome>
  /**
   * Returns the exact nearest records, best first. The score is cosine similarity, dot product, or
   * 1/(1+distance).
   *
   * @param query.generation  generation that the vector was computed for
   * @throws collection_unavailable  there is no such space, or it has never been swapped; or `generation` is not the
   *                                 current one, in which case the error has the fact `stale`
   */
  nearest(
    key: SpaceKey,
    query: { vector: Float32Array; limit: number; generation?: number } & SearchConstraints,
  ): Promise<ScoredRecord[]>
  /**
   * Returns records by number, in the requested order. Omits records that are missing or not visible. With `vectors`, they
   * have their vectors in the space; in a space other than the default, a record may have no vector.
   *
   * @param options.charsMax  total length of the records, in characters of JSON, that ends the read. The record that exceeds
   *                          it is included. Records that are omitted do not count.
   * @throws collection_unavailable  there is no such space, or, with `vectors`, it has never been swapped
   */
  read(
    key: SpaceKey,
    records: readonly number[],
    options: { vectors: boolean; visibility: Visibility; charsMax?: number },
  ): Promise<RecordView[]>
  /** Returns the owners of records, in the order of `ids`. */
  owners(key: CollectionKey, ids: readonly string[], visibility: Visibility): Promise<RecordOwner[]>
  readonly lexical?: LexicalSearch
  readonly listing?: RecordListing
  readonly spaces?: VectorSpaces
  readonly fitted?: FittedSpaces
  /**
   * Lists the collections of a workspace, by name. Absent in a store whose collections are always deleted
   * with their knowledge base.
   */
  readonly collections?: (workspaceId: string) => Promise<Collection[]>
  readonly commands?: RawCommands
}

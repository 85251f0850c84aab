import type { Filter } from './filter.ts'
import type { Outcome, Write } from './rows.ts'
import type { Statistics, Visibility } from './visibility.ts'

export type Metric = 'cosine' | 'dot' | 'euclidean'
export type Payload = Record<string, unknown>

/** Where a knowledge base keeps its records. Names are unique in a workspace. */
export interface Collection {
  /** Never used twice in a store, as a name may be. */
  readonly id: number
  readonly workspaceId: string
  readonly name: string
  /** 0 where it keeps no vectors. */
  readonly dimension: number
  readonly metric: Metric
  readonly lexical: boolean
  /** The runtime fits the vector space on the collection's own passages. */
  readonly fitted: boolean
  /**
   * Number of the vector space in force. A record written for another one is refused, so that two spaces
   * never stand in one collection. Only fitted collections move beyond 0.
   */
  readonly generation: number
  /** Counts changes of the collection; what is derived from it compares this before it answers. */
  readonly version: number
  readonly records: number
  /** Records that the model in force was fitted on; 0 for a placeholder. */
  readonly fittedRecords: number
  /** The model by which the store itself makes vectors of text, where it does. */
  readonly vectorService?: VectorService
  /** The store ranks again what it found, by a model of its own. */
  readonly reranks?: boolean
}

/** A model by the name that its provider gives it. */
export interface VectorService {
  readonly provider: string
  readonly modelName: string
}

/** A record to keep: `vector` has the collection's dimension and finite entries. */
export interface ContentRecord {
  readonly id: string
  readonly documentId: string | null
  readonly chunkIndex: number | null
  /** Weighs in lexical search. */
  readonly title: string | null
  readonly text: string | null
  /** Everything that a hit shows, without `chunkText`. */
  readonly payload: Payload
  readonly vector: Float32Array
}

/** Names a collection. */
export interface CollectionKey {
  readonly workspaceId: string
  readonly name: string
}

/** A key as one text, for a map in memory. */
export function keyText({ workspaceId, name }: CollectionKey): string {
  return JSON.stringify([workspaceId, name])
}

export type ContentWrite =
  | ({
      readonly op: 'createCollection'
      readonly dimension: number
      readonly metric: Metric
      readonly lexical: boolean
      /** The runtime fits the vector space on the collection's own passages. */
      readonly fitted: boolean
    } & CollectionKey)
  /** Never fails. */
  | ({ readonly op: 'dropCollection' } & CollectionKey)
  /** Records replace those of the same id. Fails `stale` when the generation is no longer in force, `absent` without the collection. */
  | ({
      readonly op: 'upsert'
      readonly generation: number
      readonly records: readonly ContentRecord[]
    } & CollectionKey)
  /** Delete the records of a document; never fails. */
  | ({ readonly op: 'deleteDocument'; readonly documentId: string } & CollectionKey)
  /** Delete the records of all documents of a knowledge base; never fails. */
  | ({ readonly op: 'deleteDocuments'; readonly knowledgeBaseId: string } & CollectionKey)
  /** Fails `absent` without the record. */
  | ({ readonly op: 'deleteRecord'; readonly id: string } & CollectionKey)
  /** Fails `stale` when one of the records belongs to another document than is said, `absent` without the collection. */
  | ({ readonly op: 'requireOwners'; readonly owners: readonly Owner[] } & CollectionKey)

/** The document that a record belongs to; null for a record of its own, and for one that is not there. */
export interface Owner {
  readonly id: string
  readonly documentId: string | null
}

/** One candidate of a ranking; `record` is the store's own number, stable while the record is not replaced. */
export interface Scored {
  readonly record: number
  readonly score: number
}

export interface Reach {
  readonly visibility: Visibility
  readonly filter?: Filter
}

export interface RecordView {
  readonly record: number
  readonly id: string
  readonly documentId: string | null
  readonly chunkIndex: number | null
  readonly text: string | null
  readonly payload: Payload
  readonly vector?: Float32Array
}

/** Frequencies of words in a collection, counted over the records that a caller may see. */
export interface Occurrences {
  /** Records that the caller may see. */
  readonly records: number
  readonly words: readonly WordOccurrences[]
}

export interface WordOccurrences {
  readonly word: string
  /** Number of visible records that hold the word, in any form that the index treats as equal. */
  readonly records: number
  /** Records of `among` that hold the word. */
  readonly among: readonly number[]
}

/** Lexical ranking. Absent: `hybrid_not_supported`. */
export interface LexicalSearch {
  /** Best first, at most `limit`. Refuses with `hybrid_not_supported` when it cannot count as `statistics` demands. */
  search(
    key: CollectionKey,
    query: { text: string; limit: number; statistics: Statistics } & Reach,
  ): Promise<Scored[]>
  /** Counts each word over the visible records, and says which of the records `among` hold it. */
  occurrences(
    key: CollectionKey,
    query: { words: readonly string[]; among: readonly number[]; visibility: Visibility },
  ): Promise<Occurrences>
}

/** Reading records in order. Absent: `list_records_not_supported`. */
export interface RecordListing {
  ofDocument(
    key: CollectionKey,
    query: {
      documentId: string
      after?: { chunkIndex: number | null; id: string }
      limit: number
      visibility: Visibility
    },
  ): Promise<RecordView[]>
}

/** Text of a record, to make a vector of. */
export interface StoredPassage {
  readonly record: number
  readonly title: string | null
  readonly text: string
}

/** A fitted model in the form that it is kept in. */
export interface EncodedModel {
  readonly terms: string
  readonly weights: Uint8Array
}

/** A fit under way: the space that it makes, the one after that in force, and the holder of the lease on it. */
export interface Fit {
  readonly generation: number
  readonly owner: string
}

/** What a fit came to. */
export interface Fitted {
  readonly model: EncodedModel
  /** How many records the model was fitted on. */
  readonly records: number
  /** Highest record that the fit read; what is above counts as unfitted. */
  readonly through: number
}

/** A vector space that the runtime fits on the collection's own passages. */
export interface FittedSpaces {
  /** The model in force; undefined for a placeholder. */
  model(key: CollectionKey): Promise<{ generation: number; model: EncodedModel | undefined }>
  /** Passages with text, by ascending record number, after `after`. */
  passages(key: CollectionKey, after: number, limit: number): Promise<StoredPassage[]>
  /**
   * Take or renew the lease on fitting; false while another owner holds it. What was staged under a lease is thrown
   * away when another owner takes it, or when it is released, so that vectors of two fits never mix.
   */
  lease(key: CollectionKey, owner: string, durationMs: number): Promise<boolean>
  release(key: CollectionKey, owner: string): Promise<void>
  /**
   * Keep vectors of the space that a fit makes; records that are gone by now are passed over.
   * False, and nothing kept, when another space came into force, or the owner no longer holds the lease.
   */
  stage(
    key: CollectionKey,
    fit: Fit,
    vectors: readonly { record: number; vector: Float32Array }[],
  ): Promise<boolean>
  /** Records that have no staged vector in `generation`, by number, at most `limit`. */
  unstaged(key: CollectionKey, generation: number, limit: number): Promise<StoredPassage[]>
  /**
   * Put what was staged in force in one step and drop the old space.
   * False, and nothing changed, while records lack a staged vector, and as `stage`.
   */
  swap(key: CollectionKey, fit: Fit, fitted: Fitted): Promise<boolean>
  /** Fitted collections with records that the model in force was not fitted on. */
  unfitted(): Promise<(CollectionKey & { unfitted: number; records: number })[]>
}

/** Commands in the language of the database itself. Absent: `driver_unavailable`. */
export interface RawCommands {
  /**
   * Run one command and give its answer as it is.
   *
   * @param place.target  what it is run on; without a name, the keyspace
   * @param command       has one key, the name of the command
   * @throws data_api_error        the database refused it
   * @throws data_api_unavailable  the database does not answer
   */
  run(
    place: {
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
 * Throws storage codes only: `collection_unavailable`, `driver_unavailable`, `data_api_error`, `data_api_unavailable`.
 * Optional powers are optional members; `missing.ts` turns an absence into its code.
 */
export interface ContentStore {
  readonly name: string
  collection(key: CollectionKey): Promise<Collection | undefined>
  /**
   * Apply content changes, and row writes with them: in one transaction where rows lie in the same store,
   * else the rows last. A refusal counts positions over rows, then changes.
   *
   * @throws dimension_mismatch  a vector of another length than the collection's; nothing was changed
   */
  write(changes: readonly ContentWrite[], rows: readonly Write[]): Promise<Outcome>
  /**
   * Exact nearest records, best first: cosine similarity, dot product, or 1/(1+distance).
   *
   * With `generation`, refused with `collection_unavailable` and the fact `stale` when another space is in force:
   * a vector that was made before a swap says nothing about the new space.
   */
  nearest(
    key: CollectionKey,
    query: { vector: Float32Array; limit: number; generation?: number } & Reach,
  ): Promise<Scored[]>
  /** Records by number, in the order asked for; those that are gone or hidden are left out. */
  read(
    key: CollectionKey,
    records: readonly number[],
    options: { vectors: boolean; visibility: Visibility },
  ): Promise<RecordView[]>
  /** The documents that records belong to, by their ids, in the order asked for. */
  owners(key: CollectionKey, ids: readonly string[]): Promise<Owner[]>
  readonly lexical?: LexicalSearch
  readonly listing?: RecordListing
  readonly fitted?: FittedSpaces
  /** The collections of a workspace, by name. Absent where none outlives the knowledge base that made it. */
  readonly collections?: (workspaceId: string) => Promise<Collection[]>
  readonly commands?: RawCommands
}

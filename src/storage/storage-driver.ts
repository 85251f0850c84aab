import type { Clock } from '../base/clock.ts'
import type { ContentStore } from './content.ts'
import type { Disk } from './disk-space.ts'
import type { RowStore } from './rows.ts'

/** Address of a store. It contains only data, so that it can be sent to a worker thread. */
export interface StoreLocation {
  readonly driver: 'sqlite'
  /** Path of the database file; `:memory:` for a store that only this process can use, and that has no files. */
  readonly path: string
  /** Data directory of the runtime. For a store outside the data directory, it contains evidence of the store. */
  readonly dataDir?: string | undefined
}

/** An open store. */
export interface OpenStore {
  readonly rows: RowStore
  readonly content: ContentStore
  /**
   * Address at which other threads of this process can open the store, with `isOpenElsewhere`; undefined if no other
   * thread can use it.
   */
  readonly threadLocation: StoreLocation | undefined
  /** Checks for free disk space. @throws control_plane_unavailable  the disk is full */
  requireSpace(): Promise<void>
  /** Waits for running work, then closes the store. */
  close(): Promise<void>
}

export interface OpenStoreOptions {
  /** True to read and write on separate threads, as a server does. A driver can ignore it. */
  readonly threads?: boolean
  /** True if another thread of this process has the store open, and has checked it for damage. */
  readonly isOpenElsewhere?: boolean | undefined
  readonly clock?: Clock
  readonly disk?: Disk | undefined
}

/** Result of one check. */
export interface StoreCheck {
  readonly check: string
  /** Number of problems. */
  readonly count: number
  /** Keys of some of the affected rows. */
  readonly examples: readonly string[]
}

/** Result of reading all rows of a table. */
export interface ReadableTable {
  readonly table: string
  /** Number of rows that can be read. */
  readonly rows: number
  /** True if no row is damaged or unreadable. */
  readonly isComplete: boolean
}

export interface StoreReport {
  /** Schema version of the store. A runtime migrates an older version when it opens the store. */
  readonly schema: number
  /** Schema version of this runtime. */
  readonly known: number
  readonly checks: readonly StoreCheck[]
  /** Numbers of rows that can be recovered; absent if the store is not damaged, or was not read row by row. */
  readonly readable?: readonly ReadableTable[]
}

/**
 * Opens and inspects the stores of one database system. A driver is a folder of `src/storage`, which only
 * `src/storage/open.ts` imports. The methods other than `open` do not change the store.
 */
export interface StorageDriver {
  /**
   * Opens a store, and creates or migrates it if necessary. Several processes can use it at the same time.
   *
   * @throws control_plane_unavailable  the store is damaged or cannot be opened, or a newer version of Workbase wrote it
   */
  open(location: StoreLocation, options: OpenStoreOptions): Promise<OpenStore>
  /**
   * Checks a store for damage and for orphaned rows. Reads one snapshot. Other processes can use the store in the
   * meantime.
   *
   * @returns undefined if there is no store
   * @throws control_plane_unavailable  the store is missing, has lost changes, or cannot be opened
   */
  check(location: StoreLocation): Promise<StoreReport | undefined>
  /**
   * Copies a store to a new file, while other processes can use it. Contains all changes that were committed before.
   *
   * @param path  path of the copy, which only this user can read
   * @throws control_plane_unavailable  the store is missing, has lost changes, or cannot be opened
   * @throws the error of the system, such as a full disk
   */
  copy(location: StoreLocation, path: string): Promise<void>
  /**
   * Moves a copy of a store to a location where no store is, and marks the store. The caller moves an earlier store away
   * first, except its marker: while only the marker is there, no process creates a new store.
   *
   * @param path  path of the copy
   * @throws the error of the system
   */
  install(path: string, location: StoreLocation): Promise<void>
  /** Returns true if another process has the store open. Returns false if there is no store, or if it is damaged. */
  isInUse(location: StoreLocation): Promise<boolean>
  /** Returns true if there is no store at a location, and no evidence of an earlier store. */
  isNew(location: StoreLocation): Promise<boolean>
  /**
   * Returns true if there is no store, or if the store has no workspaces and therefore no data. Returns false for a
   * store that is lost, cannot be read, or may be in use by another process.
   */
  isEmpty(location: StoreLocation): Promise<boolean>
}

import { stopwatch } from '../../base/clock.ts'
import type { StoreFile } from '../content.ts'
import type { SqliteConnection } from './connection.ts'

/** Maximum number of pages that a step gives back. */
const PAGES_PER_STEP = 128
/** Number of pages between checks of the time. */
const PAGES_AT_ONCE = 8
/** Time in milliseconds after which a step ends. A page takes longer if a large part of the file is free. */
const STEP_MS = 5

/** Reads the size of the file. A file that an earlier version created cannot shrink. */
export function readFileSpace({ database }: SqliteConnection): StoreFile {
  const read = (pragma: string) => database.pragma(pragma, { simple: true }) as number
  const pageBytes = read('page_size')
  return {
    bytes: read('page_count') * pageBytes,
    freeBytes: read('freelist_count') * pageBytes,
    canShrink: read('auto_vacuum') !== 0,
  }
}

/**
 * Moves pages from the end of the file to free pages, and gives up to 0.5 MB back. Must run inside a write transaction.
 * The file shrinks when the log is copied into it.
 */
export function shrinkFile({ database }: SqliteConnection): void {
  const elapsedMs = stopwatch()
  // `exec` is necessary, because the pragma gives back one page for each row that is read from it.
  for (let pages = 0; pages < PAGES_PER_STEP && elapsedMs() < STEP_MS; pages += PAGES_AT_ONCE)
    database.exec(`PRAGMA incremental_vacuum(${PAGES_AT_ONCE})`)
}

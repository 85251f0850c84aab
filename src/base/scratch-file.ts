import { readdirSync, rmSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createFolder } from './folder.ts'
import { randomHex } from './id.ts'
import { isProcessRunning } from './is-process-running.ts'

/** Folder in the data directory for uploaded files. A file is deleted when its request ends. */
export const uploadsFolder = 'uploads'

/** A temporary file, for the duration of one task. */
export interface ScratchFile {
  /** Path of the file, which does not exist yet. */
  readonly path: string
  /** Deletes the file. Ignores errors, because {@link sweepScratch} deletes the file at the next start. */
  remove(): Promise<void>
}

/** Returns a unique path in a private folder. Creates the folder if it is missing. */
export function createScratchFile(folder: string): ScratchFile {
  createFolder(folder)
  const path = join(folder, `${process.pid}-${randomHex(8)}`)
  return { path, remove: () => rm(path, { force: true }).catch(() => {}) }
}

/**
 * Returns scratch files whose process has ended. At startup, this includes files with the process ID of this process,
 * because an earlier process had the same ID.
 */
export function listScratchLeftovers(folder: string, options: { atStart: boolean }): string[] {
  return entriesOf(folder)
    .filter(name => {
      const pid = Number(/^(\d+)-/.exec(name)?.[1])
      if (pid === process.pid) return options.atStart
      return !(pid > 0 && isProcessRunning(pid))
    })
    .map(name => join(folder, name))
}

/** Deletes the files of killed processes. Call this before this process creates scratch files. */
export function sweepScratch(folder: string): void {
  for (const path of listScratchLeftovers(folder, { atStart: true })) rmSync(path, { force: true })
}

function entriesOf(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

import { readdirSync, rmSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createFolder } from './folder.ts'
import { randomHex } from './id.ts'
import { isRunning } from './running.ts'

/** Below the data directory: files that came with a request, while it is answered. */
export const uploadsFolder = 'uploads'

/** A file that lasts no longer than the work that made it. */
export interface ScratchFile {
  /** Nothing is there yet. */
  readonly path: string
  /** Fails silently: what is left is swept later. */
  remove(): Promise<void>
}

/** A name that no other file has, in a folder of this user's own, which is made when missing. */
export function scratchFile(folder: string): ScratchFile {
  createFolder(folder)
  const path = join(folder, `${process.pid}-${randomHex(8)}`)
  return { path, remove: () => rm(path, { force: true }).catch(() => {}) }
}

/** Files of a scratch folder whose process is gone; a file of this process counts when it has not begun to work. */
export function scratchLeftovers(folder: string, options: { atStart: boolean }): string[] {
  return entriesOf(folder)
    .filter(name => {
      const pid = Number(/^(\d+)-/.exec(name)?.[1])
      if (pid === process.pid) return options.atStart
      return !(pid > 0 && isRunning(pid))
    })
    .map(name => join(folder, name))
}

/** Remove what killed processes left, before this process makes files of its own. */
export function sweepScratch(folder: string): void {
  for (const path of scratchLeftovers(folder, { atStart: true })) rmSync(path, { force: true })
}

function entriesOf(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

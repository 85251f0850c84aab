import { existsSync, lstatSync, realpathSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'

/** Which of the files that may count lie in the working directory itself; nobody looks above it. */
export interface FolderFilePaths {
  /** Absolute, without symbolic links. */
  readonly folder: string
  /** `workbase.yaml`. */
  readonly config?: string
  /** `.workbase/`. */
  readonly dataDir?: string
  /** `.wb.yaml`. */
  readonly project?: string
}

const dataDirName = '.workbase'

/** @returns undefined where there is none, as nearly everywhere */
export function findFolderFiles(cwd: string): FolderFilePaths | undefined {
  try {
    const folder = realpathSync(cwd)
    const found = (name: string) =>
      lstatSync(join(folder, name), { throwIfNoEntry: false }) && join(folder, name)
    const [config, dataDir, project] = [found('workbase.yaml'), found(dataDirName), found('.wb.yaml')]
    return (config ?? dataDir ?? project) === undefined ? undefined : { folder, config, dataDir, project }
  } catch {
    // A folder that is gone, or that may not be looked into, says nothing.
    return undefined
  }
}

/** What is there of a `.workbase/` that is about to be opened; undefined for other folders, and where a store is. */
export function findDataDirWithoutStore(dataDir: string): { isFolder: boolean } | undefined {
  if (basename(dataDir) !== dataDirName || existsSync(join(dataDir, 'workbase.db'))) return undefined
  return { isFolder: existsSync(dataDir) }
}

/** A folder under the name by which it is remembered; one that is gone has the name that it had. */
export function realFolder(folder: string): string {
  try {
    return realpathSync(folder)
  } catch {
    return resolve(folder)
  }
}

import { existsSync, lstatSync, realpathSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'

/** Files of the working directory that can affect commands. Parent folders are not searched. */
export interface FolderFilePaths {
  /** Absolute path without symbolic links. */
  readonly folder: string
  /** `workbase.yaml`. */
  readonly config?: string
  /** `.workbase/`. */
  readonly dataDir?: string
  /** `.wb.yaml`. */
  readonly project?: string
}

const dataDirName = '.workbase'

/**
 * Finds the files of a folder.
 *
 * @returns undefined if the folder has no such files
 */
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

/**
 * Checks a `.workbase/` that is about to be opened. Returns undefined for other folders, and if it has a
 * store.
 */
export function findDataDirWithoutStore(dataDir: string): { isFolder: boolean } | undefined {
  if (basename(dataDir) !== dataDirName || existsSync(join(dataDir, 'workbase.db'))) return undefined
  return { isFolder: existsSync(dataDir) }
}

/**
 * Returns the real path of a folder, which identifies it in decisions. For a missing folder, returns the
 * absolute path.
 */
export function realFolder(folder: string): string {
  try {
    return realpathSync(folder)
  } catch {
    return resolve(folder)
  }
}

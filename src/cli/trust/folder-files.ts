import { existsSync, lstatSync, realpathSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'

/** Paths of the files in the working directory that can affect commands. Parent folders are not searched. */
export interface FolderFilePaths {
  /** Absolute path without symbolic links. */
  readonly folder: string
  /** Path of `workbase.yaml`. */
  readonly config?: string
  /** Path of `.workbase/`. */
  readonly dataDir?: string
  /** Path of `.wb.yaml`. */
  readonly project?: string
}

const dataDirName = '.workbase'

/**
 * Finds the files of a folder that can affect commands.
 *
 * @returns undefined if there are none
 */
export function findFolderFiles(cwd: string): FolderFilePaths | undefined {
  try {
    const folder = realpathSync(cwd)
    const find = (name: string) =>
      lstatSync(join(folder, name), { throwIfNoEntry: false }) && join(folder, name)
    const [config, dataDir, project] = [find('workbase.yaml'), find(dataDirName), find('.wb.yaml')]
    return (config ?? dataDir ?? project) === undefined ? undefined : { folder, config, dataDir, project }
  } catch {
    // The folder was deleted or cannot be read, so its files have no effect.
    return undefined
  }
}

/**
 * Returns the state of a data directory that is about to get a store.
 *
 * @returns `exists` is true if the folder exists; undefined if it is not a `.workbase/`, or already has a store
 */
export function findDataDirWithoutStore(dataDir: string): { exists: boolean } | undefined {
  if (basename(dataDir) !== dataDirName || existsSync(join(dataDir, 'workbase.db'))) return undefined
  return { exists: existsSync(dataDir) }
}

/**
 * Returns the path of a folder without symbolic links. Decisions identify folders by this path. For a missing folder,
 * returns the absolute path.
 */
export function realFolder(folder: string): string {
  try {
    return realpathSync(folder)
  } catch {
    return resolve(folder)
  }
}

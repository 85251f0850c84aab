import { mkdirSync, type Stats, statSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Creates a folder and its missing parents, which only this user can access. Use it instead of the recursive
 * `mkdirSync` of Node.js, which never returns on file systems that reject new folders with ENOENT, such as `/proc`.
 *
 * @throws the error of the system
 */
export function createFolder(path: string): void {
  if (isFolder(path)) return
  if (dirname(path) !== path) createFolder(dirname(path))
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    // Another process may have created it in the meantime.
    if (!isFolder(path)) throw error
  }
}

function isFolder(path: string): boolean {
  return statsOf(path)?.isDirectory() ?? false
}

/**
 * Returns the stats of a file or folder; undefined if the path does not exist. Unlike `statSync` in Node 20 with
 * `throwIfNoEntry: false`, does not throw if a parent of the path is a file.
 */
export function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOTDIR') return undefined
    throw error
  }
}

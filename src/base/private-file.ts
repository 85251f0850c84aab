import { closeSync, fsyncSync, openSync, renameSync, rmSync, type Stats, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { createFolder } from './folder.ts'

/** Writes a file atomically, readable by its owner only. Creates its folder if it is missing. */
export function writePrivateFile(path: string, text: string): void {
  createFolder(dirname(path))
  const temporaryPath = `${path}.${process.pid}`
  // Removes the temporary file of a killed process. A symbolic link with this name is removed, not followed.
  rmSync(temporaryPath, { force: true })
  const file = openSync(temporaryPath, 'wx', 0o600)
  try {
    writeFileSync(file, text)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  renameSync(temporaryPath, path)
}

/**
 * Returns true if the file belongs to this user and other users cannot write to it. On Windows, only the user
 * can access their folders.
 */
export function isOwnedAndUnshared({ uid, mode }: Stats): boolean {
  if (process.platform === 'win32') return true
  return uid === process.getuid?.() && (mode & 0o022) === 0
}

import { closeSync, fsyncSync, openSync, renameSync, rmSync, type Stats, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { createFolder } from './folder.ts'

/** Writes a file atomically, readable by its owner only. Creates its folder if it is missing. */
export function writePrivateFile(path: string, text: string): void {
  createFolder(dirname(path))
  const temporaryPath = `${path}.${process.pid}`
  // Remove the temporary file of a killed process. If it is a symbolic link, only the link is removed.
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
 * Returns true if a file belongs to this user and other users cannot write to it. Always returns true on Windows, where
 * by default only the user can access the user's folders.
 */
export function isOwnedAndUnshared({ uid, mode }: Stats): boolean {
  if (process.platform === 'win32') return true
  return uid === process.getuid?.() && (mode & 0o022) === 0
}

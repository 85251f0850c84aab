import { closeSync, fsyncSync, openSync, renameSync, rmSync, type Stats, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { createFolder } from './folder.ts'

/** Writes a file atomically, readable by its owner only. Creates its folder if it is missing. */
export function writePrivateFile(path: string, text: string): void {
  createFolder(dirname(path))
  const draft = `${path}.${process.pid}`
  // Removes the draft of a killed process. A symbolic link in its place is not followed.
  rmSync(draft, { force: true })
  const file = openSync(draft, 'wx', 0o600)
  try {
    writeFileSync(file, text)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  renameSync(draft, path)
}

/**
 * Returns true if the file belongs to this user and other users cannot write to it. On Windows, only the user
 * can access their folders.
 */
export function isOwnedAndUnshared({ uid, mode }: Stats): boolean {
  if (process.platform === 'win32') return true
  return uid === process.getuid?.() && (mode & 0o022) === 0
}

import { closeSync, fsyncSync, openSync, renameSync, rmSync, type Stats, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { createFolder } from './folder.ts'

/**
 * Write a file that its owner alone can read, in one step: whoever reads meanwhile, or after a crash, sees the old one
 * or the new one, whole. Its folder is made when missing.
 */
export function writePrivately(path: string, text: string): void {
  createFolder(dirname(path))
  const draft = `${path}.${process.pid}`
  // A draft that a killed process left, or a link that was put in its place, is neither followed nor written.
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

/** Belongs to this user, and nobody else may write it. Windows gives the user's own folders to the user alone. */
export function isOurs({ uid, mode }: Stats): boolean {
  if (process.platform === 'win32') return true
  return uid === process.getuid?.() && (mode & 0o022) === 0
}

import { chmodSync, mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Write a file that its owner alone can read, in one step: whoever reads meanwhile sees the old one or the new one, whole.
 * Its folder is made when missing.
 */
export function writePrivately(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const draft = `${path}.${process.pid}`
  writeFileSync(draft, text, { mode: 0o600 })
  // A draft that a killed process left has the mode that it had.
  chmodSync(draft, 0o600)
  renameSync(draft, path)
}

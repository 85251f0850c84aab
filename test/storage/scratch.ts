import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** Returns the path of a store in a temporary folder, which is deleted when the test ends. */
export function scratchPath(): string {
  const folder = mkdtempSync(join(tmpdir(), 'workbase-store-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'workbase.db')
}

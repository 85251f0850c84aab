import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { onTestFinished } from 'vitest'

/** Creates a folder with files, which is removed when the test ends. */
export function scratchTree(files: Record<string, string | Uint8Array | { linkTo: string }>): string {
  const root = mkdtempSync(join(tmpdir(), 'wb-tree-'))
  onTestFinished(() => rmSync(root, { recursive: true, force: true }))
  for (const [name, content] of Object.entries(files)) {
    const path = join(root, name)
    mkdirSync(dirname(path), { recursive: true })
    if (typeof content === 'object' && 'linkTo' in content) symlinkSync(content.linkTo, path)
    else writeFileSync(path, content)
  }
  return root
}

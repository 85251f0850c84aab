import { statSync } from 'node:fs'
import { UsageError } from './errors.ts'
import { requireWritableFolder } from './require-writable-folder.ts'
import { resolveTypedPath } from './resolve-typed-path.ts'

/**
 * Resolves the path of a file that a command writes, relative to the working directory.
 *
 * @param force  true to replace a file that exists
 * @throws UsageError  the file exists and `force` is false, the path is a folder, or its folder is
 *                     missing or cannot be written
 */
export function resolveOutputFile(cwd: string, typed: string, { force }: { force: boolean }): string {
  const path = resolveTypedPath(cwd, typed)
  const current = statSync(path, { throwIfNoEntry: false })
  if (current?.isDirectory()) throw new UsageError(`${typed} is a folder; name a file`)
  if (current && !force) throw new UsageError(`${typed} exists`, ['add --force to replace it'])
  requireWritableFolder(path)
  return path
}

import { isAbsolute, relative } from 'node:path'
import type { DataDirBackup, LocalConfig, RestoredDataDir } from '../local.ts'
import type { Profile } from '../settings/profile.ts'
import { formatByteSize } from '../terminal/byte-size.ts'
import { formatCounted, type Output } from '../terminal/output.ts'
import { plainLine } from '../terminal/terminal-text.ts'

/** Prints the path of a backup, and the names that it contains and leaves out. */
export function printBackup(
  output: Output,
  { dataDir }: Profile,
  { file }: LocalConfig,
  backup: DataDirBackup,
): void {
  const { path, bytes, createdAt, schema, files, skipped, problems } = backup
  const names = files.map(({ name }) => name)
  const value = { file: path, bytes, createdAt, schema, files: names, skipped }
  output.reportSaved(
    value,
    path,
    `backed up ${dataDir} to ${path} (${formatByteSize(bytes)}), and verified it`,
  )
  if (output.json) return
  output.note(`  contains: ${summarizeNames(names)}`)
  if (skipped.length > 0) output.note(plainLine(`  not in the backup: ${skipped.join(', ')}`))
  if (file.path !== null && isOutside(dataDir, file.path))
    output.note(`  not in the backup: the configuration ${file.path}`)
  const count = problems.reduce((sum, problem) => sum + problem.count, 0)
  if (count > 0) {
    output.warn(`  ! the store has ${formatCounted(count, 'problem')}, which the backup contains too`)
    output.suggest('wb doctor --deep')
  }
  output.note('  The file contains secrets and all documents, and only you can read it.')
}

/** Prints what was restored, and where the earlier files are. */
export function printRestored(
  output: Output,
  dataDir: string,
  { manifest, store, kept }: RestoredDataDir,
): void {
  const { createdAt, files } = manifest
  const names = files.map(({ name }) => name)
  const value = { dataDir, store, createdAt, files: names, kept: kept ?? null }
  output.reportSaved(value, dataDir, `restored ${dataDir} from the backup of ${createdAt}`)
  if (output.json) return
  output.note(`  contains: ${summarizeNames(names)}`)
  if (kept !== undefined) output.note(`  the earlier files are in ${kept}`)
  output.suggest('wb serve')
}

/** Lists files, and counts those of a folder. */
function summarizeNames(names: readonly string[]): string {
  const counts = new Map<string, number>()
  for (const name of names) {
    const [first] = name.split('/')
    counts.set(first!, (counts.get(first!) ?? 0) + 1)
  }
  const parts = [...counts].map(([name, count]) =>
    names.includes(name) ? name : `${name} (${formatCounted(count, 'file')})`,
  )
  return parts.join(', ')
}

function isOutside(folder: string, path: string): boolean {
  const relativePath = relative(folder, path)
  return isAbsolute(relativePath) || relativePath.startsWith('..')
}

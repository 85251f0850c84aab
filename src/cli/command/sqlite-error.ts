import { hostFacts } from '../../base/host-facts.ts'
import { shellWord } from '../../base/shell-word.ts'

/** Matches the path of the native SQLite module in error messages of Node and of the driver. */
const nativeModulePath =
  /(?<folder>(?:[A-Z]:|\/)[^\n'"]*?)[\\/]node_modules[\\/](?<driver>better-sqlite3(?:-13)?)[\\/][^\n'"]*\.node/
/**
 * True if this Node can load the prebuilt SQLite. In this case, suggest `--ignore-scripts`, because npm would still
 * try to compile SQLite, and would remove the package if the compilation fails.
 */
const hasPrebuiltSqlite = hostFacts.napiVersion >= 10
const missingDriver = /^Cannot find module 'better-sqlite3/

/**
 * Returns a message and suggestions if SQLite is not installed or not compiled for this Node; undefined for any
 * other error.
 */
export function explainSqliteError(error: unknown): { message: string; next: string[] } | undefined {
  const text = error instanceof Error ? error.message : ''
  const { folder, driver } = nativeModulePath.exec(text)?.groups ?? {}
  if (folder !== undefined)
    return {
      message: `SQLite is not compiled for this Node (v${hostFacts.nodeVersion}, ${hostFacts.platform}-${hostFacts.architecture}).`,
      next: [
        `cd ${shellWord(folder)} && npm rebuild ${driver}`,
        'With npm 12 or later, run npm install-scripts approve better-sqlite3 there first.',
      ],
    }
  if (missingDriver.test(text))
    return {
      message: 'SQLite is not installed.',
      next: [
        `Install Workbase again: npm install --include=optional${hasPrebuiltSqlite ? ' --ignore-scripts' : ''}`,
      ],
    }
  return undefined
}

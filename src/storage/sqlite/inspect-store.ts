import { basename, dirname, join, resolve } from 'node:path'
import { statsOf } from '../../base/folder.ts'
import { shellWord } from '../../base/shell-word.ts'
import { WbError } from '../../contract/errors.ts'
import { unwritableFolder } from '../unwritable-folder.ts'
import type Database from './driver.ts'
import { findLogDamage, type LogDamage, logFiles, realPath } from './log-damage.ts'
import { hadStore, hadTables, type StoreTraces, storeIdOf } from './store-marker.ts'

/** Number of open handles of each store in this process, by file path. */
const openStores = new Map<string, number>()

/**
 * Records that this process has a store open. Until it is closed, other code must not open the store's files,
 * because closing any descriptor of a file releases all POSIX locks that the process has on that file.
 *
 * @returns a function to call when the store is closed
 */
export function registerOpenStore(path: string): () => void {
  const file = realPath(resolve(path))
  openStores.set(file, (openStores.get(file) ?? 0) + 1)
  return () => {
    const remaining = openStores.get(file)! - 1
    if (remaining === 0) openStores.delete(file)
    else openStores.set(file, remaining)
  }
}

export function isOpenInProcess(path: string): boolean {
  return openStores.has(realPath(resolve(path)))
}

/**
 * Rejects a store whose file is missing, before SQLite creates an empty one.
 *
 * @throws control_plane_unavailable  the file is missing, empty or not a regular file
 */
export function requireStoreFile(path: string, traces: StoreTraces): void {
  const stats = readableStats(path)
  if (stats?.isDirectory())
    throw new WbError(
      'control_plane_unavailable',
      'the store cannot be opened: there is a folder at its path',
      {
        hint: 'Move the folder away, and restore the database file.',
      },
    )
  // Opening a named pipe would block until another process opens it for writing.
  if (stats && !stats.isFile())
    throw new WbError(
      'control_plane_unavailable',
      `the store cannot be opened: ${path} is not a regular file`,
      {
        hint: 'Move the file away, and restore the database file.',
      },
    )
  if (!stats?.size && hadStore(traces)) throw lostStoreError(path, stats ? 'is empty' : 'is missing', traces)
}

/**
 * Rejects a store that has lost committed changes, before SQLite overwrites the remains of these changes.
 *
 * @throws control_plane_unavailable  the log is damaged
 */
export function requireIntactLog(path: string): void {
  const damage = findLogDamage(path)
  if (damage) throw damagedLog(path, damage)
}

function readableStats(path: string) {
  try {
    return statsOf(path)
  } catch (error) {
    throw unwritableFolder(error)
  }
}

/**
 * Rejects a database that is not the store to which the traces belong. Does not change the database.
 *
 * @throws control_plane_unavailable  the database belongs to another program, is empty, or is a different store
 */
export function requireSameStore(database: Database.Database, path: string, traces: StoreTraces): void {
  const hasTable = (name: string) =>
    database.prepare('SELECT 1 FROM sqlite_schema WHERE name = ?').get(name) !== undefined
  const hasSchema = (database.pragma('user_version', { simple: true }) as number) > 0
  const isBlank = !hasSchema && database.prepare('SELECT 1 FROM sqlite_schema').get() === undefined
  if (isBlank && hadTables(traces)) throw lostStoreError(path, 'is empty', traces)
  if (isBlank) return
  if (!hasSchema || !hasTable('settings') || !hasTable('workspaces')) throw notAStore(path)
  const markedId = traces.markers.find(marker => marker.id !== undefined)?.id
  if (markedId === undefined) return
  const id = storeIdOf(database)
  // An empty store without an ID was created by a Workbase version without store IDs, because the file was missing. A
  // backup without an ID is accepted, because it contains data.
  const isFresh = id === undefined && database.prepare('SELECT 1 FROM workspaces').get() === undefined
  if (isFresh) throw lostStoreError(path, 'is empty', traces)
  if (id !== undefined && id !== markedId) throw lostStoreError(path, 'is a different store', traces)
}

function lostStoreError(
  path: string,
  problem: 'is missing' | 'is empty' | 'is a different store',
  traces: StoreTraces,
): WbError {
  const [copy] = traces.copies
  const markers = traces.markers.filter(({ exists }) => exists).map(marker => marker.path)
  const otherFiles = [...traces.nonEmptyLogFiles, ...traces.copies.map(name => join(dirname(path), name))]
  const alternative =
    problem === 'is a different store'
      ? `To use the current store instead: rm ${shellWords(markers)}`
      : `To start with an empty store instead: rm -f ${shellWords([...markers, ...otherFiles])}`
  const copyHint = copy === undefined ? '' : `, or ${copy}, which is a copy from before an upgrade`
  return new WbError(
    'control_plane_unavailable',
    `${basename(path)} ${problem}, and the data is lost: restore your backup${copyHint}`,
    { hint: `Put the backup in its place: ${restoreCommand(path)}. ${alternative}` },
  )
}

function restoreCommand(path: string): string {
  const folder = dirname(path)
  return `mv ${shellWords([folder, `${folder}.old`])} && cp -a BACKUP ${shellWord(folder)}`
}

function shellWords(paths: readonly string[]): string {
  return paths.map(shellWord).join(' ')
}

function notAStore(path: string): WbError {
  return new WbError(
    'control_plane_unavailable',
    `${basename(path)} is a SQLite database of another program, not a Workbase store; nothing was changed`,
    { hint: 'Move the file away and restore your backup, or use another data directory.' },
  )
}

function damagedLog(path: string, { kind, readableBytes }: LogDamage): WbError {
  const { log, index } = logFiles(path)
  const name = basename(log)
  const messages = {
    'damaged log': `${name} is damaged: changes that were committed after its first ${readableBytes} bytes cannot be read`,
    'missing log': `${name} is missing, and the last committed changes are lost`,
    'truncated database': `${basename(path)} is damaged: the file was truncated, and its log does not contain the missing pages`,
  }
  const truncateCommands =
    readableBytes > 0 ? `rm -f ${shellWord(index)} && truncate -s ${readableBytes} ${shellWord(log)}` : ''
  const discardCommands = truncateCommands || `rm -f ${shellWords([index, log])}`
  const restore = `Restore a backup: ${restoreCommand(path)}`
  const hint =
    kind === 'truncated database'
      ? restore
      : `${restore}. To continue without those changes instead: ${discardCommands}`
  return new WbError('control_plane_unavailable', messages[kind], { hint })
}

import { basename, dirname, join, resolve } from 'node:path'
import { statsOf } from '../../base/folder.ts'
import { shellWord } from '../../base/shell-word.ts'
import { WbError } from '../../contract/errors.ts'
import type Database from './driver.ts'
import { unwritableFolder } from './faults.ts'
import { findLogDamage, type LogDamage, logFiles, realPath } from './log-damage.ts'
import { hadStore, hadTables, type StoreTraces, storeIdOf } from './store-marker.ts'

/** Number of times that this process has each store open, by file. */
const openStores = new Map<string, number>()

/**
 * Records that this process has a store open. Other code must not open the store's files from now on, because
 * closing any descriptor of a file releases all POSIX locks that the process has on it.
 *
 * @returns a function to call when the store is closed
 */
export function registerOpenStore(path: string): () => void {
  const file = realPath(resolve(path))
  openStores.set(file, (openStores.get(file) ?? 0) + 1)
  return () => {
    const others = openStores.get(file)! - 1
    if (others === 0) openStores.delete(file)
    else openStores.set(file, others)
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
        hint: 'Move the folder away, and restore the file of the store.',
      },
    )
  // Opening a pipe would wait for its other end.
  if (stats && !stats.isFile())
    throw new WbError(
      'control_plane_unavailable',
      `the store cannot be opened: ${path} is not a regular file`,
      {
        hint: 'Move it away, and restore the file of the store.',
      },
    )
  if (!stats?.size && hadStore(traces)) throw lostStoreError(path, stats ? 'is empty' : 'is missing', traces)
}

/**
 * Rejects a store that has lost committed changes, before SQLite overwrites the rest of them.
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
 * Rejects a database that is not the store that was at this path before.
 *
 * @param database  is not changed
 * @throws control_plane_unavailable  it belongs to another program, is empty, or is another store
 */
export function requireSameStore(database: Database.Database, path: string, traces: StoreTraces): void {
  const hasTable = (name: string) =>
    database.prepare('SELECT 1 FROM sqlite_schema WHERE name = ?').get(name) !== undefined
  const isMade = (database.pragma('user_version', { simple: true }) as number) > 0
  const isBare = !isMade && database.prepare('SELECT 1 FROM sqlite_schema').get() === undefined
  if (isBare && hadTables(traces)) throw lostStoreError(path, 'is empty', traces)
  if (isBare) return
  if (!isMade || !hasTable('settings') || !hasTable('workspaces')) throw notAStore(path)
  const marked = traces.markers.find(marker => marker.id !== undefined)?.id
  if (marked === undefined) return
  const id = storeIdOf(database)
  // A version without ids creates an empty store if it finds none. A backup without an id contains data.
  const isFresh = id === undefined && database.prepare('SELECT 1 FROM workspaces').get() === undefined
  if (isFresh) throw lostStoreError(path, 'is empty', traces)
  if (id !== undefined && id !== marked) throw lostStoreError(path, 'is another store', traces)
}

function lostStoreError(
  path: string,
  how: 'is missing' | 'is empty' | 'is another store',
  traces: StoreTraces,
): WbError {
  const [copy] = traces.copies
  const markers = traces.markers.filter(({ isThere }) => isThere).map(marker => marker.path)
  const rest = [...traces.leftovers, ...traces.copies.map(name => join(dirname(path), name))]
  const instead =
    how === 'is another store'
      ? `To use the store that is there now: rm ${shellWords(markers)}`
      : `To start with an empty store instead: rm -f ${shellWords([...markers, ...rest])}`
  const orCopy = copy === undefined ? '' : `, or ${copy}, the copy made before an upgrade`
  return new WbError(
    'control_plane_unavailable',
    `${basename(path)} ${how}, and its data is lost: restore your backup${orCopy}`,
    { hint: `Put the backup in its place: ${restoreCommand(path)}. ${instead}` },
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
    `${basename(path)} is a SQLite database of another program, not a store of Workbase; nothing was changed`,
    { hint: 'Move it away and restore your backup, or use another data directory.' },
  )
}

function damagedLog(path: string, { kind, soundBytes }: LogDamage): WbError {
  const { log, index } = logFiles(path)
  const name = basename(log)
  const facts = {
    log: `${name} is damaged: changes that were committed after its first ${soundBytes} bytes cannot be read`,
    'log gone': `${name} is missing, and the last committed changes are lost`,
    cut: `${basename(path)} is damaged: it was cut off, and the missing pages are not in its log`,
  }
  const rest =
    soundBytes > 0 ? `rm -f ${shellWord(index)} && truncate -s ${soundBytes} ${shellWord(log)}` : ''
  const giveUp = rest || `rm -f ${shellWords([index, log])}`
  const restore = `Restore a backup: ${restoreCommand(path)}`
  const hint = kind === 'cut' ? restore : `${restore}. To continue without those changes instead: ${giveUp}`
  return new WbError('control_plane_unavailable', facts[kind], { hint })
}

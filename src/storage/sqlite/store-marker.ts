import { readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { randomHex, sha256 } from '../../base/id.ts'
import { writePrivateFile } from '../../base/private-file.ts'
import { isDiskFull } from '../disk-space.ts'
import { unwritableFolder } from '../unwritable-folder.ts'
import type { SqliteConnection } from './connection.ts'
import type Database from './driver.ts'
import { logFiles } from './log-damage.ts'

/*
 * If the database file is empty or missing, SQLite creates an empty database and deletes the log next to it.
 * A marker file next to the store contains the store ID. It prevents Workbase from replacing a lost store with
 * an empty one.
 */

/** Marker file of a store. */
export interface StoreMarker {
  readonly path: string
  /** ID of the store; undefined if the marker is missing or cannot be read. */
  readonly id: string | undefined
  readonly exists: boolean
}

/** Evidence that there is or was a store at a path. */
export interface StoreTraces {
  /** The markers that a store at this path must have, whether or not they exist. */
  readonly markers: readonly StoreMarker[]
  /** Paths of the log and its index, if they are not empty. */
  readonly nonEmptyLogFiles: readonly string[]
  /** File names of the copies that upgrades created, newest first. */
  readonly copies: readonly string[]
}

const idBytes = 16
const idSetting = 'store-id'

/**
 * Reads the evidence of a store. Call this before opening the database file. A process that creates a store writes
 * the database file first and the marker afterward, so in the opposite order a store that is still being created could
 * look like a lost one.
 */
export function readTraces(path: string, dataDir: string | undefined): StoreTraces {
  const { log, index } = logFiles(path)
  return {
    markers: markerPaths(path, dataDir).map(readMarker),
    nonEmptyLogFiles: [log, index].filter(isNonEmpty),
    copies: copiesOf(path),
  }
}

/** Returns true if there was a store; its tables may not have been created yet. */
export function hadStore(traces: StoreTraces): boolean {
  return traces.nonEmptyLogFiles.length > 0 || hadTables(traces)
}

/** Returns true if there was a store with tables. */
export function hadTables({ markers, copies }: StoreTraces): boolean {
  return markers.some(({ exists }) => exists) || copies.length > 0
}

/**
 * Returns the paths of the markers. A store outside the data directory has a second marker in the data directory,
 * because the disk that holds the store may not be mounted.
 */
function markerPaths(path: string, dataDir: string | undefined): string[] {
  const marker = `${path}.id`
  if (dataDir === undefined || isBelow(dataDir, path)) return [marker]
  return [marker, join(dataDir, `${basename(path)}.${sha256(resolve(path)).slice(0, 8)}.id`)]
}

function isBelow(folder: string, path: string): boolean {
  const relativePath = relative(folder, path)
  return !isAbsolute(relativePath) && relativePath.split(sep)[0] !== '..'
}

function readMarker(path: string): StoreMarker {
  try {
    // Opening a named pipe would block until another process opens it for writing.
    if (!statSync(path).isFile()) return { path, id: undefined, exists: true }
    const [id] = readFileSync(path, 'utf8').split('\n', 1)
    return { path, id: id && /^[0-9a-f]{32}$/.test(id) ? id : undefined, exists: true }
  } catch (error) {
    const isMissing = ['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')
    return { path, id: undefined, exists: !isMissing }
  }
}

function isNonEmpty(path: string): boolean {
  try {
    return statSync(path).size > 0
  } catch {
    return false
  }
}

function copiesOf(path: string): string[] {
  const prefix = `${basename(path)}.before-`
  const versionOf = (name: string) => Number(name.slice(prefix.length))
  try {
    return readdirSync(dirname(path))
      .filter(name => name.startsWith(prefix) && versionOf(name) > 0)
      .sort((a, b) => versionOf(b) - versionOf(a))
  } catch {
    return []
  }
}

/**
 * Returns the ID of a store; undefined if the store has been opened only by Workbase versions that did not assign store
 * IDs.
 */
export function storeIdOf(database: Database.Database): string | undefined {
  const row = database
    .prepare<[string], { id: string }>(`SELECT body ->> '$.value' AS id FROM settings WHERE name = ?`)
    .get(idSetting)
  return row?.id
}

/**
 * Writes the markers of an open store, and assigns an ID to the store if it has none. If the disk is full, does
 * nothing; the next start tries again.
 *
 * @throws control_plane_unavailable  a marker cannot be written
 */
export async function markStore(
  connection: SqliteConnection,
  path: string,
  { markers }: StoreTraces,
): Promise<void> {
  try {
    const id = storeIdOf(connection.database) ?? (await assignStoreId(connection, markers))
    writeMarkers({ markers }, id, path)
  } catch (error) {
    if (!isDiskFull(error)) throw error
  }
}

async function assignStoreId(connection: SqliteConnection, markers: readonly StoreMarker[]): Promise<string> {
  await connection.begin()
  try {
    // Another process may have written the ID first. A restored backup without an ID gets the marker's ID.
    const id = storeIdOf(connection.database) ?? markers.find(marker => marker.id)?.id ?? randomHex(idBytes)
    connection
      .prepare('INSERT INTO settings (version, body) VALUES (1, ?) ON CONFLICT DO NOTHING')
      .run(JSON.stringify({ name: idSetting, value: id }))
    connection.prepare('COMMIT').run()
    return id
  } finally {
    connection.rollback()
  }
}

/**
 * Writes the markers of a store that do not contain its ID.
 *
 * @throws control_plane_unavailable  a marker cannot be written
 */
export function writeMarkers({ markers }: Pick<StoreTraces, 'markers'>, id: string, path: string): void {
  for (const marker of markers) if (marker.id !== id) writeMarker(marker, id, path)
}

function writeMarker(marker: StoreMarker, id: string, path: string): void {
  const store = dirname(marker.path) === dirname(path) ? basename(path) : resolve(path)
  const text = [
    id,
    `${store} contains data. While this file exists, Workbase does not`,
    'replace a missing store with an empty one. See docs/storage.md.',
  ]
  try {
    writePrivateFile(marker.path, `${text.join('\n')}\n`)
  } catch (error) {
    throw unwritableFolder(error)
  }
}

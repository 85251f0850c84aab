import { readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { randomHex, sha256 } from '../../base/id.ts'
import { writePrivateFile } from '../../base/private-file.ts'
import { isDiskFull } from '../disk-space.ts'
import type { SqliteConnection } from './connection.ts'
import type Database from './driver.ts'
import { unwritableFolder } from './faults.ts'
import { logFiles } from './log-damage.ts'

/*
 * SQLite creates an empty database if its file is empty or missing, and deletes a log next to it. A marker
 * file next to the store keeps the id of the store, so that a lost store is not replaced with an empty one.
 */

/** Marker file of a store. */
export interface StoreMarker {
  readonly path: string
  /** Id of the store; undefined if the marker is missing or cannot be read. */
  readonly id: string | undefined
  readonly isThere: boolean
}

/** Evidence of a store at a path. */
export interface StoreTraces {
  /** All paths where a marker is or should be. */
  readonly markers: readonly StoreMarker[]
  /** Log files that are not empty. */
  readonly leftovers: readonly string[]
  /** Names of copies that upgrades made, newest first. */
  readonly copies: readonly string[]
}

const idBytes = 16
const idSetting = 'store-id'

/**
 * Reads the evidence of a store. Call it before reading the store's own file: the evidence is created after
 * the file, so a store that another process is creating is not mistaken for a lost one.
 */
export function readTraces(path: string, dataDir: string | undefined): StoreTraces {
  const { log, index } = logFiles(path)
  return {
    markers: markerPaths(path, dataDir).map(readMarker),
    leftovers: [log, index].filter(isFilled),
    copies: copiesOf(path),
  }
}

/** Returns true if there was a store; its tables may not have been created yet. */
export function hadStore(traces: StoreTraces): boolean {
  return traces.leftovers.length > 0 || hadTables(traces)
}

/** Returns true if there was a store with tables. */
export function hadTables({ markers, copies }: StoreTraces): boolean {
  return markers.some(({ isThere }) => isThere) || copies.length > 0
}

/**
 * Returns the paths of the markers. A store outside the data directory has a second marker inside it, because
 * the whole disk of the store may be missing.
 */
function markerPaths(path: string, dataDir: string | undefined): string[] {
  const beside = `${path}.id`
  if (dataDir === undefined || isBelow(dataDir, path)) return [beside]
  return [beside, join(dataDir, `${basename(path)}.${sha256(resolve(path)).slice(0, 8)}.id`)]
}

function isBelow(folder: string, path: string): boolean {
  const way = relative(folder, path)
  return !isAbsolute(way) && way.split(sep)[0] !== '..'
}

function readMarker(path: string): StoreMarker {
  try {
    // Opening a pipe would wait for its other end.
    if (!statSync(path).isFile()) return { path, id: undefined, isThere: true }
    const [id] = readFileSync(path, 'utf8').split('\n', 1)
    return { path, id: id && /^[0-9a-f]{32}$/.test(id) ? id : undefined, isThere: true }
  } catch (error) {
    const isMissing = ['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')
    return { path, id: undefined, isThere: !isMissing }
  }
}

function isFilled(path: string): boolean {
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
      .sort((one, other) => versionOf(other) - versionOf(one))
  } catch {
    return []
  }
}

/** Returns the id of a store; undefined if the store was last opened by a version without ids. */
export function storeIdOf(database: Database.Database): string | undefined {
  const found = database
    .prepare<[string], { id: string }>(`SELECT body ->> '$.value' AS id FROM settings WHERE name = ?`)
    .get(idSetting)
  return found?.id
}

/**
 * Writes the markers of an open store, and creates its id if it has none. Does nothing if the disk is full;
 * the next start tries again.
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
    for (const marker of markers) if (marker.id !== id) writeMarker(marker, id, path)
  } catch (error) {
    if (!isDiskFull(error)) throw error
  }
}

async function assignStoreId(connection: SqliteConnection, markers: readonly StoreMarker[]): Promise<string> {
  await connection.begin()
  try {
    // Another process may have written the id first. A restored backup without an id gets the marker's id.
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

function writeMarker(marker: StoreMarker, id: string, path: string): void {
  const store = dirname(marker.path) === dirname(path) ? basename(path) : resolve(path)
  const text = [
    id,
    `${store} holds data. As long as this file is here, Workbase does not`,
    'start with an empty store in its place. See docs/storage.md.',
  ]
  try {
    writePrivateFile(marker.path, `${text.join('\n')}\n`)
  } catch (error) {
    throw unwritableFolder(error)
  }
}

import { createHash } from 'node:crypto'
import {
  closeSync,
  createWriteStream,
  existsSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  mkdtempSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
} from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { isProcessRunning } from '../base/is-process-running.ts'
import { WbError } from '../contract/errors.ts'
import { checkStore, copyStore, isNewStore } from '../storage/open.ts'
import type { StoreLocation, StoreReport } from '../storage/storage-driver.ts'
import {
  type BackedUpFile,
  formatVersion,
  includedNames,
  type Manifest,
  manifestName,
  readBackup,
  storeName,
} from './backup-file.ts'
import { tarEnd, tarHeader, tarPadding } from './tar.ts'

const READ_BYTES = 256 * 1024
const permissionBits = 0o777

export interface BackupOptions {
  readonly dataDir: string
  readonly location: StoreLocation
  /** Path of the backup. An existing file is replaced when the new one is complete. */
  readonly path: string
  readonly createdAt: string
  /** Version of Workbase. */
  readonly workbase: string
  readonly signal: AbortSignal
}

/** A backup that was written and read back. */
export interface DataDirBackup extends Pick<Manifest, 'createdAt' | 'schema' | 'files'> {
  readonly path: string
  readonly bytes: number
  /** Names in the data directory that the backup does not contain. */
  readonly skipped: readonly string[]
  /** Problems of the store that are not damage; the backup contains them. */
  readonly problems: StoreReport['checks']
}

/**
 * Writes a backup of a data directory: a snapshot of the store, and the files of the data directory that a restore needs.
 * Other processes can use the store in the meantime. The snapshot and the written file are checked before the file gets
 * its name. Only this user can read it.
 *
 * @throws validation_error           the store is in memory, or contains nothing yet
 * @throws control_plane_unavailable  the store is missing, damaged or cannot be opened
 * @throws the error of the system, such as a full disk
 */
export async function createBackup(options: BackupOptions): Promise<DataDirBackup> {
  const { dataDir, location, path, createdAt, workbase, signal } = options
  if (location.path === ':memory:')
    throw new WbError('validation_error', 'the store is in memory, so it cannot be backed up')
  if (await isNewStore(location)) throw new WbError('validation_error', `${dataDir} contains no data yet`)
  removeAbandoned(dirname(path))
  const folder = mkdtempSync(join(dirname(path), `.wb-backup-${process.pid}-`))
  try {
    const copy = { ...location, path: join(folder, storeName), dataDir: undefined }
    await copyStore(location, copy.path)
    const report = await checkStore(copy)
    if (!report || isDamaged(report))
      throw new WbError('control_plane_unavailable', 'the store is damaged, so nothing was backed up', {
        hint: 'Run wb doctor --deep, and see "Damage" in docs/storage.md.',
      })
    const { found, skipped } = surveyDataDir(dataDir, location.path)
    const archive = join(folder, 'archive')
    const facts = { format: 'workbase-backup' as const, version: formatVersion, workbase, createdAt }
    const sources = [{ name: storeName, path: copy.path }, ...found]
    const blocks = archiveBlocks(sources, { ...facts, schema: report.schema })
    // Fast compression: vectors hardly compress, and texts compress well at any level.
    await pipeline(
      Readable.from(blocks),
      createGzip({ level: 1 }),
      createWriteStream(archive, { flags: 'wx', mode: 0o600 }),
      { signal },
    )
    syncFile(archive)
    const { files, schema } = await readBackup(archive, async ({ content }) => {
      for await (const _ of content) signal.throwIfAborted()
    })
    renameSync(archive, path)
    // Windows cannot open folders.
    if (process.platform !== 'win32') syncFile(dirname(path), 'r')
    const problems = report.checks.filter(({ count }) => count > 0)
    return { path, bytes: statSync(path).size, createdAt, schema, files, skipped, problems }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Returns true if the structure of a store or a row is damaged, in contrast to rows that do not fit together. */
export function isDamaged({ schema, known, checks, readable }: StoreReport): boolean {
  return readable !== undefined || (schema !== known && checks.some(({ count }) => count > 0))
}

/** Deletes the folders of killed backups. */
function removeAbandoned(folder: string): void {
  for (const name of readdirSync(folder)) {
    const [, pid] = /^\.wb-backup-(\d{1,10})-/.exec(name) ?? []
    if (pid !== undefined && !isProcessRunning(Number(pid)))
      rmSync(join(folder, name), { recursive: true, force: true })
  }
}

interface FoundFile {
  /** Name in the backup. */
  readonly name: string
  readonly path: string
}

/** Files that exist only while a process runs, or that are derived from the store. */
function isTemporary(name: string, store: string): boolean {
  const files = ['serve.lock', 'serve.lock-journal', 'serve.json', 'uploads']
  const storeFiles = [store, `${store}-wal`, `${store}-shm`, `${store}.id`]
  return files.includes(name) || storeFiles.includes(name) || /^\.(?:wb-backup|restore)-/.test(name)
}

function surveyDataDir(dataDir: string, storePath: string): { found: FoundFile[]; skipped: string[] } {
  const found: FoundFile[] = []
  const skipped: string[] = []
  const add = (name: string) => {
    const path = join(dataDir, name)
    const stats = statsOf(path)
    if (stats?.isFile()) found.push({ name, path })
    // A linked folder can be anywhere, and can contain itself.
    else if (stats?.isDirectory() && !lstatSync(path).isSymbolicLink())
      for (const entry of readdirSync(path).sort()) add(`${name}/${entry}`)
    else skipped.push(name)
  }
  for (const name of readdirSync(dataDir).sort()) {
    if (includedNames.includes(name)) add(name)
    else if (!isTemporary(name, basename(storePath))) skipped.push(name)
  }
  return { found, skipped }
}

/** Returns undefined for a link to a file that does not exist. */
function statsOf(path: string): Stats | undefined {
  return existsSync(path) ? statSync(path) : undefined
}

async function* archiveBlocks(
  sources: readonly FoundFile[],
  facts: Omit<Manifest, 'files'>,
): AsyncGenerator<Buffer> {
  const files: BackedUpFile[] = []
  const seconds = Math.floor(Date.parse(facts.createdAt) / 1000)
  for (const { name, path } of sources) {
    const handle = await open(path)
    try {
      const stats = fstatSync(handle.fd)
      const file = { name, size: stats.size, mode: stats.mode & permissionBits }
      const hash = createHash('sha256')
      yield tarHeader(file, seconds)
      for await (const bytes of contentOf(handle, file)) {
        hash.update(bytes)
        yield bytes
      }
      yield tarPadding(file.size)
      files.push({ ...file, sha256: hash.digest('hex') })
    } finally {
      await handle.close()
    }
  }
  const manifest = Buffer.from(`${JSON.stringify({ ...facts, files }, undefined, 2)}\n`)
  yield tarHeader({ name: manifestName, size: manifest.length, mode: 0o600 }, seconds)
  yield manifest
  yield tarPadding(manifest.length)
  yield tarEnd
}

async function* contentOf(
  handle: FileHandle,
  { name, size }: { name: string; size: number },
): AsyncGenerator<Buffer> {
  for (let at = 0; at < size; ) {
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(Math.min(READ_BYTES, size - at)))
    if (bytesRead === 0)
      throw new WbError('conflict', `${name} was changed while it was read; nothing was backed up`)
    at += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}

/** Waits until a file or folder is on disk. */
export function syncFile(path: string, flags = 'r+'): void {
  const file = openSync(path, flags)
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

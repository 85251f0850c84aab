import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream'
import { isDeepStrictEqual } from 'node:util'
import { createGunzip } from 'node:zlib'
import { isObject } from '../base/is-object.ts'
import { parseJson } from '../base/parse-json.ts'
import { WbError } from '../contract/errors.ts'
import { damagedBackup, type ReadTarFile, readTar, type TarFile } from './tar.ts'

/** Name of the store in a backup, whatever its name is on disk. */
export const storeName = 'workbase.db'
/** Name of the last file of a backup: its {@link Manifest}. */
export const manifestName = 'backup.json'
export const formatVersion = 1
const MANIFEST_BYTES_MAX = 16 * 1024 * 1024

/** Files of a data directory that a backup contains, besides the store. */
const includedFiles: readonly string[] = ['workbase.yaml', '.env']
/** Folders of a data directory that a backup contains. */
const includedFolders: readonly string[] = ['secrets', 'models']
export const includedNames: readonly string[] = [...includedFiles, ...includedFolders]

/** A file of a backup, with its SHA-256 in hex. */
export interface BackedUpFile extends TarFile {
  readonly sha256: string
}

/** Content of a backup. */
export interface Manifest {
  readonly format: 'workbase-backup'
  readonly version: number
  /** Version of Workbase. */
  readonly workbase: string
  readonly createdAt: string
  /** Schema version of the store. */
  readonly schema: number
  readonly files: readonly BackedUpFile[]
}

/**
 * Reads a backup to its end, and checks each of its files.
 *
 * @param store  called for each file other than the manifest; must read its content
 * @throws archive_damaged        the backup is truncated or changed
 * @throws archive_not_supported  the file is not a backup, or a newer version wrote it
 */
export async function readBackup(
  path: string,
  store: (file: ReadTarFile) => Promise<void>,
): Promise<Manifest> {
  const gunzip = createGunzip()
  // Errors of the file are thrown by the loop below.
  pipeline(createReadStream(path), gunzip, () => {})
  const seen: BackedUpFile[] = []
  const places = new UniquePlaces()
  let manifest: Manifest | undefined
  try {
    for await (const file of readTar(gunzip)) {
      if (manifest) throw damagedBackup()
      if (file.name === manifestName) {
        manifest = await readManifest(file)
        continue
      }
      if (!isIncluded(file.name) || !places.add(file.name))
        throw damagedBackup(`it contains a file with the name '${file.name}'`)
      const { name, size, mode } = file
      const hash = createHash('sha256')
      await store({ name, size, mode, content: hashed(file.content, hash) })
      seen.push({ name, size, mode, sha256: hash.digest('hex') })
    }
  } catch (error) {
    throw convertReadError(error)
  } finally {
    gunzip.destroy()
  }
  if (!manifest) throw damagedBackup('it is not complete')
  if (!isDeepStrictEqual(manifest.files, seen) || seen[0]?.name !== storeName) throw damagedBackup()
  return manifest
}

/** The paths of files. Knows those that cannot exist together. */
class UniquePlaces {
  readonly #files = new Set<string>()
  readonly #folders = new Set<string>()

  /** Returns false if the path is that of another file or of its folder, or if a folder of it is a file. */
  add(name: string): boolean {
    const segments = name.split('/')
    const folders = segments.slice(1).map((_, at) => segments.slice(0, at + 1).join('/'))
    if (this.#files.has(name) || this.#folders.has(name)) return false
    if (folders.some(folder => this.#files.has(folder))) return false
    this.#files.add(name)
    for (const folder of folders) this.#folders.add(folder)
    return true
  }
}

/** Returns true for the store, and for a file that is, or is in a folder that is, one of {@link includedNames}. */
function isIncluded(name: string): boolean {
  const [first, ...rest] = name.split('/')
  if (rest.length === 0) return name === storeName || includedFiles.includes(name)
  const isPlain = (segment: string) =>
    segment !== '' && segment !== '.' && segment !== '..' && !/[\\\p{Cc}]/u.test(segment)
  return includedFolders.includes(first!) && rest.every(isPlain)
}

async function* hashed(content: AsyncIterable<Buffer>, hash: { update(bytes: Buffer): void }) {
  for await (const bytes of content) {
    hash.update(bytes)
    yield bytes
  }
}

async function readManifest({ size, content }: ReadTarFile): Promise<Manifest> {
  if (size > MANIFEST_BYTES_MAX) throw damagedBackup()
  const parts: Buffer[] = []
  for await (const part of content) parts.push(part)
  const manifest = parseJson(Buffer.concat(parts).toString('utf8'))
  if (!isObject(manifest) || manifest.format !== 'workbase-backup') throw damagedBackup()
  if (manifest.version !== formatVersion)
    throw new WbError('archive_not_supported', 'the backup was created by a newer version of Workbase')
  return manifest as unknown as Manifest
}

function convertReadError(error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (code === 'Z_BUF_ERROR') return damagedBackup('it is not complete', error)
  if (code === 'Z_DATA_ERROR' && error instanceof Error && error.message === 'incorrect header check')
    return new WbError('archive_not_supported', 'the file is not a backup of Workbase', {}, { cause: error })
  return code.startsWith('Z_') ? damagedBackup(undefined, error) : error
}

import { createHash } from 'node:crypto'
import { constants, type Stats } from 'node:fs'
import { open } from 'node:fs/promises'
import { relative, sep } from 'node:path'
import type { FileToRead, Problem, Skipped } from '../ingest/ingest-item.ts'
import { systemFailure } from '../ingest/read-text.ts'
import { unsupportedTypeItem } from '../ingest/sources.ts'
import { walk } from '../ingest/walk.ts'

/** A file of a folder that can be a document. */
export interface FolderFile extends FileToRead {
  /** SHA-256 of its bytes, in hexadecimal. */
  readonly hash: string
}

/** The files of a folder, by name: their path below the folder, with forward slashes. */
export interface FolderState {
  readonly files: ReadonlyMap<string, FolderFile>
  readonly skipped: readonly Skipped[]
  /** Files and folders that could not be read. */
  readonly problems: readonly Problem[]
  /** Names of these files and folders. Nothing is known about what is below them. */
  readonly unreadable: readonly string[]
}

/** Hash of a file, with the properties that change when its content does. */
interface KnownHash {
  readonly stamp: string
  readonly hash: string
}

const readBytes = 1 << 20

/** Reads the state of a folder. Remembers hashes, so that only changed files are read again. */
export class FolderReader {
  readonly #folder: string
  #known = new Map<string, KnownHash>()

  /** @param folder  absolute path */
  constructor(folder: string) {
    this.#folder = folder
  }

  async read(signal: AbortSignal): Promise<FolderState> {
    const files = new Map<string, FolderFile>()
    const skipped: Skipped[] = []
    const problems: Problem[] = []
    const known = new Map<string, KnownHash>()
    const fail = (path: string, error: unknown) => {
      const { code, message } = systemFailure(error)
      problems.push({ path, code, message })
    }
    for await (const item of walk([this.#folder], { cwd: this.#folder, all: false })) {
      signal.throwIfAborted()
      if ('kind' in item) {
        if (item.kind === 'failed') problems.push(item.problem)
        else if (item.kind === 'skipped') skipped.push(item)
        continue
      }
      const unsupported = unsupportedTypeItem(item)
      if (unsupported?.kind === 'skipped') skipped.push(unsupported)
      else {
        const found = await this.#hash(item.file).catch((error: unknown) => fail(item.path, error))
        if (!found) continue
        known.set(item.file, found)
        if (found.stamp.startsWith('0:'))
          skipped.push({ path: item.path, category: 'empty files', reason: 'no text' })
        else files.set(item.name, { ...item, hash: found.hash })
      }
    }
    this.#known = known
    const unreadable = problems.map(({ path }) => relative(this.#folder, path).split(sep).join('/'))
    return { files, skipped, problems, unreadable }
  }

  async #hash(file: string): Promise<KnownHash> {
    const handle = await open(
      file,
      constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0),
    )
    try {
      const stamp = stampOf(await handle.stat())
      const known = this.#known.get(file)
      if (known?.stamp === stamp) return known
      const hash = createHash('sha256')
      const stream = handle.createReadStream({ autoClose: false, highWaterMark: readBytes })
      for await (const bytes of stream) hash.update(bytes as Buffer)
      return { stamp, hash: hash.digest('hex') }
    } finally {
      await handle.close()
    }
  }
}

function stampOf({ size, mtimeMs, ctimeMs, ino }: Stats): string {
  return [size, mtimeMs, ctimeMs, ino].join(':')
}

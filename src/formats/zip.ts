import { type Entry, fromBufferPromise, type ZipFile } from 'yauzl'
import { unreadable } from './file-text.ts'

/** Maximum number of entries of an archive. */
const entriesMax = 20_000
/** Maximum number of bytes of all entries that are read. A file of a few kilobytes can claim to contain gigabytes. */
const bytesMax = 256_000_000

/** A ZIP archive, such as a Word file. */
export class Zip {
  readonly #file: ZipFile
  readonly #entries: ReadonlyMap<string, Entry>
  #bytesLeft = bytesMax

  private constructor(file: ZipFile, entries: ReadonlyMap<string, Entry>) {
    this.#file = file
    this.#entries = entries
  }

  /** @throws extraction_failed  the archive is damaged or has too many entries */
  static async open(bytes: Uint8Array): Promise<Zip> {
    try {
      const file = await fromBufferPromise(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
      if (file.entryCount > entriesMax) throw unreadable(`is an archive of more than ${entriesMax} entries`)
      const entries = new Map<string, Entry>()
      for await (const entry of file.eachEntry()) entries.set(entry.fileName, entry)
      return new Zip(file, entries)
    } catch (error) {
      throw damagedArchive(error)
    }
  }

  has(name: string): boolean {
    return this.#entries.has(name)
  }

  /** @throws extraction_failed  the entry is missing, damaged, encrypted or too large */
  async read(name: string): Promise<Buffer> {
    const entry = this.#entries.get(name)
    if (!entry) throw unreadable(`is an archive without '${name}'`)
    if (entry.uncompressedSize > this.#bytesLeft) throw tooLarge()
    const pieces: Buffer[] = []
    await this.#unpack(entry, piece => pieces.push(piece))
    this.#bytesLeft -= entry.uncompressedSize
    return Buffer.concat(pieces)
  }

  /**
   * Checks that all entries together are small enough, before a library unpacks them without a limit. Unpacks them, because an
   * entry can be longer than it declares.
   *
   * @throws extraction_failed  an entry is damaged or encrypted, or all are too large
   */
  async requireSmall(): Promise<this> {
    let bytes = 0
    for (const entry of this.#entries.values()) bytes += entry.uncompressedSize
    if (bytes > bytesMax) throw tooLarge()
    for (const entry of this.#entries.values()) await this.#unpack(entry, () => {})
    return this
  }

  async #unpack(entry: Entry, use: (piece: Buffer) => void): Promise<void> {
    if (entry.isEncrypted()) throw encrypted()
    try {
      // The stream fails if the entry is longer than it declares.
      for await (const piece of await this.#file.openReadStreamPromise(entry)) use(piece as Buffer)
    } catch (error) {
      throw damagedArchive(error)
    }
  }
}

/**
 * Returns the name of the entry to which a reference in another entry leads.
 *
 * @throws extraction_failed  the reference is invalid
 */
export function resolveEntry(from: string, reference: string): string {
  try {
    return decodeURIComponent(new URL(reference, `file:///${from}`).pathname.slice(1))
  } catch (error) {
    throw damagedArchive(error)
  }
}

export function encrypted(): Error {
  return unreadable('is encrypted', 'Save it without a password, and send it again.')
}

function tooLarge(): Error {
  return unreadable(
    `contains more than ${bytesMax / 1e6} MB when it is unpacked`,
    'Split it, or remove large pictures.',
  )
}

function damagedArchive(error: unknown): Error {
  if (error instanceof Error && error.name === 'WbError') return error
  return unreadable('is a damaged archive', undefined, error)
}

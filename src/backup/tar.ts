import { WbError } from '../contract/errors.ts'

/*
 * A subset of the tar format: regular files. Any tar program can read the archives.
 *
 * @see POSIX.1-2024, pax, section "ustar Interchange Format"
 */

const BLOCK_BYTES = 512
const NAME_BYTES_MAX = 100
const PREFIX_BYTES_MAX = 155
/** Largest size that fits into 11 octal digits. */
const OCTAL_SIZE_MAX = 0o77777777777
const CHECKSUM_AT = 148

/** A file of an archive. */
export interface TarFile {
  /** Path with slashes, relative, up to 255 bytes. */
  readonly name: string
  readonly size: number
  /** Permission bits. */
  readonly mode: number
}

/** The blocks at the end of an archive. */
export const tarEnd = Buffer.alloc(2 * BLOCK_BYTES)

/**
 * Returns the header of a file.
 *
 * @param seconds  time of the last change, since 1970
 * @throws validation_error  the name does not fit into a header
 */
export function tarHeader({ name, size, mode }: TarFile, seconds: number): Buffer {
  const header = Buffer.alloc(BLOCK_BYTES)
  const [prefix, base] = splitName(name)
  header.write(base, 0)
  writeOctal(header, mode & 0o777, 100, 8)
  writeOctal(header, 0, 108, 8)
  writeOctal(header, 0, 116, 8)
  if (size <= OCTAL_SIZE_MAX) writeOctal(header, size, 124, 12)
  else {
    // Base-256, which GNU tar and others read.
    header.writeUInt8(0x80, 124)
    header.writeBigUInt64BE(BigInt(size), 128)
  }
  writeOctal(header, seconds, 136, 12)
  header.fill(' ', CHECKSUM_AT, CHECKSUM_AT + 8)
  header.write('0', 156)
  header.write('ustar\x0000', 257)
  header.write(prefix, 345)
  header.write(`${checksumOf(header).toString(8).padStart(6, '0')}\0 `, CHECKSUM_AT)
  return header
}

/** Returns the bytes that follow the content of a file up to the next block. */
export function tarPadding(size: number): Buffer {
  return Buffer.alloc((BLOCK_BYTES - (size % BLOCK_BYTES)) % BLOCK_BYTES)
}

/** Splits a name into its prefix and the rest, which have separate fields. */
function splitName(name: string): [prefix: string, base: string] {
  if (Buffer.byteLength(name) <= NAME_BYTES_MAX) return ['', name]
  for (let at = name.indexOf('/'); at >= 0; at = name.indexOf('/', at + 1)) {
    const [prefix, base] = [name.slice(0, at), name.slice(at + 1)]
    if (Buffer.byteLength(base) <= NAME_BYTES_MAX && Buffer.byteLength(prefix) <= PREFIX_BYTES_MAX)
      return [prefix, base]
  }
  throw new WbError('validation_error', `the path '${name}' is too long for a backup`)
}

function writeOctal(header: Buffer, value: number, at: number, bytes: number): void {
  header.write(value.toString(8).padStart(bytes - 1, '0'), at)
}

/** Returns the sum of the bytes, with spaces in the place of the checksum. */
function checksumOf(header: Buffer): number {
  let sum = 0
  for (const [at, byte] of header.entries()) sum += at >= CHECKSUM_AT && at < CHECKSUM_AT + 8 ? 0x20 : byte
  return sum
}

/** A file while an archive is read. */
export interface ReadTarFile extends TarFile {
  /** The bytes of the file. Read all of them before the next file. */
  readonly content: AsyncIterable<Buffer>
}

/**
 * Reads the files of an archive in order.
 *
 * @throws archive_damaged  a header is damaged, the archive contains something other than files, or its end is missing
 */
export async function* readTar(chunks: AsyncIterable<Buffer>): AsyncGenerator<ReadTarFile> {
  const reader = new BlockReader(chunks)
  for (;;) {
    const header = await reader.take(BLOCK_BYTES)
    if (header.every(byte => byte === 0)) {
      await reader.takeRest()
      return
    }
    const file = parseHeader(header)
    yield { ...file, content: reader.takeStream(file.size) }
    await reader.take(tarPadding(file.size).length)
  }
}

function parseHeader(header: Buffer): TarFile {
  const sum = readOctal(header, CHECKSUM_AT, 8)
  if (sum !== checksumOf(header) || header.toString('latin1', 257, 262) !== 'ustar') throw damagedBackup()
  if (header[156] !== 0x30) throw damagedBackup()
  const [prefix, base] = [readText(header, 345, PREFIX_BYTES_MAX), readText(header, 0, NAME_BYTES_MAX)]
  const size = header[124] === 0x80 ? Number(header.readBigUInt64BE(128)) : readOctal(header, 124, 12)
  if (!Number.isSafeInteger(size)) throw damagedBackup()
  return { name: prefix ? `${prefix}/${base}` : base, size, mode: readOctal(header, 100, 8) & 0o777 }
}

function readText(header: Buffer, at: number, bytes: number): string {
  const text = header.toString('utf8', at, at + bytes)
  const end = text.indexOf('\0')
  return end < 0 ? text : text.slice(0, end)
}

function readOctal(header: Buffer, at: number, bytes: number): number {
  const digits = /^[0-7]+/.exec(header.toString('latin1', at, at + bytes).trim())
  return digits ? Number.parseInt(digits[0], 8) : Number.NaN
}

/** Takes exact numbers of bytes from a sequence of chunks. */
class BlockReader {
  readonly #chunks: AsyncIterator<Buffer>
  #rest: Buffer = Buffer.alloc(0)

  constructor(chunks: AsyncIterable<Buffer>) {
    this.#chunks = chunks[Symbol.asyncIterator]()
  }

  /** Returns up to `max` bytes, at least one. @throws archive_damaged  there are no more bytes */
  async #takeSome(max: number): Promise<Buffer> {
    while (this.#rest.length === 0) {
      const next = await this.#chunks.next()
      if (next.done) throw damagedBackup('it is not complete')
      this.#rest = next.value
    }
    const taken = this.#rest.subarray(0, max)
    this.#rest = this.#rest.subarray(taken.length)
    return taken
  }

  async *takeStream(bytes: number): AsyncGenerator<Buffer> {
    for (let left = bytes; left > 0; ) {
      const taken = await this.#takeSome(left)
      left -= taken.length
      yield taken
    }
  }

  async take(bytes: number): Promise<Buffer> {
    const parts: Buffer[] = []
    for await (const part of this.takeStream(bytes)) parts.push(part)
    return Buffer.concat(parts)
  }

  /** Reads to the end, so that the checksum of a compressed stream is verified. */
  async takeRest(): Promise<void> {
    while (!(await this.#chunks.next()).done);
  }
}

/** Returns the error for a damaged backup. */
export function damagedBackup(problem = 'its content was changed', cause?: unknown): WbError {
  return new WbError('archive_damaged', `the backup cannot be used: ${problem}`, {}, { cause })
}

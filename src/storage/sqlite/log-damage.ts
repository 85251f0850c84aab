import { closeSync, openSync, readSync, realpathSync } from 'node:fs'
import { endianness } from 'node:os'
import { isDeepStrictEqual } from 'node:util'
import { statsOf } from '../../base/folder.ts'

/*
 * SQLite reads a write-ahead log up to the first frame with a wrong checksum, and treats that as the end of
 * the log. It has to, because a killed process leaves part of a frame, and a restarted log still contains
 * frames of its earlier round. But by the same rule, commits after a damaged frame are dropped without an
 * error, and the next write overwrites them.
 *
 * This module reads the files before SQLite does. Every commit is synced before the index of the log (`-shm`)
 * counts it, and before the next frame is written. So commits are lost if the index counts more frames than
 * can be read, or if a commit that cannot be reached is followed by another frame.
 *
 * @see https://www.sqlite.org/fileformat.html#the_write_ahead_log
 * @see https://www.sqlite.org/walformat.html
 */

const HEADER_BYTES = 32
const FRAME_HEADER_BYTES = 24
/** Bytes of the two copies of its header, and of the number of frames copied into the database file. */
const INDEX_BYTES = 100
const INDEX_HEADER_BYTES = 48
const INDEX_VERSION = 3_007_000
const LOG_MAGIC = 0x377f0682
/** Number of frames in one read, about 1 MB. */
const FRAMES_READ = 256
/** The page that holds this byte is never used. @see https://www.sqlite.org/fileformat.html#the_lock_byte_page */
const LOCK_BYTE = 0x40000000

/** Damage that makes SQLite drop committed changes without an error. */
export interface LogDamage {
  /** `log`: unreadable frames. `log gone`: the log is missing. `cut`: pages of the database are missing. */
  readonly kind: 'log' | 'log gone' | 'cut'
  /** Length in bytes of the readable part of the log, which ends with a commit; 0 if no part is readable. */
  readonly soundBytes: number
  /** Identifies the round of the log that was inspected. */
  readonly salts: string
}

/** Returns the paths of a store's log and of its index. Resolves symbolic links, as SQLite does. */
export function logFiles(path: string): { log: string; index: string } {
  const real = realPath(path)
  return { log: `${real}-wal`, index: `${real}-shm` }
}

/** Resolves symbolic links; returns the path itself if there is no file. */
export function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

/**
 * Searches for damage that makes SQLite drop committed changes. Changes nothing; other processes can go on
 * writing.
 *
 * Call it before this process opens the store: closing these files releases all locks that the process has on
 * them.
 *
 * @returns undefined if no damage can be proved. Without an index, a log that was truncated, or is damaged in
 *          its last commit, looks like a write that was never finished.
 */
export function findLogDamage(path: string): LogDamage | undefined {
  const found = inspectLog(path)
  if (!found) return undefined
  // A concurrent writer can make a log look damaged, but not twice in the same way.
  return isDeepStrictEqual(found, inspectLog(path)) ? found : undefined
}

function inspectLog(path: string): LogDamage | undefined {
  const files = logFiles(path)
  // Read before the log, because the index never counts a frame that is not in the log yet.
  const index = readIndex(files.index)
  return withFile(files.log, file => {
    const header = file === undefined ? undefined : readAt(file, 0, HEADER_BYTES)
    if (file === undefined || !header) return isAhead(index) ? lostLog('log gone', index) : undefined
    const shape = parseLogHeader(header)
    if (!shape) return damageWithoutHeader(file, index, path)
    const seen = scanFrames(file, shape, sizeOf(path))
    const isShort = index?.salts === shape.salts && index.frames > seen.committed
    const frameBytes = FRAME_HEADER_BYTES + shape.pageBytes
    const soundBytes = HEADER_BYTES + seen.committed * frameBytes
    if (isShort || seen.hasLost) return { kind: 'log', soundBytes, salts: shape.salts }
    return seen.committed > 0 && lacksPages(path, shape, seen)
      ? { kind: 'cut', soundBytes, salts: shape.salts }
      : undefined
  })
}

function lostLog(kind: LogDamage['kind'], index: LogIndex | undefined): LogDamage {
  return { kind, soundBytes: 0, salts: index?.salts ?? '' }
}

/** Checks a log with a damaged header, which SQLite treats as empty. */
function damageWithoutHeader(file: number, index: LogIndex | undefined, path: string): LogDamage | undefined {
  if (index) return isAhead(index) ? lostLog('log', index) : undefined
  const pageBytes = pageBytesOf(path)
  if (pageBytes === undefined) return undefined
  const { hasLost } = scanFrames(file, { pageBytes, isSwapped: false, salts: undefined, seed: undefined }, 0)
  return hasLost ? lostLog('log', undefined) : undefined
}

/** Header of a log. */
interface LogShape {
  readonly pageBytes: number
  /** True if checksums use the other byte order than this machine. */
  readonly isSwapped: boolean
  /** Salts of the frames of this round; undefined if the header cannot be read. */
  readonly salts: string | undefined
  /** Checksum of the header, from which the first frame continues. */
  readonly seed: Checksum | undefined
}

type Checksum = readonly [number, number]

/** @returns undefined for a damaged header */
function parseLogHeader(header: Buffer): (LogShape & { salts: string }) | undefined {
  const magic = header.readUInt32BE(0)
  if ((magic & ~1) >>> 0 !== LOG_MAGIC) return undefined
  const isSwapped = (magic & 1) !== (endianness() === 'BE' ? 1 : 0)
  const seed = checksum(wordsOf(header.subarray(0, 24), isSwapped), 0, 6, [0, 0])
  const pageBytes = header.readUInt32BE(8)
  const isPage = pageBytes >= 512 && pageBytes <= 65_536 && (pageBytes & (pageBytes - 1)) === 0
  if (!isPage || seed[0] !== header.readUInt32BE(24) || seed[1] !== header.readUInt32BE(28)) return undefined
  return { pageBytes, isSwapped, salts: header.toString('hex', 16, 24), seed }
}

/** Contents of a log. */
interface ScannedLog {
  /** Number of frames up to the last commit that SQLite reaches. */
  committed: number
  /** Size of the database after that commit, in pages. */
  pages: number
  /** Pages that are in the log, and beyond the end of the database file. */
  readonly beyond: ReadonlySet<number>
  /** True if a commit that SQLite does not reach is followed by another frame. */
  hasLost: boolean
}

function scanFrames(file: number, shape: LogShape, databaseBytes: number): ScannedLog {
  const filePages = Math.floor(databaseBytes / shape.pageBytes)
  const beyond = new Set<number>()
  const seen = { committed: 0, pages: 0, beyond, hasLost: false }
  let isReached = shape.seed !== undefined
  let pending: number[] = []
  let followsCommit = false
  let count = 0
  for (const frame of framesOf(file, shape)) {
    count++
    isReached &&= frame.isSound
    if (isReached) {
      if (frame.page > filePages) pending.push(frame.page)
      if (frame.pagesAfter === 0) continue
      for (const page of pending) beyond.add(page)
      pending = []
      seen.committed = count
      seen.pages = frame.pagesAfter
    } else {
      if (frame.isSound && followsCommit) seen.hasLost = true
      followsCommit = frame.isSound && frame.pagesAfter > 0
    }
  }
  return seen
}

interface LogFrame {
  readonly page: number
  /** Size of the database in pages, if the frame ends a commit; else 0. */
  readonly pagesAfter: number
  /**
   * True if the frame belongs to the current round, and its checksum continues that of the frame before it.
   */
  readonly isSound: boolean
}

function* framesOf(file: number, { pageBytes, isSwapped, salts, seed }: LogShape): Generator<LogFrame> {
  const frameBytes = FRAME_HEADER_BYTES + pageBytes
  const wordsPerFrame = frameBytes / 4
  const bytes = Buffer.from(new ArrayBuffer(FRAMES_READ * frameBytes))
  let before = { checksum: seed, salts }
  for (let at = HEADER_BYTES; ; ) {
    const frames = Math.floor(readSync(file, bytes, 0, bytes.length, at) / frameBytes)
    if (frames === 0) return
    const words = wordsOf(bytes, isSwapped)
    for (let n = 0; n < frames; n++) {
      const start = n * frameBytes
      const page = bytes.readUInt32BE(start)
      const own = bytes.toString('hex', start + 8, start + 16)
      const stored: Checksum = [bytes.readUInt32BE(start + 16), bytes.readUInt32BE(start + 20)]
      const isOfRound = before.salts === undefined || own === before.salts
      const isSound =
        page > 0 && isOfRound && before.checksum !== undefined && continues(words, n, before.checksum, stored)
      yield { page, pagesAfter: bytes.readUInt32BE(start + 4), isSound }
      before = { checksum: stored, salts: salts ?? own }
    }
    at += frames * frameBytes
  }

  function continues(words: Uint32Array, n: number, from: Checksum, to: Checksum): boolean {
    const start = n * wordsPerFrame
    const head = checksum(words, start, start + 2, from)
    const whole = checksum(words, start + FRAME_HEADER_BYTES / 4, start + wordsPerFrame, head)
    return whole[0] === to[0] && whole[1] === to[1]
  }
}

/** @see https://www.sqlite.org/fileformat.html#checksum_algorithm */
function checksum(words: Uint32Array, from: number, to: number, [first, second]: Checksum): Checksum {
  let one = first | 0
  let two = second | 0
  for (let at = from; at < to; at += 2) {
    one = (one + words[at]! + two) | 0
    two = (two + words[at + 1]! + one) | 0
  }
  return [one >>> 0, two >>> 0]
}

function wordsOf(bytes: Buffer, isSwapped: boolean): Uint32Array {
  const isAligned = bytes.byteOffset % 4 === 0
  const own = isSwapped || !isAligned ? Buffer.from(new Uint8Array(bytes)) : bytes
  const words = new Uint32Array(own.buffer, own.byteOffset, own.byteLength / 4)
  if (isSwapped) own.swap32()
  return words
}

/** Index of a log, shared by the processes that write it. */
interface LogIndex {
  /** Number of committed frames. */
  readonly frames: number
  /** Number of frames that were copied into the database file. */
  readonly copied: number
  readonly salts: string
}

/** @returns undefined if the index is missing, was never used, or is being changed */
function readIndex(path: string): LogIndex | undefined {
  return withFile(path, file => {
    const bytes = file === undefined ? undefined : readAt(file, 0, INDEX_BYTES)
    if (!bytes) return undefined
    const [one, other] = [0, INDEX_HEADER_BYTES].map(at => bytes.subarray(at, at + INDEX_HEADER_BYTES))
    // Shared memory is in the byte order of the machine.
    const words = wordsOf(bytes, false)
    const isBegun = words[0] === INDEX_VERSION && bytes[12] === 1
    const sum = checksum(words, 0, 10, [0, 0])
    if (!one!.equals(other!) || !isBegun || sum[0] !== words[10] || sum[1] !== words[11]) return undefined
    return { frames: words[4]!, copied: words[24]!, salts: bytes.toString('hex', 32, 40) }
  })
}

/** Returns true if the log holds changes that the database file does not have yet. */
function isAhead(index: LogIndex | undefined): index is LogIndex {
  return index !== undefined && index.frames > index.copied
}

/** Returns true if a page is neither in the database file nor in the log. */
function lacksPages(path: string, { pageBytes }: LogShape, { pages, beyond }: ScannedLog): boolean {
  // Read again, because another process may have extended the file in the meantime.
  const filePages = Math.floor(sizeOf(path) / pageBytes)
  const lockPage = Math.floor(LOCK_BYTE / pageBytes) + 1
  for (let page = filePages + 1; page <= pages; page++)
    if (!beyond.has(page) && page !== lockPage) return true
  return false
}

/** @see https://www.sqlite.org/fileformat.html#page_size */
function pageBytesOf(path: string): number | undefined {
  const size = withFile(path, file => (file === undefined ? undefined : readAt(file, 16, 2)?.readUInt16BE(0)))
  return size === 1 ? 65_536 : size !== undefined && size >= 512 ? size : undefined
}

function sizeOf(path: string): number {
  return statsOf(path)?.size ?? 0
}

/** @returns undefined if the file is shorter */
function readAt(file: number, at: number, length: number): Buffer | undefined {
  const bytes = Buffer.from(new ArrayBuffer(length))
  return readSync(file, bytes, 0, length, at) === length ? bytes : undefined
}

/** @param use  receives undefined if there is no file */
function withFile<T>(path: string, use: (file: number | undefined) => T): T {
  let file: number | undefined
  try {
    file = openSync(path, 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  try {
    return use(file)
  } finally {
    if (file !== undefined) closeSync(file)
  }
}

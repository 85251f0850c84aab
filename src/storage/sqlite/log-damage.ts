import { closeSync, openSync, readSync, realpathSync } from 'node:fs'
import { endianness } from 'node:os'
import { isDeepStrictEqual } from 'node:util'
import { statsOf } from '../../base/folder.ts'

/*
 * SQLite reads a write-ahead log up to the first frame with a wrong checksum, and treats that frame as the end
 * of the log. This is necessary, because a killed process can leave a partial frame, and because SQLite restarts a log
 * by overwriting its old frames from the beginning. For the same reason, SQLite silently ignores commits after a
 * damaged frame, and the next write overwrites them.
 *
 * This module reads the files before SQLite does. Every commit is synced before the index of the log (`-shm`)
 * counts its frames, and before the next frame is written. So commits are lost if the index counts more frames than
 * can be read, or if a commit after the readable part is followed by another frame.
 *
 * @see https://www.sqlite.org/fileformat.html#the_write_ahead_log
 * @see https://www.sqlite.org/walformat.html
 */

const HEADER_BYTES = 32
const FRAME_HEADER_BYTES = 24
/** Size of the part of the index that is read: two copies of the header, and the number of copied frames. */
const INDEX_BYTES = 100
const INDEX_HEADER_BYTES = 48
const INDEX_VERSION = 3_007_000
const LOG_MAGIC = 0x377f0682
/** Number of frames per read: about 1 MB with pages of 4 KiB. */
const FRAMES_PER_READ = 256
/**
 * SQLite never uses the page that contains this byte.
 *
 * @see https://www.sqlite.org/fileformat.html#the_lock_byte_page
 */
const LOCK_BYTE_OFFSET = 0x40000000

/** Damage that causes SQLite to lose committed changes without reporting an error. */
export interface LogDamage {
  /** `truncated database` means that pages are missing from the database file and from the log. */
  readonly kind: 'damaged log' | 'missing log' | 'truncated database'
  /** Length in bytes of the readable part of the log, up to the end of its last commit; 0 if there is no commit. */
  readonly readableBytes: number
  /** Salts of the log in hex. They change when SQLite restarts the log. */
  readonly salts: string
}

/** Returns the paths of the log of a store and of its index. Resolves symbolic links, as SQLite does. */
export function logFiles(path: string): { log: string; index: string } {
  const real = realPath(path)
  return { log: `${real}-wal`, index: `${real}-shm` }
}

/** Resolves symbolic links; returns the path unchanged if it cannot be resolved. */
export function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

/**
 * Searches for damage that would cause SQLite to lose committed changes. Does not change the files. Other processes can
 * continue to write.
 *
 * Call this only while the store is not open in this process, because closing these files releases all locks that
 * the process has on them.
 *
 * @returns undefined unless damage is certain. If there is no index, a truncated log, or a log with a damaged last
 *          commit, cannot be distinguished from an unfinished write.
 */
export function findLogDamage(path: string): LogDamage | undefined {
  const damage = inspectLog(path)
  if (!damage) return undefined
  // A concurrent writer can make a log look damaged, but not twice in the same way.
  return isDeepStrictEqual(damage, inspectLog(path)) ? damage : undefined
}

function inspectLog(path: string): LogDamage | undefined {
  const files = logFiles(path)
  // Read the index before the log, because the index never counts a frame that is not in the log yet.
  const index = readIndex(files.index)
  return withFile(files.log, file => {
    const headerBytes = file === undefined ? undefined : readAt(file, 0, HEADER_BYTES)
    if (file === undefined || !headerBytes)
      return hasUncopiedFrames(index) ? damageOfWholeLog('missing log', index) : undefined
    const header = parseLogHeader(headerBytes)
    if (!header) return inspectWithoutHeader(file, index, path)
    const frames = scanFrames(file, header, fileSize(path))
    const areFramesMissing = index?.salts === header.salts && index.frames > frames.committed
    const frameBytes = FRAME_HEADER_BYTES + header.pageBytes
    const readableBytes = HEADER_BYTES + frames.committed * frameBytes
    if (areFramesMissing || frames.hasLostCommit)
      return { kind: 'damaged log', readableBytes, salts: header.salts }
    return frames.committed > 0 && arePagesMissing(path, header, frames)
      ? { kind: 'truncated database', readableBytes, salts: header.salts }
      : undefined
  })
}

function damageOfWholeLog(kind: LogDamage['kind'], index: LogIndex | undefined): LogDamage {
  return { kind, readableBytes: 0, salts: index?.salts ?? '' }
}

/** Checks a log with a damaged header, which SQLite treats as empty. */
function inspectWithoutHeader(
  file: number,
  index: LogIndex | undefined,
  path: string,
): LogDamage | undefined {
  if (index) return hasUncopiedFrames(index) ? damageOfWholeLog('damaged log', index) : undefined
  const pageBytes = pageBytesOf(path)
  if (pageBytes === undefined) return undefined
  const header = { pageBytes, isSwapped: false, salts: undefined, seed: undefined }
  return scanFrames(file, header, 0).hasLostCommit ? damageOfWholeLog('damaged log', undefined) : undefined
}

/** Header of a log. The salts and the seed are undefined if the header is damaged. */
interface LogHeader {
  readonly pageBytes: number
  /** True if the byte order of the checksums is not that of this machine. */
  readonly isSwapped: boolean
  /** Salts in hex. Every current frame has the same salts. */
  readonly salts: string | undefined
  /** Checksum of the header, which is the initial value for the checksum of the first frame. */
  readonly seed: Checksum | undefined
}

type Checksum = readonly [number, number]

/** @returns undefined for a damaged header */
function parseLogHeader(header: Buffer): (LogHeader & { salts: string }) | undefined {
  const magic = header.readUInt32BE(0)
  if ((magic & ~1) >>> 0 !== LOG_MAGIC) return undefined
  const isSwapped = (magic & 1) !== (endianness() === 'BE' ? 1 : 0)
  const seed = checksum(wordsOf(header.subarray(0, 24), isSwapped), 0, 6, [0, 0])
  const pageBytes = header.readUInt32BE(8)
  const isPage = pageBytes >= 512 && pageBytes <= 65_536 && (pageBytes & (pageBytes - 1)) === 0
  if (!isPage || seed[0] !== header.readUInt32BE(24) || seed[1] !== header.readUInt32BE(28)) return undefined
  return { pageBytes, isSwapped, salts: header.toString('hex', 16, 24), seed }
}

/** Summary of the frames of a log. */
interface ScannedFrames {
  /** Number of frames up to the last commit that SQLite can reach. */
  committed: number
  /** Size of the database after that commit, in pages. */
  pages: number
  /** Numbers of the committed pages that are past the end of the database file. */
  readonly pagesPastEnd: ReadonlySet<number>
  /** True if a commit that SQLite cannot reach is followed by another frame. */
  hasLostCommit: boolean
}

function scanFrames(file: number, header: LogHeader, databaseBytes: number): ScannedFrames {
  const filePages = Math.floor(databaseBytes / header.pageBytes)
  const pagesPastEnd = new Set<number>()
  const scanned = { committed: 0, pages: 0, pagesPastEnd, hasLostCommit: false }
  let isReachable = header.seed !== undefined
  let uncommitted: number[] = []
  let followsCommit = false
  let count = 0
  for (const frame of framesOf(file, header)) {
    count++
    isReachable &&= frame.isValid
    if (isReachable) {
      if (frame.page > filePages) uncommitted.push(frame.page)
      if (frame.pagesAfter === 0) continue
      for (const page of uncommitted) pagesPastEnd.add(page)
      uncommitted = []
      scanned.committed = count
      scanned.pages = frame.pagesAfter
    } else {
      if (frame.isValid && followsCommit) scanned.hasLostCommit = true
      followsCommit = frame.isValid && frame.pagesAfter > 0
    }
  }
  return scanned
}

interface LogFrame {
  /** Number of the page that the frame contains. */
  readonly page: number
  /** Size of the database in pages, if the frame is the last one of a commit; otherwise 0. */
  readonly pagesAfter: number
  /**
   * True if the frame has the salts of the log (or of the previous frame, if the header is damaged), and its
   * checksum is correct, given the checksum of the previous frame.
   */
  readonly isValid: boolean
}

/** Reads all frames, including old frames from before the last restart of the log. */
function* framesOf(file: number, { pageBytes, isSwapped, salts, seed }: LogHeader): Generator<LogFrame> {
  const frameBytes = FRAME_HEADER_BYTES + pageBytes
  const wordsPerFrame = frameBytes / 4
  const bytes = Buffer.from(new ArrayBuffer(FRAMES_PER_READ * frameBytes))
  let previous = { checksum: seed, salts }
  for (let offset = HEADER_BYTES; ; ) {
    const frames = Math.floor(readSync(file, bytes, 0, bytes.length, offset) / frameBytes)
    if (frames === 0) return
    const words = wordsOf(bytes, isSwapped)
    for (let n = 0; n < frames; n++) {
      const start = n * frameBytes
      const page = bytes.readUInt32BE(start)
      const frameSalts = bytes.toString('hex', start + 8, start + 16)
      const stored: Checksum = [bytes.readUInt32BE(start + 16), bytes.readUInt32BE(start + 20)]
      const isCurrent = previous.salts === undefined || frameSalts === previous.salts
      const isValid =
        page > 0 &&
        isCurrent &&
        previous.checksum !== undefined &&
        hasChecksum(words, n, previous.checksum, stored)
      yield { page, pagesAfter: bytes.readUInt32BE(start + 4), isValid }
      previous = { checksum: stored, salts: salts ?? frameSalts }
    }
    offset += frames * frameBytes
  }

  /** Returns true if the checksum of frame `n` with the initial value `initial` is `expected`. */
  function hasChecksum(words: Uint32Array, n: number, initial: Checksum, expected: Checksum): boolean {
    const start = n * wordsPerFrame
    const ofHeader = checksum(words, start, start + 2, initial)
    const actual = checksum(words, start + FRAME_HEADER_BYTES / 4, start + wordsPerFrame, ofHeader)
    return actual[0] === expected[0] && actual[1] === expected[1]
  }
}

/** @see https://www.sqlite.org/fileformat.html#checksum_algorithm */
function checksum(words: Uint32Array, from: number, to: number, [first, second]: Checksum): Checksum {
  let s0 = first | 0
  let s1 = second | 0
  for (let i = from; i < to; i += 2) {
    s0 = (s0 + words[i]! + s1) | 0
    s1 = (s1 + words[i + 1]! + s0) | 0
  }
  return [s0 >>> 0, s1 >>> 0]
}

function wordsOf(bytes: Buffer, isSwapped: boolean): Uint32Array {
  const isAligned = bytes.byteOffset % 4 === 0
  const aligned = isSwapped || !isAligned ? Buffer.from(new Uint8Array(bytes)) : bytes
  const words = new Uint32Array(aligned.buffer, aligned.byteOffset, aligned.byteLength / 4)
  if (isSwapped) aligned.swap32()
  return words
}

/** Index of a log, shared by the processes that write to the log. */
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
    const [copy1, copy2] = [0, INDEX_HEADER_BYTES].map(at => bytes.subarray(at, at + INDEX_HEADER_BYTES))
    // The index uses the byte order of the machine.
    const words = wordsOf(bytes, false)
    const isInitialized = words[0] === INDEX_VERSION && bytes[12] === 1
    const sum = checksum(words, 0, 10, [0, 0])
    if (!copy1!.equals(copy2!) || !isInitialized || sum[0] !== words[10] || sum[1] !== words[11])
      return undefined
    return { frames: words[4]!, copied: words[24]!, salts: bytes.toString('hex', 32, 40) }
  })
}

/** Returns true if the log contains changes that are not in the database file yet. */
function hasUncopiedFrames(index: LogIndex | undefined): index is LogIndex {
  return index !== undefined && index.frames > index.copied
}

/** Returns true if a page is neither in the database file nor in the log. */
function arePagesMissing(
  path: string,
  { pageBytes }: LogHeader,
  { pages, pagesPastEnd }: ScannedFrames,
): boolean {
  // Read the size again, because another process may have extended the file in the meantime.
  const filePages = Math.floor(fileSize(path) / pageBytes)
  const lockPage = Math.floor(LOCK_BYTE_OFFSET / pageBytes) + 1
  for (let page = filePages + 1; page <= pages; page++)
    if (!pagesPastEnd.has(page) && page !== lockPage) return true
  return false
}

/** @see https://www.sqlite.org/fileformat.html#page_size */
function pageBytesOf(path: string): number | undefined {
  const size = withFile(path, file => (file === undefined ? undefined : readAt(file, 16, 2)?.readUInt16BE(0)))
  return size === 1 ? 65_536 : size !== undefined && size >= 512 ? size : undefined
}

/** Returns the size of a file in bytes; 0 if it does not exist. */
export function fileSize(path: string): number {
  return statsOf(path)?.size ?? 0
}

/** @returns undefined if the file ends before `offset + length` */
function readAt(file: number, offset: number, length: number): Buffer | undefined {
  const bytes = Buffer.from(new ArrayBuffer(length))
  return readSync(file, bytes, 0, length, offset) === length ? bytes : undefined
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

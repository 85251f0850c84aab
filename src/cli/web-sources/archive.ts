import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir, readdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { createTarDecoder, type ParsedTarEntry } from 'modern-tar'
import { BodyTooLong, limitBytes } from '../../base/read-body.ts'
import { formatByteSize } from '../terminal/byte-size.ts'
import { SourceProblem } from './source-problem.ts'

/** Maximum size of an archive, as it is downloaded. */
export const archiveBytesMax = 500_000_000
/** Maximum size of all files of an archive. A file of a few kilobytes can claim to contain gigabytes. */
const unpackedBytesMax = 2_000_000_000
const entriesMax = 100_000
/** Maximum length of a name, and of the description of an entry. */
const nameCharsMax = 1_000
const depthMax = 64

/**
 * Unpacks a tar archive, which can be compressed with gzip, into a folder that does not exist yet. Writes only files and folders: links,
 * devices, and entries with a path outside of the folder are left out.
 *
 * @returns the folder with the content: the only folder at the top of the archive, or else the given one
 * @throws SourceProblem  the archive is damaged or too large, or the disk is full
 */
export async function unpackArchive(
  file: string,
  folder: string,
  { signal, bytesMax = unpackedBytesMax }: { signal: AbortSignal; bytesMax?: number },
): Promise<string> {
  await mkdir(folder, { mode: 0o700 })
  try {
    await unpackEntries(limitBytes(await openArchive(file), bytesMax), folder, signal)
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof SourceProblem) throw error
    if (error instanceof BodyTooLong)
      throw new SourceProblem('payload_too_large', `its files are larger than ${formatByteSize(bytesMax)}`)
    if (error instanceof Error && 'syscall' in error)
      throw new SourceProblem('fetch_failed', `it could not be unpacked: ${error.message}`)
    throw new SourceProblem('extraction_failed', 'it is not a tar archive, or it is damaged')
  }
  const entries = await readdir(folder)
  const only = join(folder, entries[0] ?? '')
  return entries.length === 1 && (await stat(only)).isDirectory() ? only : folder
}

async function openArchive(file: string): Promise<AsyncIterable<Uint8Array>> {
  const [start] = await createReadStream(file, { end: 1 }).toArray()
  const source = createReadStream(file)
  const isGzip = start?.[0] === 0x1f && start[1] === 0x8b
  if (!isGzip) return source
  const gunzip = createGunzip()
  source.on('error', error => gunzip.destroy(error))
  gunzip.on('close', () => source.destroy())
  return source.pipe(gunzip)
}

async function unpackEntries(
  bytes: AsyncIterable<Uint8Array>,
  folder: string,
  signal: AbortSignal,
): Promise<void> {
  let count = 0
  const entries = Readable.toWeb(Readable.from(bytes)).pipeThrough(createTarDecoder({ strict: true }))
  for await (const { header, body } of entries as AsyncIterable<ParsedTarEntry>) {
    signal.throwIfAborted()
    if (++count > entriesMax)
      throw new SourceProblem('payload_too_large', `it has more than ${entriesMax} entries`)
    const path = safePath(header.name)
    if (header.type !== 'file' || path === undefined) {
      await body.cancel()
      continue
    }
    const target = join(folder, path)
    await mkdir(dirname(target), { recursive: true })
    await pipeline(Readable.fromWeb(body as never), createWriteStream(target, { flags: 'w', mode: 0o600 }), {
      signal,
    })
  }
}

/**
 * Returns the path of an entry inside the archive; undefined if it is absolute, leaves the folder, or is not valid on
 * every system.
 */
export function safePath(name: string): string | undefined {
  const segments = name.split('/').filter(segment => segment !== '' && segment !== '.')
  const isInside =
    !name.startsWith('/') &&
    segments.length > 0 &&
    segments.length <= depthMax &&
    name.length <= nameCharsMax &&
    segments.every(segment => segment !== '..' && !/[\\\0-\x1f:]/.test(segment))
  return isInside ? segments.join('/') : undefined
}

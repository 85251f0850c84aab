import { join } from 'node:path'
import { FairLimiter } from '../base/fair-limiter.ts'
import { packageRoot } from '../base/package.ts'
import { type OperationHost, ThreadOutOfMemory, ThreadTimeout, threadHost } from '../base/threads.ts'
import type { WbError } from '../contract/errors.ts'
import { unreadable } from './file-text.ts'
import type { NativeText } from './native.ts'
import type { ExtractedFile, ReadOptions } from './read-file.ts'
import type { FileOperations } from './worker.ts'

/** A file on disk, with the name and media type from the request. */
export interface SourceFile {
  readonly name: string
  readonly type: string
  readonly path: string
}

/** The caller on whose behalf a file is read. Callers take turns. */
interface ReadingCaller {
  readonly workspaceId: string
  readonly member: string
  readonly signal: AbortSignal
}

/** Number of files that are read at the same time, each on its own thread. */
const threadsMax = 2
/** Number of files more that can be read for workspaces of which no file is being read. */
const extraThreadsMax = 1
const heapMegabytes = 768
const idleMs = 20_000
const callMs = 120_000

/**
 * Reads files of all formats on separate threads. A file that needs too much time or memory ends its thread, and fails
 * alone.
 */
export class FileReader {
  readonly #limiter = new FairLimiter(threadsMax, extraThreadsMax)
  readonly #idle: OperationHost<FileOperations>[]

  constructor(entry = join(packageRoot(), 'dist', 'src', 'formats', 'worker.js')) {
    this.#idle = Array.from({ length: threadsMax + extraThreadsMax }, () =>
      threadHost<FileOperations>(entry, undefined, { heapMegabytes, idleMs, callMs, isSilent: true }),
    )
  }

  /**
   * Reads the text of a file by its content, with its structure.
   *
   * @throws unsupported_file_type  the format is unknown
   * @throws extraction_failed      the file is damaged, encrypted, too large, or takes too long
   */
  read({ path, name }: SourceFile, options: ReadOptions, caller: ReadingCaller): Promise<ExtractedFile> {
    return this.#run(caller, host => host.run('read', { path, name, ...options }))
  }

  /**
   * Reads the text of a file as the contract's parser `native` does.
   *
   * @throws unsupported_file_type  the media type and the extension are unknown
   * @throws extraction_failed      the file is damaged, encrypted, too large, or takes too long
   */
  readNatively({ path, name, type }: SourceFile, caller: ReadingCaller): Promise<NativeText> {
    return this.#run(caller, host => host.run('readNatively', { path, name, type }))
  }

  async close(): Promise<void> {
    await Promise.all(this.#idle.map(host => host.close()))
  }

  #run<T>(caller: ReadingCaller, use: (host: OperationHost<FileOperations>) => Promise<T>): Promise<T> {
    return this.#limiter.run(caller, async () => {
      const host = this.#idle.pop()!
      try {
        return await use(host)
      } catch (error) {
        throw describeLimitError(error) ?? error
      } finally {
        this.#idle.push(host)
      }
    })
  }
}

function describeLimitError(error: unknown): WbError | undefined {
  const hint = 'Split the file, or convert it to another format.'
  if (error instanceof ThreadTimeout) return unreadable(`takes longer than ${callMs / 1_000} s to read`, hint)
  if (error instanceof ThreadOutOfMemory)
    return unreadable(`needs more than ${heapMegabytes} MB of memory to read`, hint)
  return undefined
}

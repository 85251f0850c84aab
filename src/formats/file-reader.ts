import { join } from 'node:path'
import type { QueueTurn } from '../base/fair-limiter.ts'
import { FairThreads } from '../base/fair-threads.ts'
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

const threadCounts = { threads: 2, extraThreads: 1 }
const heapMegabytes = 768
const idleMs = 20_000
const callMs = 120_000

/**
 * Reads files of all formats on separate threads. A file that needs too much time or memory ends its thread, and fails
 * alone.
 */
export class FileReader {
  readonly #threads: FairThreads<FileOperations>

  constructor(entry = join(packageRoot(), 'dist', 'src', 'formats', 'worker.js')) {
    const limits = { heapMegabytes, idleMs, callMs, isSilent: true }
    this.#threads = new FairThreads(threadCounts, () => threadHost(entry, undefined, limits))
  }

  /**
   * Reads the text of a file by its content, with its structure.
   *
   * @throws unsupported_file_type  the format is unknown
   * @throws extraction_failed      the file is damaged, encrypted, too large, or takes too long
   */
  read({ path, name }: SourceFile, options: ReadOptions, turn: QueueTurn): Promise<ExtractedFile> {
    return this.#run(turn, host => host.run('read', { path, name, ...options }))
  }

  /**
   * Reads the text of a file as the contract's parser `native` does.
   *
   * @throws unsupported_file_type  the media type and the extension are unknown
   * @throws extraction_failed      the file is damaged, encrypted, too large, or takes too long
   */
  readNatively({ path, name, type }: SourceFile, turn: QueueTurn): Promise<NativeText> {
    return this.#run(turn, host => host.run('readNatively', { path, name, type }))
  }

  close(): Promise<void> {
    return this.#threads.close()
  }

  async #run<T>(turn: QueueTurn, call: (host: OperationHost<FileOperations>) => Promise<T>): Promise<T> {
    return this.#threads.run(turn, call).catch(error => {
      throw describeLimitError(error) ?? error
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

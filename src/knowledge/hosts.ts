import { join } from 'node:path'
import { packageRoot } from '../base/package.ts'
import { inlineHost, type OperationHost, threadHost } from '../base/threads.ts'
import type { ContentStore } from '../storage/content.ts'
import { createPassageOperations, type PassageOperations } from './passage-operations.ts'

/** Separate hosts for text operations, so that a long text does not delay queries. */
export interface KnowledgeHosts {
  /** Runs operations that a caller waits for, such as embedding a query. */
  readonly query: OperationHost<PassageOperations>
  /** Chunks and embeds ingested texts. */
  readonly index: OperationHost<PassageOperations>
  /** Fits vector spaces, which takes seconds. */
  readonly fit: OperationHost<PassageOperations>
  close(): Promise<void>
}

export interface HostsParts {
  readonly path: string
  /**
   * True to run each host on a separate thread, which opens the store at `path`; false to run inline, with `content`.
   */
  readonly threads: boolean
  readonly content: ContentStore
}

export function openKnowledgeHosts(parts: HostsParts): KnowledgeHosts {
  const entry = join(packageRoot(), 'dist', 'src', 'knowledge', 'worker.js')
  const open = (): OperationHost<PassageOperations> =>
    parts.threads
      ? threadHost<PassageOperations>(entry, { path: parts.path })
      : inlineHost(createPassageOperations(Promise.resolve(parts.content)))
  const [query, index, fit] = [open(), open(), open()]
  return {
    query,
    index,
    fit,
    close: async () => {
      await Promise.all([query.close(), index.close(), fit.close()])
    },
  }
}

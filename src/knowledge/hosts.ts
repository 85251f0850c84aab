import { join } from 'node:path'
import { packageRoot } from '../base/package.ts'
import { inlineHost, type OperationHost, type ThreadLimits, threadHost } from '../base/threads.ts'
import type { ContentStore } from '../storage/content.ts'
import type { StoreLocation } from '../storage/storage-driver.ts'
import { IndexThreads } from './index-threads.ts'
import { createPassageOperations, type PassageOperations } from './passage-operations.ts'

/** Separate hosts for text operations, so that a long text does not delay queries. */
export interface KnowledgeHosts {
  /** Runs operations that a caller waits for, such as embedding a query. */
  readonly query: OperationHost<PassageOperations>
  readonly index: IndexThreads
  /** Fits vector spaces, which takes seconds. */
  readonly fit: OperationHost<PassageOperations>
  close(): Promise<void>
}

export interface HostsParts {
  /** Location at which each host opens the store on a separate thread; undefined to run inline, with `content`. */
  readonly threadLocation: StoreLocation | undefined
  readonly content: ContentStore
}

export function openKnowledgeHosts({ threadLocation, content }: HostsParts): KnowledgeHosts {
  const entry = join(packageRoot(), 'dist', 'src', 'knowledge', 'worker.js')
  const open = (limits?: ThreadLimits): OperationHost<PassageOperations> =>
    threadLocation
      ? threadHost<PassageOperations>(entry, threadLocation, limits)
      : inlineHost(createPassageOperations(Promise.resolve(content)))
  const [query, index, fit] = [open(), new IndexThreads(open), open()]
  return {
    query,
    index,
    fit,
    close: async () => {
      await Promise.all([query.close(), index.close(), fit.close()])
    },
  }
}

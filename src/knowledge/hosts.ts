import { join } from 'node:path'
import { packageRoot } from '../base/package.ts'
import { inlineHost, type OperationHost, threadHost } from '../base/threads.ts'
import type { ContentStore } from '../storage/content.ts'
import { type PassageOps, passageOps } from './passages.ts'

/** Hosts for work on text, by urgency, so that a long text does not delay queries. */
export interface Hosts {
  /** Queries, which a caller waits for. */
  readonly query: OperationHost<PassageOps>
  /** Chunking and embedding of ingested texts. */
  readonly index: OperationHost<PassageOps>
  /** Fits, which take seconds. */
  readonly fit: OperationHost<PassageOps>
  close(): Promise<void>
}

export interface HostsParts {
  readonly path: string
  /** True to run each host on a thread that opens the store at `path`; false to run inline, on `content`. */
  readonly threads: boolean
  readonly content: ContentStore
}

export function openHosts(parts: HostsParts): Hosts {
  const entry = join(packageRoot(), 'dist', 'src', 'knowledge', 'worker.js')
  const open = (): OperationHost<PassageOps> =>
    parts.threads
      ? threadHost<PassageOps>(entry, { path: parts.path })
      : inlineHost(passageOps(Promise.resolve(parts.content)))
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

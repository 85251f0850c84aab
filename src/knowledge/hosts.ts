import { join } from 'node:path'
import { packageRoot } from '../base/package.ts'
import { type Host, inline, threaded } from '../base/threads.ts'
import type { ContentStore } from '../storage/content.ts'
import { type PassageOps, passageOps } from './passages.ts'

/** Where the work on text is done, by who waits for it, so that a long text holds up no query. */
export interface Hosts {
  /** A caller waits. */
  readonly query: Host<PassageOps>
  /** Chunking and embedding of what is ingested. */
  readonly index: Host<PassageOps>
  /** A fit, which takes seconds. */
  readonly fit: Host<PassageOps>
  close(): Promise<void>
}

export interface HostsParts {
  readonly path: string
  /** A thread each, which opens the store at `path` for itself; else on the spot, over `content`. */
  readonly threads: boolean
  readonly content: ContentStore
}

export function openHosts(parts: HostsParts): Hosts {
  const entry = join(packageRoot(), 'dist', 'src', 'knowledge', 'worker.js')
  const open = (): Host<PassageOps> =>
    parts.threads
      ? threaded<PassageOps>(entry, { path: parts.path })
      : inline(passageOps(Promise.resolve(parts.content)))
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

import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Cursors, Pager } from '../storage/cursor.ts'
import type { RowStore } from '../storage/rows.ts'
import { type BaseContext, KnowledgeBases, type KnowledgeBasesParts } from './bases.ts'
import type { TellFailure } from './batch.ts'
import { Documents } from './documents.ts'
import { KnowledgeFilters } from './filters.ts'
import { type FitProgress, Fitting } from './fitting.ts'
import { type HostsParts, openHosts } from './hosts.ts'
import { IngestJob } from './ingest/job.ts'
import { Ingestion } from './ingest.ts'
import { Docling, type DoclingSettings } from './parse/docling.ts'
import { Records } from './records.ts'
import {
  chunkerHandlers,
  documentHandlers,
  filterHandlers,
  kbHandlers,
  type MeasureSearch,
  recordHandlers,
} from './routes.ts'
import { Searcher } from './search.ts'
import { ManySearcher } from './search-many.ts'
import { Space, type SpaceParts } from './space.ts'
import { Uploads } from './uploads.ts'

type BasesParts = Pick<KnowledgeBasesParts, 'stores' | 'chunking' | 'embedding'>

export interface KnowledgeParts extends BasesParts, HostsParts, Pick<SpaceParts, 'openEmbedder'> {
  readonly rows: RowStore
  readonly pager: Pager
  readonly cursors: Cursors
  readonly clock: Clock
  readonly log: Log
  readonly docling: DoclingSettings
  /** Guarded; follows no redirect. */
  readonly fetch: typeof fetch
  /** Tells this process from others that fit spaces. */
  readonly owner: string
  /** Spaces are fitted while documents come in; else when somebody asks for it. */
  readonly fitsOnItsOwn: boolean
  /** Told when there is a job to do. */
  readonly enqueued: () => void
  readonly tellFailure: TellFailure
  readonly measureSearch: MeasureSearch
}

/** Knowledge bases and their content, the work on it that goes on behind, and their routes by topic. */
export function openKnowledge(parts: KnowledgeParts) {
  const hosts = openHosts(parts)
  const fitting = new Fitting({ ...parts, store: parts.content, host: hosts.fit })
  const bases = new KnowledgeBases({ ...parts, fitting: key => fitting.isRunning(key) })
  const space = new Space({ ...parts, query: hosts.query })
  const filters = new KnowledgeFilters({ ...parts, bases })
  const documents = new Documents({ ...parts, bases, space })
  const ingested = ({ fitted, key }: BaseContext) => {
    if (parts.fitsOnItsOwn && fitted) fitting.grew(key)
  }
  const ingestParts = { ...parts, bases, space, index: hosts.index, ingested }
  const ingestion = new Ingestion(ingestParts)
  const uploads = new Uploads({ docling: new Docling(parts.docling, parts), index: hosts.index })
  const searcher = new Searcher(space, filters)
  const many = new ManySearcher({ bases, space, filters })
  return {
    ingestJob: new IngestJob(ingestParts),
    bases,
    documents,
    many,
    uploads,
    /** How many fits are due. */
    due: async () => (await fitting.due()).length,
    /** Take up the fits that an earlier process left. */
    resume: () => fitting.resume(),
    /** Fit all that is due, and wait for it. */
    settle: (signal: AbortSignal, onProgress: (step: FitProgress) => void) =>
      fitting.settle(signal, onProgress),
    async close() {
      await fitting.close()
      await hosts.close()
    },
    handlers: {
      chunkers: chunkerHandlers(),
      kb: kbHandlers(bases, searcher, many, parts.measureSearch),
      filters: filterHandlers(filters),
      documents: documentHandlers({ bases, documents, ingestion, uploads }, parts.tellFailure),
      records: recordHandlers(new Records({ ...parts, bases, space })),
    },
  }
}

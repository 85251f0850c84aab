import { join } from 'node:path'
import { CallerQueue } from '../access/caller-queue.ts'
import type { AccessOf } from '../access/row-access.ts'
import type { Clock } from '../base/clock.ts'
import { FairByteLimiter } from '../base/fair-byte-limiter.ts'
import type { Log } from '../base/log.ts'
import { packageRoot } from '../base/package.ts'
import { FileReader } from '../formats/file-reader.ts'
import { withKnownVectors } from '../sentence-model/known-vectors.ts'
import type { SentenceModel } from '../sentence-model/sentence-model.ts'
import type { CollectionKey } from '../storage/content.ts'
import type { Cursors, Pager } from '../storage/cursor.ts'
import type { RowStore } from '../storage/rows.ts'
import { tables } from '../storage/tables.ts'
import type { Visibility } from '../storage/visibility.ts'
import { Exporter } from './archive/exporter.ts'
import { Importer } from './archive/importer.ts'
import { Compactor } from './compactor.ts'
import { DocumentChanges } from './document-changes.ts'
import { Documents } from './documents.ts'
import { type FitProgress, Fitting, type RefitAfter } from './fitting.ts'
import { FolderDescriptions } from './folder-descriptions.ts'
import { type HostsParts, openKnowledgeHosts } from './hosts.ts'
import { IngestJob } from './ingest/ingest-job.ts'
import { IngestQueue, type IngestQueueLimits } from './ingest/ingest-queue.ts'
import { RecentVectors } from './ingest/recent-vectors.ts'
import type { FailureReporter } from './ingest-lines.ts'
import { Ingestion } from './ingestion.ts'
import { Insights } from './insights/insights.ts'
import { QueryLog, type QueryLogParts } from './insights/query-log.ts'
import {
  type BaseContext,
  collectionKeyOf,
  KnowledgeBases,
  type KnowledgeBasesParts,
} from './knowledge-bases.ts'
import { KnowledgeFilters } from './knowledge-filters.ts'
import { Docling, type DoclingSettings } from './parse/docling.ts'
import { PassageVisibility } from './passage-visibility.ts'
import { Publication } from './publication.ts'
import { RecordRewriter } from './record-rewriter.ts'
import { Records } from './records.ts'
import { ReindexJob } from './reindex/reindex-job.ts'
import { ReindexJobs } from './reindex/reindex-jobs.ts'
import {
  chunkerHandlers,
  chunkPreviewHandlers,
  documentHandlers,
  filterHandlers,
  folderHandlers,
  kbHandlers,
  type MeasureSearch,
  recordHandlers,
  trashHandlers,
} from './routes.ts'
import { ManySearcher } from './search/many-searcher.ts'
import { RepeatedDocuments } from './search/repeated-documents.ts'
import { ResultShaper } from './search/result-shaper.ts'
import { Searcher } from './search/searcher.ts'
import { SentenceSearch } from './search/sentence-search.ts'
import { ServiceReranking, type ServiceRerankingParts } from './search/service-reranking.ts'
import { WhyNotSearch } from './search/why-not.ts'
import { SentenceIndex } from './sentence-index.ts'
import { Trash, type TrashParts } from './trash/trash.ts'
import { Uploads } from './uploads.ts'
import { VectorSpace, type VectorSpaceParts } from './vector-space.ts'

type BasesParts = Pick<KnowledgeBasesParts, 'stores' | 'chunking' | 'embedding'>

export interface KnowledgeParts extends BasesParts, HostsParts, Pick<VectorSpaceParts, 'openEmbedder'> {
  readonly reranking: ServiceRerankingParts['services']
  readonly queryLog: QueryLogParts['queryLog']
  readonly trash: TrashParts['trash']
  readonly openReranker: ServiceRerankingParts['openReranker']
  readonly rows: RowStore
  readonly pager: Pager
  readonly cursors: Cursors
  readonly clock: Clock
  readonly log: Log
  readonly docling: DoclingSettings
  readonly accessOf: AccessOf
  /** Returns the rows of a collection that the built-in embedder may learn from. */
  readonly learnableRows: (key: CollectionKey) => Promise<Visibility>
  /** Rejects requests to disallowed addresses. Does not follow redirects. */
  readonly fetch: typeof fetch
  /** Identifies this process among all processes that fit vector spaces. */
  readonly owner: string
  /** True to fit spaces and to compute sentence vectors while documents are ingested; false to do so on request only. */
  readonly indexesAutomatically: boolean
  /** The built-in sentence model; undefined if it is turned off. */
  readonly sentenceModel: Pick<SentenceModel, 'embed'> | undefined
  readonly ingestQueue: IngestQueueLimits & {
    /** Maximum size in bytes of the texts that requests process at the same time; jobs can process as much. */
    readonly inProgressBytes: number
  }
  /** Called after a job was created. */
  readonly onEnqueued: () => void
  /** Called after a text was rejected, because too much text is waiting for jobs. */
  readonly onEnqueueRejected: () => void
  readonly reportFailure: FailureReporter
  readonly measureSearch: MeasureSearch
}

/**
 * Maximum number of searches that run at the same time. The threads of the store serve them in the order of arrival, so the next
 * caller waits for at most this many. As many vector searches fit into one batch of the embedded store.
 */
const searchesMax = 8
/** Number of searches more that can run for workspaces without a running search. */
const extraSearchesMax = 2
/** Maximum number of searches at the same time that explain why a document is missing. Other searches do not wait for them. */
const whyNotMax = 2
/** Number of them more that can run for workspaces without a running one. */
const extraWhyNotMax = 1

/** Opens the knowledge module: knowledge bases, their content and background work, and the route handlers. */
export function openKnowledge(parts: KnowledgeParts) {
  const hosts = openKnowledgeHosts(parts)
  const fitting = new Fitting({ ...parts, store: parts.content, host: hosts.fit })
  const refitAfter: RefitAfter = (keys, change) => fitting.refitAfter(keys, change)
  const { sentenceModel: model } = parts
  const isEnabled = async ({ workspaceId, name }: CollectionKey) => {
    const list = { index: 'byCollection', prefix: [workspaceId, name], limit: 1 }
    const [base] = await parts.rows.list(tables.knowledgeBases, list)
    return base !== undefined && base.row.semantic !== false
  }
  const sentenceIndex =
    model &&
    new SentenceIndex({
      ...parts,
      store: parts.content,
      model: withKnownVectors(model, join(packageRoot(), 'dist', 'sample-vectors.bin')),
      isEnabled,
    })
  const sentences = model && SentenceSearch.open({ ...parts, model })
  const queryLog = new QueryLog(parts)
  const bases = new KnowledgeBases({
    ...parts,
    clearQueryLog: async key => {
      await queryLog.clear(key)
    },
    isFitting: key => fitting.isRunning(key),
    refitAfter,
    sentenceProgress: async key => sentenceIndex?.progress(key),
    onSemanticEnabled: key => {
      if (parts.indexesAutomatically) sentenceIndex?.onGrowth(key)
    },
  })
  const space = new VectorSpace({ ...parts, query: hosts.query })
  const filters = new KnowledgeFilters({ ...parts, bases })
  const rewriter = new RecordRewriter({ bases, space })
  const changes = new DocumentChanges()
  const onRecordsChanged = async ({ isFittedByRuntime, key }: BaseContext) => {
    if (!parts.indexesAutomatically) return
    sentenceIndex?.onGrowth(key)
    if (isFittedByRuntime) await fitting.onChange(key)
  }
  const documents = new Documents({
    ...parts,
    bases,
    rewriter,
    changes,
    refitAfter,
    isTrashEnabled: parts.trash.retentionHours > 0,
    onRecordsChanged,
  })
  const publication = new Publication({ ...parts, bases, rewriter, changes })
  const whenWritable = ({ key }: BaseContext) => fitting.whenWritable(key)
  const recent = new RecentVectors(parts.clock)
  const ingestParts = { ...parts, bases, space, recent, index: hosts.index, whenWritable, onRecordsChanged }
  const { inProgressBytes } = parts.ingestQueue
  const ingestion = new Ingestion({
    ...ingestParts,
    queue: new IngestQueue({ ...parts, limits: parts.ingestQueue, onFull: parts.onEnqueueRejected }),
    inProgress: new FairByteLimiter(inProgressBytes),
  })
  const trash = new Trash({ ...parts, bases, space, whenWritable, onRecordsChanged })
  const files = new FileReader()
  const docling = new Docling(parts.docling, parts)
  const uploads = new Uploads({ ...parts, docling, files, index: hosts.index })
  const queue = new CallerQueue(searchesMax, extraSearchesMax)
  const reranking = new ServiceReranking({ ...parts, services: parts.reranking })
  const shaper = new ResultShaper(parts)
  const searcherParts = { space, filters, queue, sentences, reranking, shaper }
  const repeated = new RepeatedDocuments(parts.rows)
  const searcher = new Searcher(searcherParts)
  const whyNotSearcher = new Searcher({ ...searcherParts, queue: new CallerQueue(whyNotMax, extraWhyNotMax) })
  const unloggedSearcher = new ManySearcher({ ...searcherParts, bases, repeated })
  const manySearcher: Pick<ManySearcher, 'search'> = {
    search: (workspaceId, body, caller) =>
      queryLog.observe(body, caller, () => unloggedSearcher.search(workspaceId, body, caller)),
  }
  return {
    ingestJob: new IngestJob({ ...ingestParts, jobsInProgress: new FairByteLimiter(inProgressBytes) }),
    reindexJob: new ReindexJob(ingestParts),
    bases,
    documents,
    /** Makes rows visible to everyone, except rows whose visibility was set explicitly. */
    publish: (workspaceId: string, signal: AbortSignal) => publication.publish(workspaceId, signal),
    /** Runs a change of the rows that everyone in a workspace may see, and fits its spaces again. */
    async refitAfter<T>(workspaceId: string, change: () => Promise<T>): Promise<T> {
      const keys: CollectionKey[] = []
      const list = { index: 'byWorkspace', prefix: [workspaceId] }
      for await (const slice of parts.pager.slices(tables.knowledgeBases, list))
        keys.push(...slice.map(({ row }) => collectionKeyOf(row)))
      return fitting.refitAfter(keys, change)
    },
    manySearcher,
    passages: new PassageVisibility({ ...parts, bases }),
    uploads,
    /** Returns the number of collections with work on vectors that is due. */
    async countDue() {
      const [fits, embeddings] = await Promise.all([fitting.listDue(), sentenceIndex?.listDue() ?? []])
      return fits.length + embeddings.length
    },
    /** Starts the work on vectors that an earlier process did not finish, and the deletion of old records. */
    async resume() {
      queryLog.start()
      trash.start()
      fitting.resume()
      await sentenceIndex?.resume()
    },
    /** Completes all vectors, and waits for them. */
    async settle(signal: AbortSignal, onProgress: (step: FitProgress) => void) {
      await fitting.settle(signal, onProgress)
      await sentenceIndex?.settle(signal, onProgress)
    },
    async close() {
      await queryLog.close()
      await trash.close()
      await sentenceIndex?.close()
      await files.close()
      await fitting.close()
      await hosts.close()
    },
    handlers: {
      chunkers: chunkerHandlers(),
      chunkPreview: chunkPreviewHandlers({ ...parts, uploads }),
      kb: kbHandlers({
        bases,
        compactor: new Compactor(bases, parts.reportFailure),
        searcher,
        manySearcher,
        whyNot: new WhyNotSearch({ bases, documents, searcher: whyNotSearcher }),
        queryLog,
        insights: new Insights({ ...parts, bases, queryLog }),
        measure: parts.measureSearch,
        reindexing: new ReindexJobs({ ...parts, bases }),
        exporter: new Exporter({ ...parts, bases }),
        importer: new Importer({ ...ingestParts }),
      }),
      filters: filterHandlers(filters),
      folders: folderHandlers(new FolderDescriptions({ ...parts, bases })),
      documents: documentHandlers({ bases, documents, ingestion, uploads }, parts.reportFailure),
      trash: trashHandlers(trash),
      records: recordHandlers(
        new Records({ ...parts, bases, space, whenWritable, onRecordsChanged, refitAfter }),
      ),
    },
  }
}

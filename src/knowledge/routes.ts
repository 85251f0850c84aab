import type { Caller, Handlers } from '../access/caller.ts'
import { requireWorkspace } from '../access/require-workspace.ts'
import type { chunkPreview } from '../contract/chunk-preview.ts'
import type { documents, Ingest } from '../contract/documents.ts'
import type { filters } from '../contract/filters.ts'
import type { folders } from '../contract/folders.ts'
import type { kb } from '../contract/knowledge.ts'
import type { records } from '../contract/records.ts'
import type { chunkerRoutes } from '../contract/services.ts'
import type { trash } from '../contract/trash.ts'
import type { RowStore } from '../storage/rows.ts'
import type { Exporter } from './archive/exporter.ts'
import type { Importer } from './archive/importer.ts'
import { chunkerInfos as registry } from './chunk/index.ts'
import type { Compactor } from './compactor.ts'
import type { BaseKey } from './document-key.ts'
import type { Documents } from './documents.ts'
import type { FolderDescriptions } from './folder-descriptions.ts'
import { type FailureReporter, ingestLines, toIngestResponse } from './ingest-lines.ts'
import type { Ingestion } from './ingestion.ts'
import type { Insights } from './insights/insights.ts'
import type { QueryLog } from './insights/query-log.ts'
import type { KnowledgeBases } from './knowledge-bases.ts'
import type { KnowledgeFilters } from './knowledge-filters.ts'
import type { Records } from './records.ts'
import type { ReindexJobs } from './reindex/reindex-jobs.ts'
import type { ManySearcher } from './search/many-searcher.ts'
import { SearchTimes } from './search/search-times.ts'
import type { Searcher } from './search/searcher.ts'
import type { WhyNotSearch } from './search/why-not.ts'
import type { Trash } from './trash/trash.ts'
import type { Uploads } from './uploads.ts'

export function chunkerHandlers(): Handlers<typeof chunkerRoutes> {
  return { list: () => ({ status: 200, body: { items: [...registry] } }) }
}

export function chunkPreviewHandlers(parts: {
  readonly rows: RowStore
  readonly uploads: Pick<Uploads, 'previewChunks'>
}): Handlers<typeof chunkPreview> {
  return {
    create: async ({ params: { workspaceId }, body }, caller) => {
      await requireWorkspace(parts.rows, workspaceId)
      return body.receive(async upload => ({
        status: 200,
        body: await parts.uploads.previewChunks(upload, workspaceId, caller),
        ignored: upload.ignored,
      }))
    },
  }
}

/** Runs a search and reports its mode, outcome and duration. */
export type MeasureSearch = <T extends { readonly mode: string }>(search: () => Promise<T>) => Promise<T>

interface KbParts {
  readonly bases: KnowledgeBases
  readonly compactor: Compactor
  readonly searcher: Searcher
  readonly manySearcher: Pick<ManySearcher, 'search'>
  readonly whyNot: WhyNotSearch
  readonly queryLog: QueryLog
  readonly insights: Insights
  readonly measure: MeasureSearch
  readonly reindexing: ReindexJobs
  readonly exporter: Exporter
  readonly importer: Importer
}

export function kbHandlers({
  bases,
  compactor,
  searcher,
  manySearcher,
  whyNot,
  queryLog,
  insights,
  measure,
  reindexing,
  exporter,
  importer,
}: KbParts): Handlers<typeof kb> {
  const times = new SearchTimes()
  return {
    list: async ({ params, query }, caller) => ({
      status: 200,
      body: await bases.listWithFigures(params.workspaceId, query, caller),
    }),
    create: async ({ params, body }, caller) => {
      const base = await bases.create(params.workspaceId, body, caller)
      const audit = { knowledgeBaseId: base.knowledgeBaseId, label: base.name }
      return { status: 201, body: { ...base, astraQueries: [] }, audit }
    },
    show: async ({ params }, caller) => ({ status: 200, body: await bases.show(params, caller) }),
    stats: async ({ params }, caller) => ({
      status: 200,
      body: { ...(await bases.stats(params, caller)), searches: times.summarize(params) },
    }),
    compact: async ({ params }, caller) =>
      caller.follows
        ? { status: 200, events: await compactor.stream(params, caller) }
        : { status: 200, body: await compactor.run(params, caller) },
    reindex: async ({ params, body }, caller) => {
      const { workspaceId, knowledgeBaseId } = params
      const job = await reindexing.start(params, body, caller)
      const { name } = await bases.get(workspaceId, knowledgeBaseId)
      return {
        status: 202,
        body: { job },
        headers: { location: `/api/v1/workspaces/${workspaceId}/jobs/${job.jobId}` },
        audit: { label: name, jobId: job.jobId },
      }
    },
    reindexing: async ({ params }, caller) => ({
      status: 200,
      body: await reindexing.show(params, caller),
    }),
    update: async ({ params, body }, caller) => ({
      status: 200,
      body: await bases.update(params.workspaceId, params.knowledgeBaseId, body, caller),
    }),
    rename: async ({ params, body }, caller) => ({
      status: 200,
      body: await bases.rename(params, body.name, caller),
    }),
    delete: async ({ params }, caller) => {
      const { name } = await bases.delete(params.workspaceId, params.knowledgeBaseId, caller)
      return { status: 204, body: undefined, audit: { label: name } }
    },
    search: async ({ params, body }, caller) => {
      const openContext = () => bases.openContext(params.workspaceId, params.knowledgeBaseId)
      const search = () => bases.withDeletionCheck(params, () => searcher.search(openContext, body, caller))
      const logged = () => queryLog.observe(body, caller, search)
      const { hits, ignored } = await measure(() => times.measure(params, logged))
      return { status: 200, body: hits, ignored }
    },
    whyNot: async ({ params, body: { documentId, ...body } }, caller) => ({
      status: 200,
      body: await whyNot.answer({ ...params, documentId }, { ...body, includeEmbeddings: false }, caller),
    }),
    searchMany: async ({ params, body }, caller) => {
      const { hits, ignored } = await measure(() => manySearcher.search(params.workspaceId, body, caller))
      return { status: 200, body: hits, ignored }
    },
    export: async ({ params, query: { cursor, all } }, caller) => ({
      status: 200,
      body: await exporter.page(params, { cursor, all: all === 'true' }, caller),
    }),
    beginImport: async ({ params, body }, caller) => {
      const { base, nextLine, isNew } = await importer.begin(params.workspaceId, body, caller)
      const audit = { knowledgeBaseId: base.knowledgeBaseId, label: base.name, reason: 'import' }
      const reply = { body: { knowledgeBase: base, nextLine }, audit }
      return isNew ? { status: 201, ...reply } : { status: 200, ...reply }
    },
    importLines: async ({ params, body }, caller) => ({
      status: 200,
      body: await importer.add(params, body, caller),
    }),
    insights: async ({ params, query }, caller) => ({
      status: 200,
      body: await insights.summarize(params, query, caller),
    }),
    clearInsights: async ({ params }) => {
      const { name } = await bases.get(params.workspaceId, params.knowledgeBaseId)
      const count = await queryLog.clear(params)
      return { status: 204, body: undefined, audit: { label: name, count } }
    },
    adoptable: async ({ params }) => ({
      status: 200,
      body: { items: await bases.listAdoptableCollections(params.workspaceId) },
    }),
  }
}

export function filterHandlers(filtersModule: KnowledgeFilters): Handlers<typeof filters> {
  return {
    list: async ({ params, query }) => ({ status: 200, body: await filtersModule.list(params, query) }),
    create: async ({ params, body }) => ({ status: 201, body: await filtersModule.create(params, body) }),
    show: async ({ params }) => ({ status: 200, body: await filtersModule.get(params) }),
    update: async ({ params, body }) => ({ status: 200, body: await filtersModule.update(params, body) }),
    delete: async ({ params }) => {
      await filtersModule.delete(params)
      return { status: 204, body: undefined }
    },
  }
}

export function folderHandlers(descriptions: FolderDescriptions): Handlers<typeof folders> {
  return {
    list: async ({ params }, caller) => ({
      status: 200,
      body: { items: [...(await descriptions.list(params, caller))] },
    }),
    update: async ({ params, body }, caller) => ({
      status: 200,
      body: { items: [...(await descriptions.update(params, body, caller))] },
    }),
  }
}

export function documentHandlers(
  modules: { bases: KnowledgeBases; documents: Documents; ingestion: Ingestion; uploads: Uploads },
  reportFailure: FailureReporter,
): Handlers<typeof documents> {
  const documentsModule = modules.documents
  const ingestOne = (
    { workspaceId, knowledgeBaseId }: BaseKey,
    query: { async?: string },
    body: Ingest,
    caller: Caller,
  ) =>
    query.async === 'true'
      ? modules.ingestion.enqueue(workspaceId, knowledgeBaseId, body, caller)
      : modules.ingestion.ingest(workspaceId, knowledgeBaseId, body, caller)
  return {
    list: async ({ params, query }, caller) => ({
      status: 200,
      body: await documentsModule.list(params, query, caller),
    }),
    create: async ({ params, body }, caller) => ({
      status: 201,
      body: await documentsModule.create(params, body, caller),
    }),
    show: async ({ params }, caller) => ({ status: 200, body: await documentsModule.get(params, caller) }),
    explain: async ({ params }, caller) => ({
      status: 200,
      body: await documentsModule.explain(params, caller),
    }),
    update: async ({ params, body }, caller) => ({
      status: 200,
      body: await documentsModule.update(params, body, caller),
    }),
    delete: async ({ params, query }, caller) => {
      await documentsModule.delete(params, caller, { permanently: query.permanently === 'true' })
      return { status: 204, body: undefined, audit: { count: 1 } }
    },
    bulkDelete: async ({ params, body }, caller) => {
      const outcome = await documentsModule.deleteEach(params, body.documentIds, caller, body)
      return { status: 200, body: outcome, audit: { count: outcome.deleted.length } }
    },
    chunks: async ({ params, query }, caller) => {
      const { items, nextCursor } = await documentsModule.chunks(params, query, caller)
      return {
        status: 200,
        body: items,
        headers: nextCursor === null ? undefined : { 'x-next-cursor': nextCursor },
      }
    },
    ingest: async ({ params, query, body }, caller) =>
      toIngestResponse(await ingestOne(params, query, body, caller)),
    ingestFile: async ({ params, query, body }, caller) => {
      const { workspaceId, knowledgeBaseId } = params
      await modules.bases.openContext(workspaceId, knowledgeBaseId)
      return body.receive(async upload => {
        const ingest = await modules.uploads.read(upload, workspaceId, caller)
        const result = await ingestOne(params, query, ingest, caller)
        return { ...toIngestResponse(result), ignored: upload.ignored }
      })
    },
    checkFiles: async ({ params, body }, caller) => ({
      status: 200,
      body: { states: await modules.ingestion.check(params, body, caller) },
    }),
    ingestBatch: async ({ params, body }, caller) => {
      await modules.bases.openContext(params.workspaceId, params.knowledgeBaseId)
      return { status: 200, body: ingestLines(modules.ingestion, params, body, caller, reportFailure) }
    },
  }
}

export function trashHandlers(trashModule: Trash): Handlers<typeof trash> {
  return {
    list: async ({ params, query }, caller) => ({
      status: 200,
      body: await trashModule.list(params, query, caller),
    }),
    restore: async ({ params }, caller) => {
      const document = await trashModule.restore(params, caller)
      return { status: 200, body: document, audit: { documentId: document.documentId, count: 1 } }
    },
    bulkRestore: async ({ params, body }, caller) => {
      const { done: restored, failed } = await trashModule.restoreEach(params, body.entryIds, caller)
      return { status: 200, body: { restored, failed }, audit: { count: restored.length } }
    },
    bulkDelete: async ({ params, body }, caller) => {
      const { done: deleted, failed } = await trashModule.deleteEach(params, body.entryIds, caller)
      return { status: 200, body: { deleted, failed }, audit: { count: deleted.length } }
    },
  }
}

export function recordHandlers(recordsModule: Records): Handlers<typeof records> {
  return {
    upsert: async ({ params, body }, caller) => ({
      status: 200,
      body: {
        upserted: await recordsModule.upsert(params.workspaceId, params.knowledgeBaseId, body, caller),
      },
    }),
    delete: async ({ params }, caller) => ({
      status: 200,
      body: { deleted: await recordsModule.delete(params, caller) },
    }),
  }
}

import type { Caller, Handlers } from '../access/caller.ts'
import type { documents, Ingest } from '../contract/documents.ts'
import type { filters } from '../contract/filters.ts'
import type { kb } from '../contract/knowledge.ts'
import type { records } from '../contract/records.ts'
import type { chunkerRoutes } from '../contract/services.ts'
import { chunkerInfos as registry } from './chunk/index.ts'
import type { Documents } from './documents.ts'
import { type FailureReporter, ingestLines, toIngestReply } from './ingest-lines.ts'
import type { Ingestion } from './ingestion.ts'
import type { KnowledgeBases } from './knowledge-bases.ts'
import type { KnowledgeFilters } from './knowledge-filters.ts'
import type { ManySearcher } from './many-searcher.ts'
import type { Records } from './records.ts'
import type { Searcher } from './searcher.ts'
import type { Uploads } from './uploads.ts'

export function chunkerHandlers(): Handlers<typeof chunkerRoutes> {
  return { list: () => ({ status: 200, body: { items: [...registry] } }) }
}

/** Runs a search and reports its mode, outcome and duration. */
export type MeasureSearch = <T extends { readonly mode: string }>(search: () => Promise<T>) => Promise<T>

export function kbHandlers(
  bases: KnowledgeBases,
  searcher: Searcher,
  many: ManySearcher,
  measure: MeasureSearch,
): Handlers<typeof kb> {
  return {
    list: async ({ params, query }) => ({ status: 200, body: await bases.list(params.workspaceId, query) }),
    create: async ({ params, body }) => {
      const base = await bases.create(params.workspaceId, body)
      const audit = { knowledgeBaseId: base.knowledgeBaseId, label: base.name }
      return { status: 201, body: { ...base, astraQueries: [] }, audit }
    },
    show: async ({ params }) => ({
      status: 200,
      body: await bases.show(params.workspaceId, params.knowledgeBaseId),
    }),
    update: async ({ params, body }, caller) => ({
      status: 200,
      body: await bases.update(params.workspaceId, params.knowledgeBaseId, body, caller),
    }),
    delete: async ({ params }) => {
      const { name } = await bases.delete(params.workspaceId, params.knowledgeBaseId)
      return { status: 204, body: undefined, audit: { label: name } }
    },
    search: async ({ params, body }, caller) => {
      const { hits, ignored } = await measure(async () => {
        const context = await bases.context(params.workspaceId, params.knowledgeBaseId)
        return bases.unlessDeleted(params, () => searcher.search(context, body, caller))
      })
      return { status: 200, body: hits, ignored }
    },
    searchMany: async ({ params, body }, caller) => {
      const { hits, ignored } = await measure(() => many.search(params.workspaceId, body, caller))
      return { status: 200, body: hits, ignored }
    },
    adoptable: async ({ params }) => ({
      status: 200,
      body: { items: await bases.adoptable(params.workspaceId) },
    }),
  }
}

export function filterHandlers(room: KnowledgeFilters): Handlers<typeof filters> {
  return {
    list: async ({ params, query }) => ({ status: 200, body: await room.list(params, query) }),
    create: async ({ params, body }) => ({ status: 201, body: await room.create(params, body) }),
    show: async ({ params }) => ({ status: 200, body: await room.get(params) }),
    update: async ({ params, body }) => ({ status: 200, body: await room.update(params, body) }),
    delete: async ({ params }) => {
      await room.delete(params)
      return { status: 204, body: undefined }
    },
  }
}

export function documentHandlers(
  rooms: { bases: KnowledgeBases; documents: Documents; ingestion: Ingestion; uploads: Uploads },
  tellFailure: FailureReporter,
): Handlers<typeof documents> {
  const room = rooms.documents
  const ingestOne = (
    { workspaceId, knowledgeBaseId }: { workspaceId: string; knowledgeBaseId: string },
    query: { async?: string },
    body: Ingest,
    caller: Caller,
  ) =>
    query.async === 'true'
      ? rooms.ingestion.enqueue(workspaceId, knowledgeBaseId, body)
      : rooms.ingestion.ingest(workspaceId, knowledgeBaseId, body, caller)
  return {
    list: async ({ params, query }) => ({
      status: 200,
      body: await room.list(params.workspaceId, params.knowledgeBaseId, query),
    }),
    create: async ({ params, body }) => ({
      status: 201,
      body: await room.create(params.workspaceId, params.knowledgeBaseId, body),
    }),
    show: async ({ params }) => ({
      status: 200,
      body: await room.get(params.workspaceId, params.knowledgeBaseId, params.documentId),
    }),
    update: async ({ params, body }, caller) => ({
      status: 200,
      body: await room.update(params, body, caller),
    }),
    delete: async ({ params }) => {
      await room.delete(params)
      return { status: 204, body: undefined, audit: { count: 1 } }
    },
    bulkDelete: async ({ params, body }) => {
      const outcome = await room.deleteEach(params.workspaceId, params.knowledgeBaseId, body.documentIds)
      return { status: 200, body: outcome, audit: { count: outcome.deleted.length } }
    },
    chunks: async ({ params, query }, caller) => {
      const { items, nextCursor } = await room.chunks(params, query, caller)
      return {
        status: 200,
        body: items,
        headers: nextCursor === null ? undefined : { 'x-next-cursor': nextCursor },
      }
    },
    ingest: async ({ params, query, body }, caller) =>
      toIngestReply(await ingestOne(params, query, body, caller)),
    ingestFile: async ({ params, query, body }, caller) => {
      const { workspaceId, knowledgeBaseId } = params
      await rooms.bases.context(workspaceId, knowledgeBaseId)
      return body.receive(async upload => {
        const ingest = await rooms.uploads.read(upload, caller.signal)
        const result = await ingestOne(params, query, ingest, caller)
        return { ...toIngestReply(result), ignored: upload.ignored }
      })
    },
    ingestBatch: async ({ params, body }, caller) => {
      await rooms.bases.context(params.workspaceId, params.knowledgeBaseId)
      return { status: 200, body: ingestLines(rooms.ingestion, params, body, caller, tellFailure) }
    },
  }
}

export function recordHandlers(room: Records): Handlers<typeof records> {
  return {
    upsert: async ({ params, body }, caller) => ({
      status: 200,
      body: { upserted: await room.upsert(params.workspaceId, params.knowledgeBaseId, body, caller) },
    }),
    delete: async ({ params }) => ({
      status: 200,
      body: { deleted: await room.delete(params.workspaceId, params.knowledgeBaseId, params.recordId) },
    }),
  }
}

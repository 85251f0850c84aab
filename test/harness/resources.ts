import { type Document, documents, type IngestInput } from '../../src/contract/documents.ts'
import { type KnowledgeBase, kb, type SearchHit } from '../../src/contract/knowledge.ts'
import type { ClientRequest } from '../../src/contract/route.ts'
import { type EmbeddingService, embeddingServices } from '../../src/contract/services.ts'
import { type Workspace, workspaces } from '../../src/contract/workspaces.ts'
import type { TestRuntime } from './runtime.ts'

type Call = Pick<TestRuntime, 'call'>
type Body<T> = ClientRequest<T> extends { body: infer B } ? B : never

let nameCount = 0

/** Returns a name that is unique in this test file. */
export function uniqueName(stem: string): string {
  return `${stem}${++nameCount}`
}

export function makeWorkspace(
  { call }: Call,
  body: Partial<Body<typeof workspaces.create>> = {},
): Promise<Workspace> {
  return call(workspaces.create, { body: { name: uniqueName('workspace'), ...body } })
}

/** Creates a knowledge base, in a new workspace by default, with helpers for tests. */
export async function makeBase(
  opened: Call,
  { workspaceId, ...body }: Partial<Body<typeof kb.create>> & { workspaceId?: string } = {},
): Promise<Base> {
  const targetWorkspaceId = workspaceId ?? (await makeWorkspace(opened)).workspaceId
  const base = await opened.call(kb.create, {
    params: { workspaceId: targetWorkspaceId },
    body: { name: uniqueName('base'), ...body },
  })
  return baseIn(opened, base)
}

/** Creates an embedding service of the offline provider; clients can also send vectors. */
export function makeMockService(
  { call }: Call,
  workspaceId: string,
  fields: Partial<EmbeddingService> = {},
): Promise<EmbeddingService> {
  const body = {
    name: 'space',
    provider: 'mock',
    modelName: 'mock-embedder',
    embeddingDimension: 3,
    ...fields,
  }
  return call(embeddingServices.create, { params: { workspaceId }, body })
}

export interface Base {
  readonly params: { workspaceId: string; knowledgeBaseId: string }
  readonly name: string
  readonly path: string
  ingest(text: string, fields?: Partial<IngestInput>): Promise<IngestResult>
  search(text: string, fields?: Partial<Body<typeof kb.search>>): Promise<SearchHit[]>
  show(): Promise<KnowledgeBase & { embedder?: { version: string; state: string; fittedChunks: number } }>
  documents(): Promise<Document[]>
  delete(): Promise<void>
}

export interface IngestResult {
  readonly document: Document
  readonly chunks?: number
  readonly outcome?: 'duplicate' | 'name_conflict'
}

/** A knowledge base in one of several runtimes that share it. */
export function baseIn(
  { call }: Call,
  { workspaceId, knowledgeBaseId, name }: Pick<KnowledgeBase, 'workspaceId' | 'knowledgeBaseId' | 'name'>,
): Base {
  const params = { workspaceId, knowledgeBaseId }
  return {
    params,
    name,
    path: `/api/v1/workspaces/${workspaceId}/knowledge-bases/${knowledgeBaseId}`,
    ingest: (text, fields) => call(documents.ingest, { params, body: { text, ...fields } }),
    search: (text, fields) => call(kb.search, { params, body: { text, topK: 1_000, ...fields } }),
    show: () => call(kb.show, { params }),
    documents: async () => (await call(documents.list, { params, query: { limit: 200 } })).items,
    delete: async () => {
      await call(kb.delete, { params })
    },
  }
}

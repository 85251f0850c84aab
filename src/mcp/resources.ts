import { z } from 'zod'
import type { Handlers } from '../access/caller.ts'
import { type Document, documents } from '../contract/documents.ts'
import { WbError } from '../contract/errors.ts'
import { params } from '../contract/ids.ts'
import { kb } from '../contract/knowledge.ts'
import { mcpResourceAccess } from '../contract/tool-access.ts'
import { readDocumentText } from './document-text.ts'
import { chainedPage, cursorArgument, type OpenedList } from './pages.ts'
import { declareOperation, type FacadeCall, type FacadeOperation } from './tool.ts'

export interface ResourceDependencies {
  /** Handlers of the routes that provide resources. */
  readonly routes: {
    readonly kb: Pick<Handlers<typeof kb>, 'list'>
    readonly documents: Pick<Handlers<typeof documents>, 'list' | 'chunks'>
  }
}

/** MCP operations on resources. Their payload is the result that the protocol defines. */
export interface ResourceOperations {
  readonly list: FacadeOperation
  readonly templates: FacadeOperation
  readonly read: FacadeOperation
}

const resourcesPerPage = 50
const chunksPerPage = 100
/**
 * Maximum length of one part of a document's text, in UTF-16 units.
 *
 * @see docs/mcp.md#documents-as-resources
 */
const partCharsMax = 100_000
const uriCharsMax = 4_096
const mimeType = 'text/plain'

/**
 * Returns the operations that provide documents as MCP resources.
 *
 * @see docs/mcp.md#documents-as-resources
 */
export function resourceOperations({ routes }: ResourceDependencies): ResourceOperations {
  return {
    list: declareOperation({
      name: 'resources/list',
      access: mcpResourceAccess,
      input: z.object({ cursor: cursorArgument.optional() }),
      async run({ cursor }, { routeCaller, workspaceId }) {
        const open = (position: string | null) =>
          openDocumentList(routes, position, { routeCaller, workspaceId })
        const page = await chainedPage({ open }, { limit: resourcesPerPage, cursor })
        const { items: resources, nextCursor } = page
        return { payload: { resources, ...(nextCursor !== null && { nextCursor }) } }
      },
    }),
    templates: declareOperation({
      name: 'resources/templates/list',
      access: mcpResourceAccess,
      input: z.object({}),
      run: async (_input, { workspaceId }) => ({ payload: { resourceTemplates: [templateOf(workspaceId)] } }),
    }),
    read: declareOperation({
      name: 'resources/read',
      access: mcpResourceAccess,
      input: z.object({ uri: z.string().max(uriCharsMax) }),
      async run({ uri }, { routeCaller, workspaceId }) {
        const { cursor, ...documentKey } = parseResourceUri(uri, workspaceId)
        const query = { ...documentKey, cursor, chunksMax: chunksPerPage, charsMax: partCharsMax }
        const { text, nextCursor } = await readDocumentText(routeCaller, routes.documents.chunks, query)
        if (nextCursor === null) return { payload: { contents: [{ uri, mimeType, text }] } }
        const next = `${uriOf({ ...documentKey, workspaceId })}?cursor=${nextCursor}`
        const note = `\n\n[The document continues. Read ${next} for the next part.]`
        const contents = [{ uri, mimeType, text: text + note, _meta: { 'workbase/next': next } }]
        return { payload: { contents } }
      },
    }),
  }
}

/** Opens the document list of the knowledge base at a position; undefined after the last one. */
async function openDocumentList(
  routes: ResourceDependencies['routes'],
  position: string | null,
  { routeCaller, workspaceId }: Pick<FacadeCall, 'routeCaller' | 'workspaceId'>,
): Promise<OpenedList<Resource> | undefined> {
  const request = { limit: 1, cursor: position ?? undefined }
  const { items, nextCursor } = await routeCaller.page(
    kb.list,
    routes.kb.list,
    request,
    base => base.knowledgeBaseId,
  )
  const [knowledgeBaseId] = items
  if (knowledgeBaseId === undefined) return undefined
  const read: OpenedList<Resource>['read'] = query =>
    routeCaller.page(
      documents.list,
      routes.documents.list,
      { ...query, params: { knowledgeBaseId } },
      document => toResource(document, workspaceId),
    )
  return { next: nextCursor, read }
}

type Resource = ReturnType<typeof toResource>

function toResource(document: Document, workspaceId: string) {
  const { documentId, sourceFilename, metadata } = document
  return {
    uri: uriOf({ ...document, workspaceId }),
    name: sourceFilename ?? documentId,
    ...(typeof metadata.title === 'string' && { title: metadata.title }),
    mimeType,
  }
}

function templateOf(workspaceId: string) {
  const placeholders = { workspaceId, knowledgeBaseId: '{knowledgeBaseId}', documentId: '{documentId}' }
  return {
    uriTemplate: `${uriOf(placeholders)}{?cursor}`,
    name: 'document',
    title: 'Text of a document',
    description:
      'The text of one document. The tools list_knowledge_bases, list_documents and search_kb return the IDs. A long text comes in parts; each part names the URI of the next.',
    mimeType,
  }
}

interface ResourceAddress {
  readonly workspaceId: string
  readonly knowledgeBaseId: string
  readonly documentId: string
}

function uriOf({ workspaceId, knowledgeBaseId, documentId }: ResourceAddress): string {
  return `workbase://${workspaceId}/kb/${knowledgeBaseId}/documents/${documentId}`
}

const uriPattern = /^workbase:\/\/([^/?]+)\/kb\/([^/?]+)\/documents\/([^/?]+)(?:\?cursor=([\w-]+))?$/
const documentKeySchema = z.object({ knowledgeBaseId: params.knowledgeBaseId, documentId: params.documentId })

/** @throws document_not_found  the URI is not that of a document in this workspace */
function parseResourceUri(uri: string, workspaceId: string) {
  const [, workspace, knowledgeBaseId, documentId, cursor] = uriPattern.exec(uri) ?? []
  const documentKey = documentKeySchema.safeParse({ knowledgeBaseId, documentId })
  if (workspace !== workspaceId || !documentKey.success)
    throw new WbError(
      'document_not_found',
      `no such resource; resources of this workspace have URIs of the form ${templateOf(workspaceId).uriTemplate}`,
    )
  return { ...documentKey.data, cursor }
}

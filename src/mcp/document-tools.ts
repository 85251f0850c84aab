import { z } from 'zod'
import type { Handlers } from '../access/caller.ts'
import { pageOf, textField } from '../agents/tools/passages.ts'
import { type Document, documents } from '../contract/documents.ts'
import { WbError } from '../contract/errors.ts'
import { vector } from '../contract/fields.ts'
import { type FolderDescription, firstOfFolders, folderOf } from '../contract/folder-description.ts'
import { folders } from '../contract/folders.ts'
import { params } from '../contract/ids.ts'
import { kb, type SearchHit } from '../contract/knowledge.ts'
import { limits } from '../contract/limits.ts'
import { readDocumentText } from './document-text.ts'
import { exampleId } from './example-id.ts'
import { formatCitation, headingOf } from './format-citation.ts'
import { pageResult, pagingArguments } from './pages.ts'
import { pickFields } from './pick-fields.ts'
import type { RouteCaller } from './route-caller.ts'
import { declareArgument, declareTool, type FacadeTool } from './tool.ts'

export interface DocumentToolDependencies {
  /** Handlers of the routes that the tools call. */
  readonly routes: {
    readonly kb: Pick<Handlers<typeof kb>, 'search'>
    readonly documents: Pick<Handlers<typeof documents>, 'list' | 'show' | 'chunks'>
    readonly folders: Pick<Handlers<typeof folders>, 'list'>
  }
}

/**
 * Maximum number of hits of one search.
 *
 * @see docs/mcp.md#the-tools
 */
const topKMax = 64
/** Maximum length of a page of text, about 5,000 tokens. */
const textCharsMax = 20_000
const chunksPerPage = 20

export const knowledgeBaseId = declareArgument(
  params.knowledgeBaseId,
  'ID of a knowledge base, from list_knowledge_bases.',
  exampleId,
)
const documentId = declareArgument(
  params.documentId,
  'ID of a document, from list_documents or from a hit of search_kb.',
  exampleId,
)

/** Returns the tools that read documents and their passages. */
export function documentTools({ routes }: DocumentToolDependencies): FacadeTool[] {
  return [
    declareTool({
      name: 'list_documents',
      title: 'List documents',
      description:
        'List the documents of a knowledge base, a page at a time. To find something in them, use search_kb instead of reading the list.',
      input: { knowledgeBaseId, ...pagingArguments },
      example: { knowledgeBaseId: exampleId, limit: 20 },
      async run({ knowledgeBaseId: id, ...query }, { routeCaller }) {
        const request = { ...query, params: { knowledgeBaseId: id } }
        const { body } = await routeCaller.call(folders.list, routes.folders.list, request)
        const page = await routeCaller.page(documents.list, routes.documents.list, request, row =>
          pickFields(row, listedDocumentFields),
        )
        const described = firstOfFolders(page.items, row => folderOf(body.items, row.sourceFilename))
        const items = page.items.map((row, at) => ({ ...row, ...folderField(described[at]) }))
        return pageResult({ ...page, items })
      },
    }),
    declareTool({
      name: 'get_document',
      title: 'Read a document',
      description:
        'Read a document: its file name, title, metadata and citation, and its text, a page at a time. Use it when a hit of search_kb is not enough.',
      input: { knowledgeBaseId, documentId, cursor: pagingArguments.cursor },
      example: { knowledgeBaseId: exampleId, documentId: exampleId },
      async run({ cursor, ...documentKey }, { routeCaller }) {
        try {
          const { body } = await routeCaller.call(documents.show, routes.documents.show, {
            params: documentKey,
          })
          const query = { ...documentKey, cursor, chunksMax: chunksPerPage, charsMax: textCharsMax }
          const { text, nextCursor } = await readDocumentText(routeCaller, routes.documents.chunks, query)
          return { payload: { ...describeDocument(body), text }, nextCursor }
        } catch (error) {
          if (!(error instanceof WbError) || error.code !== 'document_not_found') throw error
          const { code, message } = error
          return {
            isError: true,
            code,
            payload: { outcome: 'not_found', documentId: documentKey.documentId, message },
          }
        }
      },
    }),
    declareTool({
      name: 'search_kb',
      title: 'Search a knowledge base',
      description:
        'Find the passages of a knowledge base that answer a question, best first. Each hit has the text of the passage and a citation: put the citation after each statement that comes from the passage.',
      input: {
        knowledgeBaseId,
        text: declareArgument(
          z.string().optional(),
          'Question or keywords to search for. Required unless vector is given.',
          'How long do customers have to return an item?',
        ),
        vector: declareArgument(
          vector.optional(),
          'Embedding to search by instead of text, with the dimension of the knowledge base. Usually omitted.',
          [0.12, -0.03, 0.57],
        ),
        topK: declareArgument(
          z.int().min(1).max(topKMax).optional(),
          `Number of hits to return, 1 to ${topKMax}; ${limits.topKDefault} if omitted.`,
          5,
        ),
        hybrid: declareArgument(
          z.boolean().optional(),
          'True to match words as well as meaning. Omit it to use the setting of the knowledge base.',
          true,
        ),
        rerank: declareArgument(
          z.boolean().optional(),
          'True to rank the hits a second time, which is slower. Omit it to use the setting of the knowledge base.',
          false,
        ),
      },
      example: { knowledgeBaseId: exampleId, text: 'How long do customers have to return an item?', topK: 5 },
      async run({ knowledgeBaseId: id, ...body }, { routeCaller }) {
        const searchParams = { knowledgeBaseId: id }
        const search = { params: searchParams, body: { ...body, includeFolder: true } }
        const hits = (await routeCaller.call(kb.search, routes.kb.search, search)).body
        const fileNames = await loadFileNames(hits, routeCaller, routes.documents.show, id)
        const described = firstOfFolders(hits, ({ folder }) => folder)
        return {
          payload: hits.map((hit, at) => ({ ...toPassage(hit, fileNames), ...folderField(described[at]) })),
        }
      },
    }),
  ]
}

/** Returns the field that shows the description of a folder, with the first item of the folder only. */
function folderField(folder: FolderDescription | undefined) {
  return folder && { folder }
}

const listedDocumentFields = [
  'documentId',
  'sourceFilename',
  'status',
  'chunkTotal',
  'contentHash',
  'ingestedAt',
] as const

function describeDocument(document: Document) {
  const { documentId: id, sourceFilename, metadata } = document
  const title = textField(metadata.title)
  return {
    documentId: id,
    knowledgeBaseId: document.knowledgeBaseId,
    sourceFilename,
    title,
    citation: formatCitation({ documentId: id, sourceFilename, title }),
    ...pickFields(document, ['fileType', 'status', 'chunkTotal', 'ingestedAt', 'metadata']),
  }
}

/** Returns the file names of the documents of hits, by document ID. Skips documents that no longer exist. */
async function loadFileNames(
  hits: readonly SearchHit[],
  routeCaller: RouteCaller,
  show: Handlers<typeof documents>['show'],
  knowledgeBaseId: string,
): Promise<Map<string, string | null>> {
  const ids = new Set(hits.flatMap(({ payload }) => textField(payload?.documentId) ?? []))
  const entries = await Promise.all(
    [...ids].map(async id => {
      const request = { params: { knowledgeBaseId, documentId: id } }
      const document = await routeCaller.call(documents.show, show, request).catch(undefinedIfMissing)
      return [id, document?.body.sourceFilename ?? null] as const
    }),
  )
  return new Map(entries)
}

function undefinedIfMissing(error: unknown): undefined {
  if (!(error instanceof WbError) || !error.code.endsWith('_not_found')) throw error
}

function toPassage({ id, score, payload = {} }: SearchHit, fileNames: ReadonlyMap<string, string | null>) {
  const content = textField(payload.chunkText)
  const source = {
    documentId: textField(payload.documentId),
    sourceFilename: fileNames.get(String(payload.documentId)) ?? null,
    title: textField(payload.title),
    heading: headingOf(payload, content),
  }
  const citation = formatCitation({ ...source, page: pageOf(payload) })
  const { documentId: sourceId, ...sourceNames } = source
  return { chunkId: id, score, documentId: sourceId, content, ...sourceNames, citation }
}

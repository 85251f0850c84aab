import { z } from 'zod'
import type { Handlers } from '../access/caller.ts'
import { documents } from '../contract/documents.ts'
import { type ErrorCode, WbError } from '../contract/errors.ts'
import { params } from '../contract/ids.ts'
import { kb } from '../contract/knowledge.ts'
import type { ReplyBody } from '../contract/route.ts'
import { knowledgeBaseId } from './document-tools.ts'
import { exampleId } from './example-id.ts'
import { declareArgument, declareTool, type FacadeCall, type FacadeResult, type FacadeTool } from './tool.ts'

export interface WriteToolDependencies {
  /** Handlers of the routes that the tools call. */
  readonly routes: {
    readonly kb: Pick<Handlers<typeof kb>, 'create' | 'delete'>
    readonly documents: Pick<Handlers<typeof documents>, 'show' | 'ingest' | 'delete'>
  }
}

const documentId = declareArgument(params.documentId, 'ID of a document, from list_documents.', exampleId)
const nameCharsMax = 120

/**
 * Returns the tools that change data, in display order.
 *
 * @see docs/mcp.md#the-tools
 */
export function writeTools({ routes }: WriteToolDependencies): FacadeTool[] {
  return [
    declareTool({
      name: 'ingest_text',
      title: 'Add a text',
      description:
        'Add a text to a knowledge base as a document that search_kb finds. A text that the knowledge base already contains is not added again.',
      input: {
        knowledgeBaseId,
        text: declareArgument(
          z.string().min(1),
          'The whole text, plain or Markdown.',
          '# Returns\n\nWithin 30 days.',
        ),
        sourceFilename: declareArgument(
          z.string().optional(),
          'File name to show and cite, unique in the knowledge base.',
          'returns.md',
        ),
        sourceDocId: declareArgument(
          z.string().optional(),
          'ID of the text in the system that it comes from.',
          'wiki-1842',
        ),
        metadata: declareArgument(
          z.record(z.string(), z.string()).optional(),
          'Fields of the document, as string values by name. title is shown and cited; others can be used in filters.',
          { title: 'Return policy', team: 'support' },
        ),
        overwriteOnNameConflict: declareArgument(
          z.boolean().optional(),
          'True to replace the document with the same sourceFilename. If false or omitted, the text is not added.',
          true,
        ),
      },
      example: {
        knowledgeBaseId: exampleId,
        text: '# Returns\n\nWithin 30 days.',
        sourceFilename: 'returns.md',
      },
      async run({ knowledgeBaseId: id, ...body }, { routeCaller }) {
        const request = { params: { knowledgeBaseId: id }, body }
        return toIngestResult(
          (await routeCaller.call(documents.ingest, routes.documents.ingest, request)).body,
        )
      },
    }),
    declareTool({
      name: 'delete_document',
      title: 'Delete a document',
      description: 'Delete a document and its passages. This cannot be undone.',
      input: { knowledgeBaseId, documentId },
      example: { knowledgeBaseId: exampleId, documentId: exampleId },
      run: (input, call) => deleteDocument(routes.documents, input, call),
    }),
    declareTool({
      name: 'create_knowledge_base',
      title: 'Create a knowledge base',
      description:
        'Create a knowledge base. The name is enough: the first chunking service and the first embedding service of the workspace are used unless you specify others.',
      input: {
        name: declareArgument(
          z.string().min(1).max(nameCharsMax),
          'Name: a letter, then up to 47 letters, digits or underscores.',
          'support_articles',
        ),
        chunkingServiceId: declareArgument(
          params.chunkingServiceId.optional(),
          'ID of a chunking service, from list_services. Omit it to use the first one.',
          exampleId,
        ),
        embeddingServiceId: declareArgument(
          params.embeddingServiceId.optional(),
          'ID of an embedding service, from list_services. Omit it to use the first one.',
          exampleId,
        ),
        description: declareArgument(
          z.string().optional(),
          'One sentence about the content of the knowledge base.',
          'Articles of the support team',
        ),
        rerankingServiceId: declareArgument(
          params.rerankingServiceId.optional(),
          'ID of a reranking service, from list_services. Omit it for none.',
          exampleId,
        ),
        language: declareArgument(z.string().optional(), 'Language of the texts.', 'en'),
        attach: declareArgument(
          z.boolean().optional(),
          'True to use an existing collection, which vectorCollection names.',
          false,
        ),
        vectorCollection: declareArgument(
          z.string().optional(),
          'Name of the collection to attach. Omit it to create one.',
          'support_articles',
        ),
      },
      example: { name: 'support_articles', description: 'Articles of the support team' },
      async run(body, { routeCaller }) {
        try {
          const created = (await routeCaller.call(kb.create, routes.kb.create, { body })).body
          return { payload: { outcome: 'created', ...toCreatedResult(created) } }
        } catch (error) {
          return creationFailure(error)
        }
      },
    }),
    declareTool({
      name: 'delete_knowledge_base',
      title: 'Delete a knowledge base',
      description: 'Delete a knowledge base and all its documents. This cannot be undone.',
      input: { knowledgeBaseId },
      example: { knowledgeBaseId: exampleId },
      async run(input, { routeCaller }) {
        const isDeleted = await routeCaller
          .call(kb.delete, routes.kb.delete, { params: input })
          .then(() => true, falseIfCode('knowledge_base_not_found'))
        return { payload: { outcome: isDeleted ? 'deleted' : 'not_found', ...input } }
      },
    }),
  ]
}

function toIngestResult(reply: ReplyBody<typeof documents.ingest>): FacadeResult {
  const { documentId, sourceFilename, contentHash } = reply.document
  if ('chunks' in reply)
    return {
      payload: { outcome: 'completed', documentId, sourceFilename, contentHash, chunks: reply.chunks },
    }
  if (!('outcome' in reply)) throw new Error('ingesting text from a request started a job')
  const { outcome } = reply
  if (outcome === 'duplicate') {
    const message = 'the knowledge base already contains this text; nothing was changed'
    return { payload: { outcome, documentId, sourceFilename, contentHash, message } }
  }
  const message = 'another text has this file name; send overwriteOnNameConflict to replace it with this text'
  return { isError: true, code: 'conflict', payload: { outcome, documentId, sourceFilename, message } }
}

async function deleteDocument(
  routes: WriteToolDependencies['routes']['documents'],
  documentKey: { knowledgeBaseId: string; documentId: string },
  { routeCaller }: FacadeCall,
): Promise<FacadeResult> {
  const { documentId: id } = documentKey
  try {
    const { chunkTotal } = (await routeCaller.call(documents.show, routes.show, { params: documentKey })).body
    await routeCaller.call(documents.delete, routes.delete, { params: documentKey })
    return { payload: { outcome: 'deleted', documentId: id, chunksDropped: chunkTotal ?? 0 } }
  } catch (error) {
    falseIfCode('document_not_found')(error)
    return { payload: { outcome: 'not_found', documentId: id, chunksDropped: 0 } }
  }
}

function toCreatedResult(base: ReplyBody<typeof kb.create>) {
  const { knowledgeBaseId: id, name, vectorCollection, owned, language, status, ...services } = base
  return {
    knowledgeBaseId: id,
    name,
    vectorCollection,
    owned,
    chunkingServiceId: services.chunkingServiceId,
    embeddingServiceId: services.embeddingServiceId,
    rerankingServiceId: services.rerankingServiceId,
    language,
    status,
  }
}

/**
 * Returns the tool result for a knowledge base that could not be created.
 *
 * @throws the error itself, if it is not a `WbError`
 */
function creationFailure(error: unknown): FacadeResult {
  if (!(error instanceof WbError)) throw error
  const { code, message } = error
  const payload = code.endsWith('_not_found')
    ? { outcome: 'not_found', message }
    : { outcome: 'error', code, message }
  return { isError: true, code, payload }
}

/**
 * Returns a handler that converts failures with one code to false.
 *
 * @throws any other failure
 */
function falseIfCode(code: ErrorCode): (error: unknown) => false {
  return error => {
    if (error instanceof WbError && error.code === code) return false
    throw error
  }
}

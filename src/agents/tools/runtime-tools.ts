import { z } from 'zod'
import type { AvailableTool } from '../../contract/agents.ts'
import { limits } from '../../contract/limits.ts'
import { nativeTools } from '../../contract/tool-ids.ts'

/** Definition of a tool that the runtime implements: its description for the model, and its arguments. */
export interface RuntimeTool<Input extends z.ZodType = z.ZodType> {
  readonly id: string
  readonly description: string
  readonly input: Input
}

const knowledgeBaseId = z.uuid().describe('id of a knowledge base')
const documentId = z.uuid().describe('id of a document')
const query = z.string().min(1).max(limits.searchTextChars).describe('what to look for, in words')

function boundedInt(min: number, max: number, fallback: number, description: string) {
  return z.int().min(min).max(max).default(fallback).describe(description)
}

function runtimeTool<Input extends z.ZodType>(tool: RuntimeTool<Input>): RuntimeTool<Input> {
  return tool
}

const offset = z.int().min(0).default(0).describe('number of chunks to skip')
const optionalBase = z.strictObject({ knowledgeBaseId: knowledgeBaseId.optional() })

/**
 * Definitions of the built-in tools, which every agent can use.
 *
 * @see docs/agents.md#tools
 */
export const builtInTools = {
  listBases: runtimeTool({
    id: 'list_kbs',
    description: 'List the knowledge bases of the workspace.',
    input: z.strictObject({}),
  }),
  listDocuments: runtimeTool({
    id: 'list_documents',
    description: 'List documents, of one knowledge base or of all.',
    input: optionalBase,
  }),
  countDocuments: runtimeTool({
    id: 'count_documents',
    description: 'Count documents, of one knowledge base or of all.',
    input: optionalBase,
  }),
  summarizeBases: runtimeTool({
    id: 'summarize_kb',
    description:
      'Describe knowledge bases: their description, the number of documents, and some of their names.',
    input: optionalBase,
  }),
  search: runtimeTool({
    id: 'search_kb',
    description:
      'Find the passages that fit a query best, in one knowledge base or in all. Write a query that can be understood without the conversation: replace words such as "it" or "the second one" with what they mean.',
    input: z.strictObject({
      query,
      knowledgeBaseId: knowledgeBaseId.optional(),
      limit: boundedInt(1, 8, 5, 'maximum number of passages'),
    }),
  }),
  getDocument: runtimeTool({
    id: 'get_document',
    description: 'Show the file, size, status and metadata of a document.',
    input: z.strictObject({ knowledgeBaseId, documentId }),
  }),
  listChunks: runtimeTool({
    id: 'list_chunks',
    description: 'Read the text of a document, chunk by chunk.',
    input: z.strictObject({
      knowledgeBaseId,
      documentId,
      limit: boundedInt(1, 50, 10, 'maximum number of chunks'),
      offset,
    }),
  }),
}

/** Definition of the tool that reads an attachment. Offered only in conversations with attachments. */
export const readAttachmentTool = runtimeTool({
  id: 'read_attachment',
  description: 'Read the text of a file that is attached to this conversation, chunk by chunk.',
  input: z.strictObject({
    attachmentId: z.uuid().describe('id of an attachment'),
    limit: boundedInt(1, 50, 10, 'maximum number of chunks'),
    offset,
  }),
})

/** Definition of the tool that sends a request to a web address. Offered only if the configuration enables it. */
export const fetchTool = runtimeTool({
  id: nativeTools.fetch,
  description: 'Read a web page or call an HTTP API. Returns its text.',
  input: z.strictObject({
    url: z.url({ protocol: /^https?$/ }),
    method: z.enum(['GET', 'POST']).default('GET'),
    headers: z.record(z.string(), z.string()).optional(),
    body: z.string().optional(),
  }),
})

/**
 * Returns the definition of the web search tool.
 *
 * @param maxResults  maximum number of results, from the configuration
 */
export function webSearchTool(maxResults: number) {
  return runtimeTool({
    id: nativeTools.webSearch,
    description: 'Search the web. Returns titles, addresses and summaries.',
    input: z.strictObject({
      query,
      limit: z.int().min(1).max(maxResults).optional().describe('maximum number of results'),
    }),
  })
}

/** Definition of the tool that reads the database of a workspace. */
export const dataApiTool = runtimeTool({
  id: 'astra:data_api',
  description:
    'Read the database of the workspace: find returns chunks of a knowledge base in order, vector_search returns those closest to a query.',
  input: z.strictObject({
    operation: z.enum(['find', 'vector_search']),
    knowledgeBaseId,
    documentId: documentId.optional(),
    query: query.optional(),
    topK: boundedInt(1, 25, 5, 'maximum number of chunks that vector_search returns'),
    limit: boundedInt(1, 25, 10, 'maximum number of chunks that find returns'),
    offset,
  }),
})

/** Converts a definition to a tool as the API lists it. */
export function toAvailableTool({ id, description, input }: RuntimeTool): AvailableTool {
  const { $schema: _, ...inputSchema } = z.toJSONSchema(input, { io: 'input' })
  return { id, description, source: sourceOf(id), inputSchema }
}

function sourceOf(id: string): AvailableTool['source'] {
  if (id.startsWith('native:')) return 'native'
  return id.startsWith('astra:') ? 'astra' : 'builtin'
}

// Definitions that the routes for documents and for records share.

import { storeErrors } from './knowledge.ts'
import { limits } from './limits.ts'

export const knowledgeBasePath = '/api/v1/workspaces/:workspaceId/knowledge-bases/:knowledgeBaseId'
export const lenientJsonBody = { kind: 'json', mode: 'lenient', limitBytes: limits.jsonBodyBytes } as const
/** Error codes of routes that look up the knowledge base. */
export const knowledgeBaseErrors = ['workspace_not_found', 'knowledge_base_not_found'] as const
/** Error codes of routes that read or change the store of the knowledge base. */
export const contentErrors = [...storeErrors, 'collection_unavailable'] as const
/** Error codes of routes that compute vectors. */
export const embeddingErrors = [
  'vector_collection_required',
  'embedding_unavailable',
  'embedding_dimension_mismatch',
] as const

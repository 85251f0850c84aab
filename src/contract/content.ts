// What the routes to the documents and records of a knowledge base share.

import { storeFaults } from './knowledge.ts'
import { limits } from './limits.ts'

export const base = '/api/v1/workspaces/:workspaceId/knowledge-bases/:knowledgeBaseId'
export const json = { kind: 'json', mode: 'lenient', limitBytes: limits.jsonBodyBytes } as const
/** Codes of a route that looks the knowledge base up. */
export const found = ['workspace_not_found', 'knowledge_base_not_found'] as const
/** Codes of one that asks or changes its store. */
export const stored = [...storeFaults, 'collection_unavailable'] as const
/** Codes of one that makes vectors. */
export const embedded = [
  'vector_collection_required',
  'embedding_unavailable',
  'embedding_dimension_mismatch',
] as const

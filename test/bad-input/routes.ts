import {
  address,
  attributes,
  boosts,
  checkedFiles,
  choice,
  chunker,
  command,
  completionMessages,
  countOrNull,
  credentials,
  description,
  documentIds,
  filter,
  flag,
  flagOrNull,
  folderDescription,
  folderPath,
  fraction,
  future,
  grace,
  type InvalidValues,
  id,
  idOrNull,
  idSet,
  ids,
  images,
  label,
  lexical,
  listOfText,
  managedValues,
  metadata,
  name,
  numberOrNull,
  path,
  positive,
  positiveOrNull,
  principal,
  records,
  reviews,
  savedFilter,
  scopes,
  secretRef,
  text,
  textOrNull,
  timestamp,
  title,
  toolIds,
  toolRules,
  topK,
  vector,
  visibleTo,
} from './invalid-values.ts'

/** A valid body of a JSON route, and the fields to invalidate one at a time. */
export interface BodySpec {
  readonly valid: Readonly<Record<string, unknown>>
  readonly required: readonly string[]
  readonly strict?: true
  readonly fields: Readonly<Record<string, InvalidValues>>
}

const W = '/api/v1/workspaces/{workspaceId}'
const KB = `${W}/knowledge-bases/{knowledgeBaseId}`
const conversations = `${W}/agents/{agentId}/conversations`

const serviceFields = {
  name,
  description,
  status: choice,
  endpointBaseUrl: address,
  endpointPath: path,
  requestTimeoutMs: positiveOrNull,
  authType: choice,
  credentialRef: secretRef,
}
const chunkingFields = {
  ...serviceFields,
  engine: text,
  engineVersion: textOrNull,
  strategy: textOrNull,
  maxChunkSize: positiveOrNull,
  minChunkSize: countOrNull,
  chunkUnit: textOrNull,
  overlapSize: countOrNull,
  overlapUnit: textOrNull,
  preserveStructure: flagOrNull,
  language: textOrNull,
  readingOrder: textOrNull,
  maxPayloadSizeKb: positiveOrNull,
  enableOcr: flagOrNull,
  extractTables: flagOrNull,
  extractFigures: flagOrNull,
}
const embeddingFields = {
  ...serviceFields,
  provider: text,
  modelName: text,
  embeddingDimension: positive,
  distanceMetric: choice,
  maxBatchSize: positiveOrNull,
  maxInputTokens: positiveOrNull,
  supportedLanguages: listOfText,
  supportedContent: listOfText,
}
const rerankingFields = {
  ...serviceFields,
  provider: text,
  engine: textOrNull,
  modelName: text,
  modelVersion: textOrNull,
  maxCandidates: positiveOrNull,
  scoringStrategy: textOrNull,
  scoreNormalized: flagOrNull,
  returnScores: flagOrNull,
  maxBatchSize: positiveOrNull,
  supportedLanguages: listOfText,
  supportedContent: listOfText,
}
const samplingFields = {
  temperature: { ...numberOrNull, wrong: [...numberOrNull.wrong, -1, 3] },
  topP: { ...numberOrNull, wrong: [...numberOrNull.wrong, 0, 2] },
  reasoningEffort: { ...textOrNull, wrong: [...textOrNull.wrong, '', 'HIGH', 'x'.repeat(21)] },
  stop: {
    ...listOfText,
    wrong: [...listOfText.wrong.filter(value => value !== null), [], [''], ['a', 'b', 'c', 'd', 'e']],
  },
}
const llmFields = {
  ...serviceFields,
  provider: text,
  engine: textOrNull,
  modelName: text,
  modelVersion: textOrNull,
  contextWindowTokens: positiveOrNull,
  maxOutputTokens: positiveOrNull,
  ...samplingFields,
  temperatureMin: numberOrNull,
  temperatureMax: numberOrNull,
  supportsStreaming: flagOrNull,
  supportsTools: flagOrNull,
  maxBatchSize: positiveOrNull,
  supportedLanguages: listOfText,
  supportedContent: listOfText,
}
const principalFields = {
  label: { ...textOrNull, wrong: [...textOrNull.wrong, 'x'.repeat(201)] },
  attributes,
  role: choice,
}
const someId = '0198c9a4-6c1e-4a3b-9a55-2f0f3c8b7d10'
const documentKeyFields = { knowledgeBaseId: id, documentId: id }
const workspaceFields = {
  name,
  url: {
    wrong: [5, true, [], {}, 'no address', 'a\u0000', 'https://\ud800.example'],
    codes: ['validation_error'],
  },
  keyspace: textOrNull,
  credentials,
  rlacEnabled: flag,
}
const mcpServerFields = {
  label: { ...text, wrong: [...text.wrong, 'x'.repeat(201)] },
  url: { ...address, wrong: [...address.wrong, null] },
  credentialRef: secretRef,
  authType: choice,
  oauthClientId: { ...textOrNull, wrong: [...textOrNull.wrong, '', 'x'.repeat(2_049)] },
  oauthClientSecretRef: secretRef,
  oauthScopes: {
    ...listOfText,
    wrong: [...listOfText.wrong.filter(value => value !== null), ['two words'], [''], ['x'.repeat(201)]],
  },
  enabled: flag,
  allowedTools: { ...listOfText, wrong: listOfText.wrong.filter(value => value !== null) },
}
const baseName = { ...text, wrong: [...text.wrong, '1a', 'a-b', 'ä', 'a'.repeat(49)] }
const archiveHeader = JSON.stringify({
  format: 'workbase-knowledge-base',
  version: 1,
  createdAt: '2026-01-01T00:00:00.000Z',
  name: 'spoilt',
  description: null,
  status: 'active',
  language: null,
  lexical: { enabled: true, analyzer: null, options: {} },
  rowAccess: false,
  policyDsl: null,
  policyEnabled: false,
  embedding: {
    name: 'space',
    provider: 'workbase',
    modelName: 'none',
    embeddingDimension: 3,
    distanceMetric: 'cosine',
  },
  chunking: { name: 'sentences', engine: 'native', strategy: null },
  reranking: null,
})
const baseFields = {
  description,
  status: choice,
  rerankingServiceId: idOrNull,
  language: textOrNull,
  lexical,
}
const rankingFields = {
  text,
  topK,
  filter,
  hybrid: flag,
  lexicalWeight: fraction,
  rerank: flag,
  prefix: flag,
  knowledgeFilterId: id,
  diversity: fraction,
  groupBy: choice,
  perGroup: { ...positive, wrong: [...positive.wrong, 101] },
  neighbors: { ...positive, wrong: [...positive.wrong.filter(value => value !== 0), 4] },
  boosts,
}
const searchFields = { ...rankingFields, includeEmbeddings: flag, includeCoverage: flag, explain: flag }
const documentFields = {
  sourceDocId: textOrNull,
  sourceFilename: textOrNull,
  fileType: textOrNull,
  fileSize: countOrNull,
  contentHash: textOrNull,
  chunkTotal: countOrNull,
  ingestedAt: timestamp,
  status: choice,
  errorMessage: textOrNull,
  metadata,
  visibleTo,
  ownerPrincipalId: textOrNull,
}

const agentFields = {
  name: { ...text, wrong: [...text.wrong, 'x'.repeat(201)] },
  description: { ...textOrNull, wrong: [...textOrNull.wrong, 'x'.repeat(2_001)] },
  systemPrompt: { ...textOrNull, wrong: [...textOrNull.wrong, 'x'.repeat(131_073)] },
  userPrompt: { ...textOrNull, wrong: [...textOrNull.wrong, 'x'.repeat(131_073)] },
  llmServiceId: idOrNull,
  knowledgeBaseIds: idSet,
  toolIds,
  rerankEnabled: flag,
  rerankingServiceId: idOrNull,
  rerankMaxResults: positiveOrNull,
  ...samplingFields,
  toolRules,
}
const conversationFields = { title, knowledgeBaseIds: idSet }
const messageFields = {
  content: { ...text, wrong: [...text.wrong, 'x'.repeat(32_001)] },
  images,
  approvals: flag,
  llmServiceId: id,
  replaces: id,
}

/** Fields of one ingest request, or of one line of a batch. */
export const ingestFields = {
  text,
  documentId: id,
  sourceDocId: textOrNull,
  sourceFilename: textOrNull,
  fileType: textOrNull,
  fileSize: countOrNull,
  metadata,
  chunker,
  overwriteOnNameConflict: flag,
  visibleTo,
  ownerPrincipalId: textOrNull,
}

/** JSON routes by their line in the OpenAPI document. */
export const bodySpecs: Readonly<Record<string, BodySpec>> = {
  'POST /api/v1/workspaces': {
    valid: { name: 'spoilt' },
    required: ['name'],
    fields: { workspaceId: id, kind: choice, ...workspaceFields },
  },
  [`PATCH ${W}`]: { valid: {}, required: [], strict: true, fields: workspaceFields },
  [`POST ${W}/chunking-services`]: {
    valid: { name: 'spoilt', engine: 'langchain_ts' },
    required: ['name', 'engine'],
    fields: { chunkingServiceId: id, ...chunkingFields },
  },
  [`PATCH ${W}/chunking-services/{chunkingServiceId}`]: { valid: {}, required: [], fields: chunkingFields },
  [`POST ${W}/embedding-services`]: {
    valid: { name: 'spoilt', provider: 'mock', modelName: 'm', embeddingDimension: 3 },
    required: ['name', 'provider', 'modelName', 'embeddingDimension'],
    fields: { embeddingServiceId: id, ...embeddingFields },
  },
  [`PATCH ${W}/embedding-services/{embeddingServiceId}`]: {
    valid: {},
    required: [],
    fields: embeddingFields,
  },
  [`POST ${W}/reranking-services`]: {
    valid: { name: 'spoilt', provider: 'cohere', modelName: 'm' },
    required: ['name', 'provider', 'modelName'],
    fields: { rerankingServiceId: id, ...rerankingFields },
  },
  [`PATCH ${W}/reranking-services/{rerankingServiceId}`]: {
    valid: {},
    required: [],
    fields: rerankingFields,
  },
  [`POST ${W}/llm-services`]: {
    valid: { name: 'spoilt', provider: 'ollama', modelName: 'm' },
    required: ['name', 'provider', 'modelName'],
    fields: { llmServiceId: id, ...llmFields },
  },
  [`PATCH ${W}/llm-services/{llmServiceId}`]: { valid: {}, required: [], fields: llmFields },
  [`POST ${W}/mcp-servers`]: {
    valid: { label: 'spoilt', url: 'https://tools.example.com/mcp' },
    required: ['label', 'url'],
    strict: true,
    fields: mcpServerFields,
  },
  [`PATCH ${W}/mcp-servers/{mcpServerId}`]: {
    valid: {},
    required: [],
    strict: true,
    fields: mcpServerFields,
  },
  [`POST ${W}/knowledge-bases`]: {
    valid: { name: 'spoilt' },
    required: ['name'],
    fields: {
      knowledgeBaseId: id,
      name: baseName,
      embeddingServiceId: id,
      chunkingServiceId: id,
      vectorCollection: { ...textOrNull, codes: ['validation_error', 'vector_collection_not_allowed'] },
      attach: flag,
      ...baseFields,
    },
  },
  [`POST ${W}/knowledge-bases/import`]: {
    valid: { header: archiveHeader },
    required: ['header'],
    strict: true,
    fields: {
      header: { ...text, codes: ['validation_error', 'archive_not_supported', 'archive_damaged'] },
      name: baseName,
      embeddingServiceId: id,
    },
  },
  [`POST ${KB}/ingest/import`]: {
    valid: { from: 1, lines: ['{}'] },
    required: ['from', 'lines'],
    strict: true,
    fields: { from: positive, lines: listOfText },
  },
  [`PATCH ${KB}`]: {
    valid: {},
    required: [],
    strict: true,
    fields: { ...baseFields, queryLog: flag, policyDsl: textOrNull, policyEnabled: flag },
  },
  [`POST ${KB}/reindex`]: {
    valid: {},
    required: [],
    strict: true,
    fields: { chunkingServiceId: id, embeddingServiceId: id },
  },
  [`PATCH ${KB}/folders`]: {
    valid: { path: 'guides', description: 'spoilt' },
    required: ['path', 'description'],
    strict: true,
    fields: { path: folderPath, description: folderDescription },
  },
  [`POST ${KB}/rename`]: {
    valid: { name: 'spoilt' },
    required: ['name'],
    strict: true,
    fields: { name: baseName },
  },
  [`POST ${KB}/search`]: { valid: { text: 'spoilt' }, required: ['text'], fields: searchFields },
  [`POST ${KB}/search/why-not`]: {
    valid: { text: 'spoilt', documentId: '00000000-0000-4000-8000-000000000000' },
    required: ['text', 'documentId'],
    fields: { ...rankingFields, documentId: id },
  },
  [`POST ${W}/search`]: {
    valid: { text: 'spoilt' },
    required: ['text'],
    fields: { ...searchFields, knowledgeBaseIds: ids },
  },
  [`POST ${KB}/filters`]: {
    valid: { name: 'spoilt', filter: { lang: 'en' } },
    required: ['name', 'filter'],
    fields: { knowledgeFilterId: id, name, description, filter: savedFilter },
  },
  [`PATCH ${KB}/filters/{knowledgeFilterId}`]: {
    valid: {},
    required: [],
    fields: { name, description, filter: savedFilter },
  },
  [`POST ${KB}/documents`]: { valid: {}, required: [], fields: { documentId: id, ...documentFields } },
  [`PATCH ${KB}/documents/{documentId}`]: { valid: {}, required: [], fields: documentFields },
  [`POST ${KB}/documents/bulk-delete`]: {
    valid: { documentIds: ['9b1c1a52-6f0e-4c0e-9d53-2f3a4b5c6d7e'] },
    required: ['documentIds'],
    fields: { documentIds, deletionId: id },
  },
  [`POST ${KB}/documents/trash/bulk-restore`]: {
    valid: { entryIds: ['9b1c1a52-6f0e-4c0e-9d53-2f3a4b5c6d7e'] },
    required: ['entryIds'],
    fields: { entryIds: documentIds },
  },
  [`POST ${KB}/documents/trash/bulk-delete`]: {
    valid: { entryIds: ['9b1c1a52-6f0e-4c0e-9d53-2f3a4b5c6d7e'] },
    required: ['entryIds'],
    fields: { entryIds: documentIds },
  },
  [`POST ${KB}/ingest/check`]: {
    valid: { files: [{ sourceFilename: 'a.pdf', fileHash: 'a'.repeat(64) }] },
    required: ['files'],
    fields: { files: checkedFiles },
  },
  [`POST ${KB}/ingest`]: { valid: { text: 'spoilt' }, required: ['text'], fields: ingestFields },
  [`POST ${W}/principals`]: {
    valid: { principalId: 'spoilt' },
    required: ['principalId'],
    strict: true,
    fields: { principalId: { ...principal, wrong: [...principal.wrong, null] }, ...principalFields },
  },
  [`PATCH ${W}/principals/{principalId}`]: {
    valid: {},
    required: [],
    strict: true,
    fields: principalFields,
  },
  [`POST ${W}/policy/compile-preview`]: {
    valid: { dsl: "status = 'open'" },
    required: ['dsl'],
    strict: true,
    fields: { dsl: { ...text, wrong: [...text.wrong, 'x'.repeat(4_001)] }, principalId: text },
  },
  [`POST ${W}/policy/explain`]: {
    valid: { principalId: 'alice', knowledgeBaseId: someId, documentId: someId },
    required: ['principalId', 'knowledgeBaseId', 'documentId'],
    strict: true,
    fields: { principalId: text, ...documentKeyFields, policyDsl: text, at: timestamp },
  },
  [`POST ${W}/policy/viewers`]: {
    valid: { knowledgeBaseId: someId, documentId: someId },
    required: ['knowledgeBaseId', 'documentId'],
    strict: true,
    fields: { ...documentKeyFields, at: timestamp },
  },
  [`POST ${W}/policy/documents`]: {
    valid: { principalId: 'alice', knowledgeBaseId: someId },
    required: ['principalId', 'knowledgeBaseId'],
    strict: true,
    fields: { principalId: text, knowledgeBaseId: id, at: timestamp },
  },
  [`POST ${W}/policy/counts`]: {
    valid: { principalId: 'alice' },
    required: ['principalId'],
    strict: true,
    fields: { principalId: text, at: timestamp },
  },
  [`POST ${W}/policy/diff`]: {
    valid: { knowledgeBaseId: someId, policyDsl: null },
    required: ['knowledgeBaseId', 'policyDsl'],
    strict: true,
    fields: {
      knowledgeBaseId: id,
      policyDsl: { ...textOrNull, wrong: [...textOrNull.wrong, ''] },
      documentsListed: { ...countOrNull, wrong: [...countOrNull.wrong, null, 101] },
    },
  },
  [`POST ${W}/playground/execute`]: {
    valid: { commandName: 'find', collection: 'spoilt', command: { find: {} } },
    required: ['commandName', 'command'],
    fields: {
      commandName: text,
      targetKind: choice,
      collection: textOrNull,
      table: textOrNull,
      command,
    },
  },
  [`POST ${W}/api-keys`]: {
    valid: { label: 'spoilt' },
    required: ['label'],
    fields: { label, role: choice, scopes, expiresAt: future, principalId: principal },
  },
  [`POST ${W}/api-keys/{keyId}/rotate`]: {
    valid: {},
    required: [],
    fields: { graceSeconds: grace },
  },
  'POST /setup/env': {
    valid: { values: {} },
    required: ['values'],
    fields: { values: managedValues },
  },
  [`POST ${W}/agents`]: {
    valid: { name: 'spoilt' },
    required: ['name'],
    fields: { agentId: id, ...agentFields },
  },
  [`PATCH ${W}/agents/{agentId}`]: { valid: {}, required: [], strict: true, fields: agentFields },
  [`POST ${W}/agents/from-template`]: {
    valid: { templateId: 'sage' },
    required: ['templateId'],
    strict: true,
    fields: { templateId: text },
  },
  [`POST ${conversations}`]: {
    valid: {},
    required: [],
    fields: { conversationId: id, ...conversationFields },
  },
  [`PATCH ${conversations}/{conversationId}`]: {
    valid: {},
    required: [],
    strict: true,
    fields: conversationFields,
  },
  [`POST ${conversations}/{conversationId}/messages`]: {
    valid: { content: 'spoilt' },
    required: ['content'],
    fields: messageFields,
  },
  [`POST ${conversations}/{conversationId}/messages/stream`]: {
    valid: { content: 'spoilt' },
    required: ['content'],
    fields: messageFields,
  },
  [`POST ${conversations}/{conversationId}/approvals/{approvalId}`]: {
    valid: { decision: 'once' },
    required: ['decision'],
    strict: true,
    fields: { decision: choice },
  },
  [`POST ${W}/openai/v1/chat/completions`]: {
    valid: { model: 'spoilt', messages: [{ role: 'user', content: 'spoilt' }] },
    required: ['model', 'messages'],
    fields: {
      model: { ...text, wrong: [...text.wrong, 'x'.repeat(201)] },
      messages: completionMessages,
      stream: flagOrNull,
      max_tokens: positiveOrNull,
      max_completion_tokens: positiveOrNull,
    },
  },
  [`POST ${W}/mcp-servers/{mcpServerId}/review`]: {
    valid: { accept: [{ name: 'spoilt', hash: `sha256:${'0'.repeat(64)}` }] },
    required: ['accept'],
    strict: true,
    fields: { accept: reviews },
  },
  [`POST ${W}/mcp-servers/{mcpServerId}/sign-in`]: {
    valid: { redirectUri: 'http://127.0.0.1:49152/callback' },
    required: ['redirectUri'],
    strict: true,
    fields: { redirectUri: { ...address, wrong: [...address.wrong, null, 'http://192.0.2.1/callback'] } },
  },
  [`POST ${W}/mcp-servers/{mcpServerId}/sign-in/finish`]: {
    valid: { state: 'spoilt', code: 'spoilt' },
    required: ['state', 'code'],
    strict: true,
    fields: {
      state: { ...text, wrong: [...text.wrong, 'x'.repeat(201)] },
      code: { ...text, wrong: [...text.wrong, 'x'.repeat(8_193)] },
      iss: text,
    },
  },
  [`POST ${KB}/records`]: {
    valid: { records: [{ id: 'spoilt', vector: [1, 0, 0] }] },
    required: ['records'],
    fields: { records },
  },
}

export const batchRoute = `POST ${KB}/ingest/batch`
export const uploadRoutes: readonly string[] = [
  `POST ${KB}/ingest/file`,
  `POST ${W}/chunk-preview`,
  `POST ${conversations}/{conversationId}/attachments`,
]
/** Uses the MCP protocol. `test/mcp/route.test.ts` covers its input. */
export const mcpRoute = `POST ${W}/mcp`

/** Not configured here. `test/wire/auth.test.ts` covers their input. */
export const signInRoutes: readonly string[] = ['POST /auth/device/token', 'POST /auth/device/refresh']

/** Routes that change something and take no body. */
export const routesWithoutBody: readonly string[] = [
  'POST /auth/refresh',
  'POST /auth/logout',
  'POST /auth/device/authorize',
  `POST ${W}/test-connection`,
  `POST ${W}/connect/verify`,
  'POST /setup/restart',
  `POST ${W}/mcp-servers/{mcpServerId}/test-connection`,
  `POST ${W}/jobs/{jobId}/cancel`,
  `POST ${W}/knowledge-bases/{knowledgeBaseId}/compact`,
  `POST ${KB}/documents/trash/{entryId}/restore`,
  `POST ${W}/agents/{agentId}/conversations/{conversationId}/messages/{messageId}/select`,
]

/** Routes that reject unverified callers. `test/wire/secret-releases.test.ts` covers their input. */
export const ownerRoutes: readonly string[] = [
  'POST /api/v1/secret-releases',
  'DELETE /api/v1/secret-releases/{releaseId}',
]

/** Vectors are tested separately: a search takes one instead of text, and an upsert takes one per record. */
export const vectors = vector

/** Codes of unknown IDs, by path parameter. */
const unknownCodes: Readonly<Record<string, string>> = {
  workspaceId: 'workspace_not_found',
  knowledgeBaseId: 'knowledge_base_not_found',
  documentId: 'document_not_found',
  knowledgeFilterId: 'knowledge_filter_not_found',
  chunkingServiceId: 'chunking_service_not_found',
  embeddingServiceId: 'embedding_service_not_found',
  rerankingServiceId: 'reranking_service_not_found',
  llmServiceId: 'llm_service_not_found',
  mcpServerId: 'mcp_server_not_found',
  jobId: 'job_not_found',
  keyId: 'api_key_not_found',
  agentId: 'agent_not_found',
  conversationId: 'conversation_not_found',
  entryId: 'document_not_found',
  attachmentId: 'attachment_not_found',
  messageId: 'chat_message_not_found',
  approvalId: 'not_found',
  principalId: 'principal_not_found',
}

/**
 * Returns the code of an unknown ID in a path. A conversation is not found below an agent that it does not belong
 * to.
 */
export function codeOfUnknown(route: string, param: string): string {
  return param === 'agentId' && route.includes('{conversationId}')
    ? 'conversation_not_found'
    : unknownCodes[param]!
}

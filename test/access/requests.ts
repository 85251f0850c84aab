import type { RuleRow } from './rules-table.ts'

/** IDs in the generated requests. */
export const here = '11111111-1111-4111-8111-111111111111'
export const elsewhere = '22222222-2222-4222-8222-222222222222'
const someId = '33333333-3333-4333-8333-333333333333'
/** ID of a record that the caller created; all other records belong to other callers. */
export const ownId = '44444444-4444-4444-8444-444444444444'

/** Stored fields of the workspace or knowledge base before a change. */
export const storedFields = {
  name: 'stored',
  rlacEnabled: false,
  policyDsl: "status = 'open'",
  policyEnabled: true,
}

/** A valid body for each route, by its name in the tables. */
const bodies: Readonly<Record<string, unknown>> = {
  'POST /auth/device/token': { device_code: 'code' },
  'POST /auth/device/refresh': { refresh_token: 'token' },
  'POST /setup/env': { values: {} },
  'POST /api/v1/workspaces': { name: 'made' },
  'PATCH W': { name: 'renamed' },
  'PATCH W that sends the stored `rlacEnabled`': { name: 'renamed', rlacEnabled: storedFields.rlacEnabled },
  'PATCH W that changes `rlacEnabled`': { name: 'renamed', rlacEnabled: !storedFields.rlacEnabled },
  'POST W/api-keys': { label: 'made' },
  'POST W/api-keys/{keyId}/rotate': {},
  'POST W/playground/execute': { commandName: 'findCollections', command: { findCollections: {} } },
  'POST W/principals': { principalId: 'made' },
  'PATCH W/principals/{principalId}': {},
  'POST W/policy/compile-preview': { dsl: "status = 'open'" },
  'POST W/policy/explain': { principalId: 'alice', knowledgeBaseId: someId, documentId: someId },
  'POST W/policy/viewers': { knowledgeBaseId: someId, documentId: someId },
  'POST W/policy/documents': { principalId: 'alice', knowledgeBaseId: someId },
  'POST W/policy/counts': { principalId: 'alice' },
  'POST W/policy/diff': { knowledgeBaseId: someId, policyDsl: null },
  'POST W/chunking-services': { name: 'made', engine: 'langchain_ts' },
  'PATCH W/chunking-services/{chunkingServiceId}': {},
  'POST W/embedding-services': { name: 'made', provider: 'mock', modelName: 'm', embeddingDimension: 3 },
  'PATCH W/embedding-services/{embeddingServiceId}': {},
  'POST W/reranking-services': { name: 'made', provider: 'cohere', modelName: 'm' },
  'PATCH W/reranking-services/{rerankingServiceId}': {},
  'POST W/llm-services': { name: 'made', provider: 'ollama', modelName: 'm' },
  'PATCH W/llm-services/{llmServiceId}': {},
  'POST /api/v1/secret-releases': { ref: 'env:KEY', host: 'models.example.com' },
  'POST W/mcp': { jsonrpc: '2.0', id: 1, method: 'ping' },
  'POST W/mcp-servers': { label: 'made', url: 'https://tools.example.com/mcp' },
  'PATCH W/mcp-servers/{mcpServerId}': {},
  'POST W/mcp-servers/{mcpServerId}/sign-in': { redirectUri: 'http://127.0.0.1:49152/callback' },
  'POST W/mcp-servers/{mcpServerId}/sign-in/finish': { state: 'state', code: 'code' },
  'POST W/mcp-servers/{mcpServerId}/review': {
    accept: [{ name: 'search', hash: `sha256:${'0'.repeat(64)}` }],
  },
  'POST W/knowledge-bases': { name: 'made' },
  'PATCH KB': {},
  'PATCH KB that sends the stored policy': {
    description: 'changed',
    policyDsl: storedFields.policyDsl,
    policyEnabled: storedFields.policyEnabled,
  },
  'PATCH KB that clears `policyDsl`': { description: 'changed', policyDsl: null },
  'PATCH KB that turns `policyEnabled` off': { description: 'changed', policyEnabled: false },
  'PATCH KB that turns `queryLog` on': { description: 'changed', queryLog: true },
  'POST KB/reindex': {},
  'POST KB/rename': { name: 'renamed' },
  'POST W/knowledge-bases/import': { header: '{}' },
  'POST KB/ingest/import': { from: 1, lines: ['{}'] },
  'POST KB/search': { text: 'words' },
  'POST KB/search/why-not': { text: 'words', documentId: someId },
  'POST W/search': { text: 'words' },
  'POST KB/filters': { name: 'made', filter: {} },
  'PATCH KB/filters/{knowledgeFilterId}': {},
  'PATCH KB/folders': { path: '', description: 'words' },
  'POST KB/documents': {},
  'PATCH KB/documents/{documentId}': {},
  'POST KB/documents/bulk-delete': { documentIds: [someId] },
  'POST KB/documents/trash/bulk-restore': { entryIds: [someId] },
  'POST KB/documents/trash/bulk-delete': { entryIds: [someId] },
  'POST KB/ingest': { text: 'words' },
  'POST KB/ingest/file': form('words'),
  'POST KB/ingest/check': { files: [{ sourceFilename: 'a', fileHash: 'a'.repeat(64) }] },
  'POST KB/ingest/batch': { text: 'words' },
  'POST W/chunk-preview': previewForm(),
  'POST W/agents': { name: 'made' },
  'POST W/agents/from-template': { templateId: 'sage' },
  'PATCH W/agents/{agentId}': {},
  'POST W/agents/{agentId}/conversations': {},
  'PATCH W/agents/{agentId}/conversations/{conversationId}': {},
  'POST W/agents/{agentId}/conversations/{conversationId}/attachments': form('words'),
  'POST W/agents/{agentId}/conversations/{conversationId}/messages': { content: 'words' },
  'POST W/agents/{agentId}/conversations/{conversationId}/messages/stream': { content: 'words' },
  'POST W/agents/{agentId}/conversations/{conversationId}/approvals/{approvalId}': { decision: 'once' },
  'POST W/openai/v1/chat/completions': { model: 'made', messages: [{ role: 'user', content: 'words' }] },
  'POST KB/records': { records: [{ id: 'one', vector: [1, 0, 0] }] },
}

/** Returns a valid request for the route of a row, so that only access can prevent it. */
export function requestOf(
  { line, route, condition }: RuleRow,
  headers: Readonly<Record<string, string>>,
): Request {
  const [method, path] = route!.split(' ') as [string, string]
  const key = line.replaceAll(/^`([^`]+)`/g, '$1')
  const sent = bodies[key]
  const id = condition === 'that the caller started' ? ownId : someId
  if (sent instanceof FormData)
    return new Request(`http://localhost${fillPath(path, id)}`, {
      method,
      body: sent,
      headers: { ...headers },
    })
  const body = key in bodies ? JSON.stringify(sent) : null
  const mediaType = path.endsWith('/batch') ? 'application/x-ndjson' : 'application/json'
  return new Request(`http://localhost${fillPath(path, id)}`, {
    method,
    body,
    headers: body === null ? { ...headers } : { ...headers, 'content-type': mediaType },
  })
}

function form(content: string): FormData {
  const body = new FormData()
  body.set('file', new File([content], 'words.txt'))
  return body
}

function previewForm(): FormData {
  const body = form('words')
  body.set('chunkers', '[{"engine":"workbase"}]')
  return body
}

function fillPath(path: string, id: string): string {
  return path.replace(':workspaceId', here).replace(':imageIndex', '0').replaceAll(/:\w+/g, id)
}

import { expect, test } from 'vitest'
import { filters } from '../../src/contract/filters.ts'
import { api } from '../../src/contract/index.ts'
import { apiKeys } from '../../src/contract/keys.ts'
import { mcpServers } from '../../src/contract/mcp-servers.ts'
import { type OpenApiOperation, openApiDocument } from '../../src/contract/openapi.ts'
import { principals } from '../../src/contract/principals.ts'
import { chunkingServices, embeddingServices, rerankingServices } from '../../src/contract/services.ts'
import { makeBase } from '../harness/resources.ts'
import { openTestChat, type TestChat } from '../harness/test-chat.ts'
import { unknownId } from './shapes.ts'

/** Statuses of examples that depend on state: a pending approval, an identity provider, a begun import or a remote database. */
const otherwise: Readonly<Record<string, [status: number, code: string]>> = {
  'auth.deviceToken': [404, 'not_configured'],
  'auth.deviceRefresh': [404, 'not_configured'],
  'accessTools.explain': [404, 'knowledge_base_not_found'],
  'accessTools.viewers': [404, 'knowledge_base_not_found'],
  'accessTools.documents': [404, 'knowledge_base_not_found'],
  'accessTools.diff': [404, 'knowledge_base_not_found'],
  'kb.importLines': [409, 'conflict'],
  'kb.reindex': [404, 'chunking_service_not_found'],
  'kb.whyNot': [404, 'document_not_found'],
  'playground.execute': [422, 'unsupported_workspace_kind'],
  'mcpServers.review': [409, 'conflict'],
  'mcpServers.beginSignIn': [409, 'conflict'],
  'mcpServers.finishSignIn': [400, 'invalid_state'],
  'chat.decide': [404, 'not_found'],
}

const document = openApiDocument(api, { version: '0.0.0' })
const withBody = Object.entries(document.paths).flatMap(([path, operations]) =>
  Object.entries(operations).flatMap(([method, operation]) =>
    operation.requestBody ? [{ path, method: method.toUpperCase(), operation }] : [],
  ),
)

test('accepts every example of the API reference with the documented status', {
  timeout: 60_000,
}, async () => {
  const wb = await openTestChat({
    agent: { name: 'Handbook' },
    server: true,
    config: { mcp: { enabled: true } },
    listTools: async () => [],
  })
  const ids = await idsIn(wb)
  const answers: Record<string, unknown> = {}
  for (const { path, method, operation } of withBody) {
    wb.model.script({ text: 'You have 28 days.' })
    const url = `http://localhost${path.replaceAll(/\{(\w+)\}/g, (_, name: string) => ids[name]!)}`
    const answer = await wb.runtime.fetch(new Request(url, { method, ...bodyOf(operation) }), 'operator')
    const text = await answer.text()
    const success = Object.keys(operation.responses).filter(status => status.startsWith('2'))
    const code =
      answer.status < 400 ? 'success' : (JSON.parse(text) as { error: { code: string } }).error.code
    const isDocumented = success.includes(String(answer.status))
    answers[operation.operationId] = isDocumented ? 'success' : [answer.status, code]
    if (!isDocumented)
      expect(operation.responses, operation.operationId).toHaveProperty(String(answer.status))
  }
  const expected = withBody.map(({ operation: { operationId } }) => [
    operationId,
    otherwise[operationId] ?? 'success',
  ])
  expect(answers).toEqual(Object.fromEntries(expected))
})

function bodyOf({ requestBody }: OpenApiOperation): {
  body: string | FormData
  headers: Record<string, string>
} {
  const [mediaType, { example }] = Object.entries(requestBody!.content)[0]!
  if (mediaType !== 'multipart/form-data')
    return {
      body: typeof example === 'string' ? example : JSON.stringify(example),
      headers: { 'content-type': mediaType, accept: 'application/json, text/event-stream' },
    }
  const { file, ...texts } = example as { file: string }
  const form = new FormData()
  form.set('file', new File([file], 'vacation.md', { type: 'text/markdown' }))
  for (const [name, value] of Object.entries(texts)) form.set(name, JSON.stringify(value))
  return { body: form, headers: {} }
}

/** Path parameters of existing resources in the workspace of a conversation. */
async function idsIn(wb: TestChat): Promise<Record<string, string>> {
  const { agentId, workspaceId, llmServiceId } = wb.agent
  const { conversationId } = wb.conversation
  const base = await makeBase(wb, { workspaceId })
  const { documentId } = (await base.ingest('Some words about gliders.')).document
  const inWorkspace = { params: { workspaceId } }
  const [chunking] = (await wb.call(chunkingServices.list, inWorkspace)).items
  const [embedding] = (await wb.call(embeddingServices.list, inWorkspace)).items
  const reranking = await wb.call(rerankingServices.create, {
    ...inWorkspace,
    body: { name: 'r', provider: 'cohere', modelName: 'm' },
  })
  const { key } = await wb.call(apiKeys.create, { ...inWorkspace, body: { label: 'k' } })
  const { principalId } = await wb.call(principals.create, { ...inWorkspace, body: { principalId: 'bob' } })
  const { mcpServerId } = await wb.call(mcpServers.create, {
    ...inWorkspace,
    body: { label: 't', url: 'https://tickets.example.com/mcp' },
  })
  const { knowledgeFilterId } = await wb.call(filters.create, {
    params: base.params,
    body: { name: 'f', filter: {} },
  })
  return {
    ...base.params,
    ...{ documentId, knowledgeFilterId, agentId, conversationId, principalId, mcpServerId },
    ...{ keyId: key.keyId, approvalId: unknownId, llmServiceId: llmServiceId! },
    chunkingServiceId: chunking!.chunkingServiceId,
    embeddingServiceId: embedding!.embeddingServiceId,
    rerankingServiceId: reranking.rerankingServiceId,
  }
}

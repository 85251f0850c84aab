import { expect } from 'vitest'
import { limits } from '../../../src/contract/limits.ts'
import { serveOverHttp } from '../../harness/http-runtime.ts'
import { type Base, makeBase, makeMockService, makeWorkspace } from '../../harness/resources.ts'
import { open, type TestResponse, type TestRuntime, type TestRuntimeOptions } from '../../harness/runtime.ts'
import { unknownId } from '../shapes.ts'
import type { Provocation, Provocations } from './provocation.ts'

/** A workspace with a knowledge base, in a runtime over HTTP. */
async function furnished(
  options?: TestRuntimeOptions,
): Promise<{ wb: TestRuntime; base: Base; W: string; workspaceId: string }> {
  const wb = await serveOverHttp(await open(options))
  const base = await makeBase(wb)
  const { workspaceId } = base.params
  return { wb, base, workspaceId, W: `/api/v1/workspaces/${workspaceId}` }
}

type Place = Awaited<ReturnType<typeof furnished>>

/** Sends a request to a runtime after the given preparation. */
function asked(
  line: (place: Place) => string | Promise<string>,
  body?: (place: Place) => object,
): Provocation {
  return async () => {
    const place = await furnished()
    return place.wb.send(await line(place), body?.(place))
  }
}

async function made({ wb }: Place, path: string, body: object, id: string): Promise<string> {
  const answer = await wb.send(`POST ${path}`, body)
  if (answer.status !== 201) throw new Error(answer.text)
  return String(answer.body[id])
}

async function agentOf({ wb, W }: Place): Promise<string> {
  const { body } = await wb.send(`GET ${W}/agents`)
  return (body.items as { agentId: string }[])[0]!.agentId
}

const reranker = { name: 'reranker', provider: 'cohere', modelName: 'm' }
const model = { name: 'model', provider: 'ollama', modelName: 'm' }

/** Deletes a service that is in use. */
function inUse(
  kind: string,
  service: object,
  bind: (place: Place, id: string) => Promise<TestResponse>,
): Provocation {
  return async () => {
    const place = await furnished()
    const path = `${place.W}/${kind}-services`
    const id = await made(place, path, service, `${kind}ServiceId`)
    const bound = await bind(place, id)
    if (bound.status >= 300) throw new Error(bound.text)
    return place.wb.send(`DELETE ${path}/${id}`)
  }
}

/** Bodies of two knowledge bases that conflict by name or by collection. */
function twice(body: object): Provocation {
  return async () => {
    const { wb, W } = await furnished()
    await wb.send(`POST ${W}/knowledge-bases`, { name: 'twice' })
    return wb.send(`POST ${W}/knowledge-bases`, { name: 'twice', ...body })
  }
}

export const resources = {
  workspace_not_found: asked(() => `GET /api/v1/workspaces/${unknownId}`),
  workspace_name_conflict: async () => {
    const { wb, workspaceId } = await furnished()
    const { name } = (await wb.send(`GET /api/v1/workspaces/${workspaceId}`)).body
    return wb.send('POST /api/v1/workspaces', { name })
  },
  workspace_database_conflict: async () => {
    const { wb } = await furnished()
    const database = { kind: 'astra', url: 'https://db.example.com', keyspace: 'k' }
    await wb.send('POST /api/v1/workspaces', { name: 'first', ...database })
    return wb.send('POST /api/v1/workspaces', { name: 'second', ...database })
  },
  workspace_misconfigured: async () => {
    const { wb } = await furnished()
    const { workspaceId } = await makeWorkspace(wb, { kind: 'astra' })
    return wb.send(`POST /api/v1/workspaces/${workspaceId}/knowledge-bases`, { name: 'papers' })
  },
  driver_unavailable: async () => {
    const { wb } = await furnished()
    const { workspaceId } = await makeWorkspace(wb, { kind: 'openrag' })
    return wb.send(`POST /api/v1/workspaces/${workspaceId}/knowledge-bases`, { name: 'papers' })
  },
  unsupported_workspace_kind: asked(
    ({ W }) => `POST ${W}/playground/execute`,
    () => ({
      commandName: 'find',
      collection: 'c',
      command: { find: {} },
    }),
  ),
  invalid_playground_command: async () => {
    const { wb } = await furnished()
    const { workspaceId } = await makeWorkspace(wb, {
      kind: 'astra',
      url: 'https://db.example.com',
      credentials: { token: 'env:DB_TOKEN' },
    })
    const command = { commandName: 'find', collection: 'c', command: { insertOne: {} } }
    return wb.send(`POST /api/v1/workspaces/${workspaceId}/playground/execute`, command)
  },
  conflict: asked(
    ({ W }) => `POST ${W}/knowledge-bases`,
    ({ base }) => ({
      name: 'another',
      knowledgeBaseId: base.params.knowledgeBaseId,
    }),
  ),
  kb_name_taken: twice({}),
  archive_damaged: asked(
    ({ W }) => `POST ${W}/knowledge-bases/import`,
    () => ({ header: '{"format":"workbase-knowledge-base","version":1}' }),
  ),
  archive_not_supported: asked(
    ({ W }) => `POST ${W}/knowledge-bases/import`,
    () => ({ header: '{}' }),
  ),
  collection_name_taken: twice({ attach: true, vectorCollection: 'twice' }),
  collection_not_found: asked(
    ({ W }) => `POST ${W}/knowledge-bases`,
    () => ({
      name: 'nowhere',
      attach: true,
      vectorCollection: 'nowhere',
    }),
  ),
  kb_name_must_match_collection: asked(
    ({ W }) => `POST ${W}/knowledge-bases`,
    () => ({
      name: 'one',
      attach: true,
      vectorCollection: 'other',
    }),
  ),
  vector_collection_required: asked(
    ({ W }) => `POST ${W}/knowledge-bases`,
    () => ({ name: 'one', attach: true }),
  ),
  vector_collection_not_allowed: asked(
    ({ W }) => `POST ${W}/knowledge-bases`,
    () => ({
      name: 'one',
      vectorCollection: 'one',
    }),
  ),
  vectorize_service_mismatch: async () => {
    const { wb, W, workspaceId } = await furnished()
    await wb.send(`POST ${W}/knowledge-bases`, { name: 'fitted' })
    const { embeddingServiceId } = await makeMockService(wb, workspaceId, { embeddingDimension: 128 })
    return wb.send(`POST ${W}/knowledge-bases`, {
      name: 'fitted',
      attach: true,
      vectorCollection: 'fitted',
      embeddingServiceId,
    })
  },
  knowledge_base_not_found: asked(({ W }) => `GET ${W}/knowledge-bases/${unknownId}`),
  knowledge_filter_not_found: asked(({ base }) => `GET ${base.path}/filters/${unknownId}`),
  folder_not_described: asked(
    ({ base }) => `PATCH ${base.path}/folders`,
    () => ({ path: 'guides', description: null }),
  ),
  folder_limit_exceeded: async () => {
    const { wb, base } = await furnished()
    const describe = (n: number) =>
      wb.send(`PATCH ${base.path}/folders`, { path: `folder ${n}`, description: 'words' })
    for (let n = 0; n < limits.describedFolders; n++) await describe(n)
    expect((await describe(0)).status).toBe(200)
    return describe(limits.describedFolders)
  },
  document_not_found: asked(({ base }) => `GET ${base.path}/documents/${unknownId}`),
  restore_conflict: async () => {
    const { wb, base } = await furnished()
    const { document } = await base.ingest('First.', { sourceFilename: 'a.txt' })
    await wb.send(`DELETE ${base.path}/documents/${document.documentId}`)
    await base.ingest('Second.', { sourceFilename: 'a.txt' })
    const [entry] = (await wb.send(`GET ${base.path}/documents/trash`)).body.items as { entryId: string }[]
    return wb.send(`POST ${base.path}/documents/trash/${entry!.entryId}/restore`)
  },
  job_not_found: asked(({ W }) => `GET ${W}/jobs/${unknownId}`),
  chunking_service_not_found: asked(({ W }) => `GET ${W}/chunking-services/${unknownId}`),
  embedding_service_not_found: asked(({ W }) => `GET ${W}/embedding-services/${unknownId}`),
  reranking_service_not_found: asked(({ W }) => `GET ${W}/reranking-services/${unknownId}`),
  llm_service_not_found: asked(({ W }) => `GET ${W}/llm-services/${unknownId}`),
  mcp_server_not_found: asked(({ W }) => `GET ${W}/mcp-servers/${unknownId}`),
  mcp_sign_in_failed: asked(
    async place => {
      const server = { label: 'tools', url: 'http://127.0.0.1:9/mcp', authType: 'oauth2' }
      const id = await made(place, `${place.W}/mcp-servers`, server, 'mcpServerId')
      return `POST ${place.W}/mcp-servers/${id}/sign-in`
    },
    () => ({ redirectUri: 'http://127.0.0.1:49152/callback' }),
  ),
  principal_not_found: asked(({ W }) => `GET ${W}/principals/nobody`),
  api_key_not_found: asked(({ W }) => `DELETE ${W}/api-keys/${unknownId}`),
  agent_not_found: asked(({ W }) => `GET ${W}/agents/${unknownId}`),
  agent_template_not_found: asked(
    ({ W }) => `POST ${W}/agents/from-template`,
    () => ({ templateId: 'none' }),
  ),
  agent_tool_unresolved: asked(
    ({ W }) => `POST ${W}/agents`,
    () => ({ name: 'one', toolIds: ['native:fetch'] }),
  ),
  conversation_not_found: asked(
    async place => `GET ${place.W}/agents/${await agentOf(place)}/conversations/${unknownId}`,
  ),
  chat_message_not_found: asked(async place => {
    const conversations = `${place.W}/agents/${await agentOf(place)}/conversations`
    const conversationId = await made(place, conversations, {}, 'conversationId')
    return `GET ${conversations}/${conversationId}/messages/${unknownId}`
  }),
  policy_principal_required: async () => {
    const { wb } = await furnished()
    const { workspaceId } = await makeWorkspace(wb, { rlacEnabled: true })
    const W = `/api/v1/workspaces/${workspaceId}`
    const agents = (await wb.send(`GET ${W}/agents`)).body.items as { agentId: string }[]
    return wb.send(`POST ${W}/agents/${agents[0]!.agentId}/conversations`, {})
  },
  policy_denied: async () => {
    const { wb } = await furnished()
    const { workspaceId } = await makeWorkspace(wb, { rlacEnabled: true })
    const W = `/api/v1/workspaces/${workspaceId}`
    const created = await wb.send(`POST ${W}/knowledge-bases`, { name: 'restricted' })
    return wb.send(`DELETE ${W}/knowledge-bases/${created.body.knowledgeBaseId}/documents/${unknownId}`)
  },
  chunking_service_in_use: inUse(
    'chunking',
    { name: 'own', engine: 'workbase' },
    ({ wb, W }, chunkingServiceId) =>
      wb.send(`POST ${W}/knowledge-bases`, { name: 'bound', chunkingServiceId }),
  ),
  embedding_service_in_use: inUse(
    'embedding',
    { name: 'own', provider: 'mock', modelName: 'm', embeddingDimension: 3 },
    ({ wb, W }, embeddingServiceId) =>
      wb.send(`POST ${W}/knowledge-bases`, { name: 'bound', embeddingServiceId }),
  ),
  reranking_service_in_use: inUse('reranking', reranker, ({ wb, base }, rerankingServiceId) =>
    wb.send(`PATCH ${base.path}`, { rerankingServiceId }),
  ),
  llm_service_in_use: inUse('llm', model, ({ wb, W }, llmServiceId) =>
    wb.send(`POST ${W}/agents`, { name: 'bound', llmServiceId }),
  ),
} satisfies Provocations

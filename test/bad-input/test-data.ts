import { freshName, idOf, ingest, makeKnowledgeBase, makeVectorPlace } from '../wire/fixtures.ts'
import { file, form } from '../wire/forms.ts'
import type { Reply, Row, Wire } from '../wire/harness.ts'

/** IDs for paths: of a filled workspace, and of another one. */
export interface TestData {
  readonly own: Readonly<Record<string, string>>
  readonly foreign: Readonly<Record<string, string>>
  /** Every registered code with its status. */
  readonly codes: ReadonlyMap<string, number>
  /** Method and path of every route, as listed in the OpenAPI document. */
  readonly routes: readonly string[]
}

/** Fills two workspaces with one resource of each kind, and reads the codes and routes from the server. */
export async function createTestData(wire: Wire): Promise<TestData> {
  const registered = (await wire.get('/error-codes')).codes as { code: string; defaultStatus: number }[]
  const described = (await wire.get('/api/v1/openapi.json')) as {
    paths?: Record<string, Record<string, unknown>>
  }
  return {
    own: await createResources(wire),
    foreign: await createResources(wire),
    codes: new Map(registered.map(({ code, defaultStatus }) => [code, defaultStatus])),
    routes: Object.entries(described.paths ?? {}).flatMap(([path, operations]) => {
      return Object.keys(operations)
        .filter(method => ['get', 'post', 'put', 'patch', 'delete'].includes(method))
        .map(method => `${method.toUpperCase()} ${path}`)
    }),
  }
}

/** Returns a route with IDs in place of its parameters. */
export function withPathIds(
  route: string,
  ids: Readonly<Record<string, string>>,
  other: Record<string, string> = {},
): string {
  return route.replace(/\{(\w+)\}/g, (_, name: string) => other[name] ?? ids[name] ?? name)
}

export function paramsOf(route: string): string[] {
  return [...route.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!)
}

/**
 * Describes the problem with a response to invalid input. It must be an error envelope with a registered code below
 * 500.
 */
export function problemOf(reply: Reply, codes: ReadonlyMap<string, number>): string | undefined {
  if (reply.status >= 500) return 'a server error'
  if (reply.status < 400) return 'it was taken'
  const error = (reply.body as { error?: Row } | undefined)?.error
  if (!error || Object.keys(reply.body as Row).length !== 1) return 'no envelope'
  const status = codes.get(String(error.code))
  if (status === undefined) return 'its code is not registered'
  if (status !== reply.status) return `its code stands for ${status}`
  if (typeof error.message !== 'string' || error.message === '') return 'no message'
  if (error.requestId !== reply.headers['x-request-id']) return 'another request id'
  return undefined
}

/** Returns everything that can be listed, by path, without state that the runtime changes by itself. */
export async function listEverything(wire: Wire): Promise<Record<string, unknown>> {
  const seen: Record<string, unknown> = {}
  const read = async (path: string): Promise<Row[]> => {
    const page = (await wire.get(`${path}?limit=200`)) as { items?: Row[]; nextCursor?: string | null }
    if (page.nextCursor !== null) throw new Error(`${path} has more than one page`)
    seen[path] = page.items
    return page.items ?? []
  }
  for (const { workspaceId } of await read('/api/v1/workspaces')) {
    const workspace = `/api/v1/workspaces/${workspaceId}`
    await read(`${workspace}/chunking-services`)
    await read(`${workspace}/embedding-services`)
    await read(`${workspace}/reranking-services`)
    await read(`${workspace}/llm-services`)
    await read(`${workspace}/api-keys`)
    await read(`${workspace}/agents`)
    for (const { agentId, conversationId } of await read(`${workspace}/conversations`))
      await read(`${workspace}/agents/${agentId}/conversations/${conversationId}/attachments`)
    await read(`${workspace}/principals`)
    await read(`${workspace}/mcp-servers`)
    await read(`${workspace}/jobs`)
    for (const { knowledgeBaseId } of await read(`${workspace}/knowledge-bases`)) {
      const kb = `${workspace}/knowledge-bases/${knowledgeBaseId}`
      await read(`${kb}/filters`)
      for (const { documentId } of await read(`${kb}/documents`)) {
        const chunks = `${kb}/documents/${documentId}/chunks`
        seen[chunks] = (await wire.send(`GET ${chunks}`)).body
      }
      const search = { json: { vector: [1, 0, 0], topK: 1000, includeEmbeddings: true } }
      const found = await wire.send(`POST ${kb}/search`, search)
      if (found.status === 200) seen[`${kb}/search`] = found.body
    }
  }
  return seen
}

async function createResources(wire: Wire): Promise<Record<string, string>> {
  const { workspace, kb } = await makeVectorPlace(wire)
  await makeKnowledgeBase(wire, workspace)
  const service = { name: 'spare', engine: 'langchain_ts' }
  const records = [{ id: 'kept', vector: [1, 0, 0], payload: { kept: true } }]
  await wire.send(`POST ${kb}/records`, { json: { records } })
  const minted = await wire.send(`POST ${workspace}/api-keys`, { json: { label: 'kept' } })
  const [embedding] = await wire.items(`${workspace}/embedding-services`)
  const agentId = await wire.make(`${workspace}/agents`, { name: 'kept' }, 'agentId')
  const conversations = `${workspace}/agents/${agentId}/conversations`
  const conversationId = await wire.make(conversations, { title: 'kept' }, 'conversationId')
  return {
    workspaceId: idOf(workspace),
    knowledgeBaseId: idOf(kb),
    agentId,
    conversationId,
    attachmentId: await attach(wire, `${conversations}/${conversationId}`),
    // The API cannot create a message, so none of these IDs exists.
    messageId: '5e0ab0c4-3f0f-4e51-9f27-4c2c7be6d0a1',
    imageIndex: '0',
    // No approval is pending.
    approvalId: '6e0ab0c4-3f0f-4e51-9f27-4c2c7be6d0a1',
    documentId: await ingest(wire, kb, { text: 'A document that bad input must not touch.' }),
    entryId: await trashEntry(wire, kb),
    mcpServerId: await wire.make(
      `${workspace}/mcp-servers`,
      { label: 'kept', url: 'http://127.0.0.1:9/mcp' },
      'mcpServerId',
    ),
    chunkingServiceId: await wire.make(`${workspace}/chunking-services`, service, 'chunkingServiceId'),
    embeddingServiceId: String(embedding!.embeddingServiceId),
    rerankingServiceId: await wire.make(
      `${workspace}/reranking-services`,
      { name: 'kept', provider: 'cohere', modelName: 'm' },
      'rerankingServiceId',
    ),
    llmServiceId: await wire.make(
      `${workspace}/llm-services`,
      { name: 'kept', provider: 'ollama', modelName: 'm' },
      'llmServiceId',
    ),
    recordId: 'kept',
    knowledgeFilterId: await wire.make(`${kb}/filters`, { name: 'kept', filter: {} }, 'knowledgeFilterId'),
    principalId: await wire.make(
      `${workspace}/principals`,
      { principalId: freshName('kept') },
      'principalId',
    ),
    jobId: await runJob(wire, workspace, kb),
    keyId: (minted.body as { key: { keyId: string } }).key.keyId,
  }
}

async function attach(wire: Wire, conversation: string): Promise<string> {
  const { body } = await wire.send(`POST ${conversation}/attachments`, form(file('kept')))
  return (body as { attachmentId: string }).attachmentId
}

/** Runs a job to its end, and returns its ID. */
async function runJob(wire: Wire, workspace: string, kb: string): Promise<string> {
  const { body } = await wire.send(`POST ${kb}/ingest?async=true`, { json: { text: 'A text for a job.' } })
  const { jobId } = (body as { job: { jobId: string } }).job
  await wire.send(`GET ${workspace}/jobs/${jobId}/events`)
  return jobId
}

async function trashEntry(wire: Wire, kb: string): Promise<string> {
  const documentId = await ingest(wire, kb, { text: 'A deleted document that bad input must not touch.' })
  await wire.send(`DELETE ${kb}/documents/${documentId}`)
  const [entry] = await wire.items(`${kb}/documents/trash`)
  return String(entry!.entryId)
}

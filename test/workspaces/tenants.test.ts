import { expect, test } from 'vitest'
import { attachments } from '../../src/contract/attachments.ts'
import { documents } from '../../src/contract/documents.ts'
import { filters } from '../../src/contract/filters.ts'
import { api } from '../../src/contract/index.ts'
import { apiKeys } from '../../src/contract/keys.ts'
import { mcpServers } from '../../src/contract/mcp-servers.ts'
import { principals } from '../../src/contract/principals.ts'
import type { Route } from '../../src/contract/route.ts'
import { chunkingServices, llmServices, rerankingServices } from '../../src/contract/services.ts'
import { trash } from '../../src/contract/trash.ts'
import { formOf, makeAgent, makeConversation, messageRow, writeMessages } from '../harness/agents.ts'
import { makeBase, makeMockService, uniqueName } from '../harness/resources.ts'
import { open, type TestRuntime } from '../harness/runtime.ts'
import { storeFile } from '../harness/store-file.ts'
import { enqueue } from '../jobs/ingest-jobs.ts'

/** A valid body for each route in its own workspace. */
const bodies: Record<string, (ids: Record<string, string>) => object> = {
  'kb.create': () => ({ name: 'mine' }),
  'kb.update': () => ({ description: 'taken over' }),
  'kb.importLines': () => ({ from: 1, lines: ['{}'] }),
  'kb.reindex': () => ({}),
  'kb.rename': () => ({ name: 'stolen' }),
  'kb.search': () => ({ text: 'ornithopter' }),
  'kb.whyNot': ({ documentId }) => ({ text: 'ornithopter', documentId }),
  'filters.create': () => ({ name: 'planted', filter: {} }),
  'filters.update': () => ({ name: 'taken over' }),
  'folders.update': () => ({ path: '', description: 'planted' }),
  'documents.create': () => ({ sourceFilename: 'planted.md' }),
  'documents.update': () => ({ metadata: { title: 'taken over' }, visibleTo: ['*'] }),
  'documents.bulkDelete': ({ documentId }) => ({ documentIds: [documentId] }),
  'documents.checkFiles': () => ({ files: [{ sourceFilename: 'same.md', fileHash: 'a'.repeat(64) }] }),
  'trash.bulkRestore': ({ entryId }) => ({ entryIds: [entryId] }),
  'trash.bulkDelete': ({ entryId }) => ({ entryIds: [entryId] }),
  'documents.ingest': () => ({ text: 'planted' }),
  'documents.ingestFile': () => planted(),
  'documents.ingestBatch': () => ({ text: 'planted' }),
  'records.upsert': () => ({ records: [{ id: 'planted', text: 'planted' }] }),
  'chunkingServices.update': () => ({ name: 'taken over' }),
  'embeddingServices.update': () => ({ name: 'taken over' }),
  'rerankingServices.update': () => ({ name: 'taken over' }),
  'llmServices.update': () => ({ name: 'taken over' }),
  'mcpServers.update': () => ({ label: 'taken over' }),
  'mcpServers.beginSignIn': () => ({ redirectUri: 'http://127.0.0.1:49152/callback' }),
  'mcpServers.finishSignIn': () => ({ state: 'planted', code: 'planted' }),
  'mcpServers.review': () => ({ accept: [{ name: 'planted', hash: `sha256:${'0'.repeat(64)}` }] }),
  'chat.send': () => ({ content: 'planted' }),
  'chat.stream': () => ({ content: 'planted' }),
  'chat.decide': () => ({ decision: 'once' }),
  'apiKeys.rotate': () => ({ graceSeconds: 0 }),
  'agents.update': () => ({ name: 'taken over' }),
  'conversations.create': () => ({ title: 'planted' }),
  'conversations.update': () => ({ title: 'taken over' }),
  'attachments.create': () => planted(),
  'principals.update': () => ({ role: 'admin' }),
}

/** Every route below a workspace with the ID of a resource. */
const routes = Object.entries(api).flatMap(([topic, operations]) =>
  Object.entries(operations as Record<string, Route>)
    .filter(([, { path }]) => /:workspaceId\/.*:/.test(path))
    .map(([operation, route]) => ({ name: `${topic}.${operation}`, route })),
)

/** No approval is pending. */
const unknownApproval = '6e0ab0c4-3f0f-4e51-9f27-4c2c7be6d0a1'

async function furnished(wb: TestRuntime) {
  const base = await makeBase(wb)
  const { workspaceId, knowledgeBaseId } = base.params
  const { document } = await base.ingest('Only for this workspace: ornithopter.', {
    sourceFilename: 'own.md',
  })
  const { embeddingServiceId } = await makeMockService(wb, workspaceId)
  const { chunkingServiceId } = await wb.call(chunkingServices.create, {
    params: { workspaceId },
    body: { name: 'own', engine: 'langchain_ts' },
  })
  const model = { name: 'own', provider: 'ollama', modelName: 'm' }
  const { rerankingServiceId } = await wb.call(rerankingServices.create, {
    params: { workspaceId },
    body: model,
  })
  const { llmServiceId } = await wb.call(llmServices.create, { params: { workspaceId }, body: model })
  const { mcpServerId } = await wb.call(mcpServers.create, {
    params: { workspaceId },
    body: { label: 'own', url: 'https://tools.example.com/mcp' },
  })
  const { key } = await wb.call(apiKeys.create, {
    params: { workspaceId },
    body: { label: 'own', role: 'admin' },
  })
  const { keyId } = key
  const { principalId } = await wb.call(principals.create, {
    params: { workspaceId },
    body: { principalId: uniqueName('own') },
  })
  const { job } = await enqueue(wb, base, 'later')
  const { agentId } = await makeAgent(wb, { workspaceId })
  const { conversationId } = await makeConversation(wb, { workspaceId, agentId })
  const message = messageRow({ workspaceId, conversationId }, 1, { content: 'ornithopter' })
  await writeMessages(wb.dataDir, [message])
  const { attachmentId } = await wb.call(attachments.create, {
    params: { workspaceId, agentId, conversationId },
    body: formOf('ornithopter'),
  })
  const { documentId } = document
  const recordId = `${documentId}:0`
  const deleted = (await base.ingest('a deleted ornithopter')).document
  await wb.call(documents.delete, { params: { ...base.params, documentId: deleted.documentId } })
  const [entry] = (await wb.call(trash.list, { params: base.params })).items
  const { knowledgeFilterId } = await wb.call(filters.create, {
    params: base.params,
    body: { name: 'own', filter: {} },
  })
  return {
    workspaceId,
    knowledgeBaseId,
    documentId,
    recordId,
    entryId: entry!.entryId,
    knowledgeFilterId,
    jobId: job.jobId,
    embeddingServiceId,
    chunkingServiceId,
    mcpServerId,
    rerankingServiceId,
    llmServiceId,
    keyId,
    principalId,
    agentId,
    conversationId,
    messageId: message.messageId,
    attachmentId,
    imageIndex: '0',
    approvalId: unknownApproval,
  }
}

function planted(): FormData {
  const form = new FormData()
  form.set('file', new File(['planted'], 'planted.txt'))
  return form
}

async function attempt(
  wb: TestRuntime,
  name: string,
  { method, path, body }: Route,
  ids: Record<string, string>,
) {
  const url = path.replace(/:(\w+)/g, (_, param: string) => encodeURIComponent(ids[param]!))
  const sent = bodies[name]?.(ids)
  if (body?.kind === undefined || body.kind === 'json') return wb.send(`${method} ${url}`, sent)
  const request =
    sent instanceof FormData
      ? { body: sent }
      : { body: `${JSON.stringify(sent)}\n`, headers: { 'content-type': 'application/x-ndjson' } }
  const answer = await wb.runtime.fetch(new Request(`http://localhost${url}`, { method, ...request }))
  const text = await answer.text()
  return { status: answer.status, text, body: JSON.parse(text) as Record<string, unknown> }
}

test('the table has a body for every route that accepts one', () => {
  const taking = routes.filter(({ route }) => route.body).map(({ name }) => name)
  expect(taking.filter(name => !bodies[name])).toEqual([])
  expect(routes.length).toBeGreaterThan(15)
})

test('S1-07 S7.3-knowledge_base_not_found: IDs of another workspace are 404 on every route, and nothing changes', async () => {
  const wb = await open()
  const [mine, theirs] = [await furnished(wb), await furnished(wb)]
  const before = storeFile(wb.dataDir).dump()
  for (const { name, route } of routes) {
    const answer = await attempt(wb, name, route, { ...theirs, workspaceId: mine.workspaceId })
    expect(answer.status, `${name}: ${answer.text}`).toBe(404)
    const { code } = answer.body.error as { code: string }
    expect(code, name).toMatch(
      /^(knowledge_base|chunking_service|embedding_service|reranking_service|llm_service|api_key|principal|mcp_server|agent|conversation|job)_not_found$/,
    )
    expect(answer.text).not.toContain('ornithopter')
  }
  expect(storeFile(wb.dataDir).dump()).toBe(before)
})

test('S7.3-04 S1-07: document and record IDs of another workspace are not found in a knowledge base of the caller', async () => {
  const wb = await open()
  const [mine, theirs] = [await furnished(wb), await furnished(wb)]
  const before = storeFile(wb.dataDir).dump()
  const { documentId, recordId, entryId } = theirs
  for (const { name, route } of routes.filter(one => /:(documentId|recordId|entryId)/.test(one.route.path))) {
    const answer = await attempt(wb, name, route, { ...mine, documentId, recordId, entryId })
    if (name === 'records.delete') expect(answer).toMatchObject({ status: 200, body: { deleted: false } })
    else expect(answer, name).toMatchObject({ status: 404, body: { error: { code: 'document_not_found' } } })
  }
  const bulk = routes.find(({ name }) => name === 'documents.bulkDelete')!
  const answer = await attempt(wb, bulk.name, bulk.route, { ...mine, documentId })
  expect(answer.body).toMatchObject({ deleted: [], failed: [{ documentId, code: 'not_found' }] })
  expect(storeFile(wb.dataDir).dump()).toBe(before)
})

test('S1-07: a knowledge base cannot use services of another workspace', async () => {
  const wb = await open()
  const [mine, theirs] = [await furnished(wb), await furnished(wb)]
  for (const [field, code] of [
    ['embeddingServiceId', 'embedding_service_not_found'],
    ['chunkingServiceId', 'chunking_service_not_found'],
  ] as const)
    await expect(
      makeBase(wb, { workspaceId: mine.workspaceId, [field]: theirs[field] }),
    ).rejects.toMatchObject({ code })
})

test('S1-07: resources with identical IDs and names in two workspaces are independent', async () => {
  const wb = await open()
  const first = await makeBase(wb, { name: 'same' })
  const { knowledgeBaseId } = first.params
  const second = await makeBase(wb, { name: 'same', knowledgeBaseId })
  const documentId = '5e0ab0c4-3f0f-4e51-9f27-4c2c7be6d0a1'
  const text = 'The same text about gliders.'
  const fields = { documentId, sourceFilename: 'same.md' }
  for (const base of [first, second]) expect((await base.ingest(text, fields)).outcome).toBeUndefined()
  await second.ingest('Another text about rockets.', {
    ...fields,
    documentId: undefined,
    overwriteOnNameConflict: true,
  })
  expect((await first.search('gliders rockets')).map(({ id }) => id)).toEqual([`${documentId}:0`])
  await second.delete()
  expect(await first.documents()).toMatchObject([{ documentId }])
  expect(await first.search('gliders')).toHaveLength(1)
})

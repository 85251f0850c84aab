import { sharedWord } from './canaries.ts'
import {
  callMcp,
  callTool,
  expectOk,
  forEachBase,
  isHiddenFrom,
  neither,
  type ProbeContext,
  probeEachConversation,
  probeEachDocument,
  question,
  type RouteProbe,
  readAllPages,
  refuses,
  shows,
} from './probe.ts'

/** Maximum number of items of an MCP list or search. */
const mcpItemsMax = 50

/** Maximum number of passages of a search. */
const topK = 1_000

const searches: readonly object[] = [
  { text: sharedWord, topK },
  { text: sharedWord, topK, lexicalWeight: 1 },
  { text: sharedWord, topK, hybrid: false },
  { text: sharedWord, topK, rerank: true },
  { text: sharedWord, topK, filter: { drill: 'yes' }, includeFolder: true },
  {
    text: sharedWord,
    topK,
    explain: true,
    diversity: 0.5,
    groupBy: 'document',
    neighbors: 3,
    boosts: [{ recency: { halfLifeDays: 1 }, factor: 2 }],
  },
]

async function probeMcp(context: ProbeContext): Promise<void> {
  const { run, fixture, principalId } = context
  const { agentId } = fixture
  const tool = (name: string, args?: object) => callTool(context, name, args)
  for (const { knowledgeBaseId } of fixture.bases) {
    const inBase = fixture.documents.filter(({ base }) => base.knowledgeBaseId === knowledgeBaseId)
    const listed = await tool('list_documents', { knowledgeBaseId, limit: mcpItemsMax })
    run.expectShown('mcp.send', principalId, listed, inBase.length <= mcpItemsMax ? inBase : [])
    await tool('search_kb', { knowledgeBaseId, text: sharedWord, topK: mcpItemsMax })
    for (const { documentId } of inBase) await tool('get_document', { knowledgeBaseId, documentId })
  }
  for (const { base, documentId } of fixture.documents) {
    const uri = `workbase://${fixture.workspaceId}/kb/${base.knowledgeBaseId}/documents/${documentId}`
    await callMcp(context, 'resources/read', { uri })
  }
  await callMcp(context, 'resources/list')
  await tool('list_knowledge_bases')
  await tool('list_agents')
  await tool('list_chats', { agentId })
  for (const { conversationId } of fixture.conversations)
    await tool('list_chat_messages', { chatId: conversationId })
  const answer = await tool('run_agent', { agentId, content: question })
  if (!answer.includes('completed'))
    run.reportRefusal('mcp.send', principalId, `run_agent: ${answer.slice(0, 200)}`)
  for (const { conversationId } of fixture.conversations.filter(isHiddenFrom(principalId)))
    await tool('chat_send', { agentId, chatId: conversationId, content: question })
}

/** Reads the documents that a principal may see, so that the history of the workspace contains requests of all principals. */
export async function readOwnDocuments(context: ProbeContext): Promise<void> {
  const { run, fixture, principalId } = context
  for (const { base, documentId, viewers } of fixture.documents) {
    if (!viewers.has(principalId)) continue
    const params = { knowledgeBaseId: base.knowledgeBaseId, documentId }
    await run.request('documents.show', principalId, { params })
    await callTool(context, 'get_document', params)
  }
}

/**
 * Probes that read records of earlier requests. They run before any request for hidden content, because the reason of a refused
 * request contains the ID that its caller has sent.
 */
export const historyProbes: ReadonlyMap<string, RouteProbe> = new Map<string, RouteProbe>([
  ['audit.list', neither(async context => void (await readAllPages(context, 'audit.list')))],
  ['audit.decisions', neither(async context => void (await readAllPages(context, 'audit.decisions')))],
  [
    'connect.traffic',
    neither(async ({ run, principalId }) => {
      await run.request('connect.traffic', principalId, { query: { limit: 200 } })
    }),
  ],
])

/** Probes that read content, in the order in which they run. */
export const readProbes: ReadonlyMap<string, RouteProbe> = new Map<string, RouteProbe>([
  [
    'documents.list',
    shows(
      forEachBase(async (context, base, params) => {
        const { run, fixture, principalId } = context
        const all = fixture.documents.filter(document => document.base === base)
        const { text, items } = await readAllPages(context, 'documents.list', params)
        run.expectShown('documents.list', principalId, text, all)
        const visible = all.filter(({ viewers }) => viewers.has(principalId)).length
        if (items > visible)
          run.reportLeak('documents.list', principalId, `${items} items instead of ${visible}`)
      }),
    ),
  ],
  probeEachDocument('documents.show', ({ base, documentId }) => ({
    knowledgeBaseId: base.knowledgeBaseId,
    documentId,
  })),
  probeEachDocument(
    'documents.explain',
    ({ base, documentId }) => ({ knowledgeBaseId: base.knowledgeBaseId, documentId }),
    'refuses',
  ),
  probeEachDocument('documents.chunks', ({ base, documentId }) => ({
    knowledgeBaseId: base.knowledgeBaseId,
    documentId,
  })),
  [
    'kb.export',
    shows(
      forEachBase(async ({ run, fixture, principalId }, base, params) => {
        const all = [...fixture.documents, ...fixture.records].filter(canary => canary.base === base)
        const { text } = await run.request('kb.export', principalId, { params, query: {} })
        run.expectShown('kb.export', principalId, text, all)
        const everything = await run.request('kb.export', principalId, { params, query: { all: 'true' } })
        run.expectRefused('kb.export', principalId, everything, [403])
      }),
    ),
  ],
  [
    'kb.search',
    shows(
      forEachBase(async ({ run, fixture, principalId }, base, params) => {
        const all = [...fixture.documents, ...fixture.records].filter(canary => canary.base === base)
        for (const body of searches) {
          const { text } = await run.request('kb.search', principalId, { params, body })
          run.expectShown('kb.search', principalId, text, all)
        }
        for (const other of fixture.principalIds) {
          const body = { text: sharedWord, topK, filter: { visible_to: other } }
          await run.request('kb.search', principalId, { params, body })
        }
      }),
    ),
  ],
  [
    'kb.searchMany',
    shows(async ({ run, fixture, principalId }) => {
      const knowledgeBaseIds = fixture.bases.map(({ knowledgeBaseId }) => knowledgeBaseId)
      const body = { text: sharedWord, topK, knowledgeBaseIds }
      const { text } = await run.request('kb.searchMany', principalId, { body })
      run.expectShown('kb.searchMany', principalId, text, [...fixture.documents, ...fixture.records])
    }),
  ],
  [
    'kb.whyNot',
    refuses(async ({ run, fixture, principalId }) => {
      for (const { base, documentId, viewers } of fixture.documents) {
        const params = { knowledgeBaseId: base.knowledgeBaseId }
        const body = { text: sharedWord, topK, documentId }
        const response = await run.request('kb.whyNot', principalId, { params, body })
        if (viewers.has(principalId)) expectOk(run, 'kb.whyNot', principalId, response)
        else run.expectRefused('kb.whyNot', principalId, response)
      }
    }),
  ],
  [
    'kb.insights',
    neither(
      forEachBase(async ({ run, principalId }, _, params) => {
        const { body } = await run.request('kb.insights', principalId, { params })
        if (Number(body.callers) > 1)
          run.reportLeak('kb.insights', principalId, 'searches of other principals')
      }),
    ),
  ],
  [
    'filters.create',
    shows(
      forEachBase(async ({ run, fixture, principalId }, base, params) => {
        const created = await run.request('filters.create', principalId, {
          params,
          body: { name: `drill ${principalId}`, filter: { drill: 'yes' } },
        })
        const knowledgeFilterId = created.body.knowledgeFilterId
        const body = { text: sharedWord, topK, knowledgeFilterId }
        const { text } = await run.request('filters.create', principalId, {
          params,
          body,
          through: 'kb.search',
        })
        const all = [...fixture.documents, ...fixture.records].filter(canary => canary.base === base)
        run.expectShown('filters.create', principalId, text, all)
      }),
    ),
  ],
  [
    'folders.list',
    shows(
      forEachBase(async ({ run, fixture, principalId }, base, params) => {
        const all = fixture.documents.filter(document => document.base === base)
        const { text } = await run.request('folders.list', principalId, { params })
        run.expectShown('folders.list', principalId, text, all)
      }),
    ),
  ],
  [
    'folders.update',
    refuses(
      forEachBase(async ({ run, seesAll, principalId }, { knowledgeBaseId }, params) => {
        if (seesAll(knowledgeBaseId)) return
        const body = { path: 'canaries', description: 'taken over' }
        const response = await run.request('folders.update', principalId, { params, body })
        run.expectRefused('folders.update', principalId, response)
      }),
    ),
  ],
  [
    'filters.list',
    neither(
      forEachBase(async (context, _, params) => void (await readAllPages(context, 'filters.list', params))),
    ),
  ],
  [
    'filters.show',
    neither(
      forEachBase(async ({ run, principalId }, _, params) => {
        const { body } = await run.request('filters.list', principalId, { params })
        for (const { knowledgeFilterId } of body.items as { knowledgeFilterId: string }[])
          await run.request('filters.show', principalId, { params: { ...params, knowledgeFilterId } })
      }),
    ),
  ],
  [
    'kb.list',
    neither(async ({ run, fixture, seesAll, principalId }) => {
      const isPlanted = (id: string) => fixture.bases.some(({ knowledgeBaseId }) => knowledgeBaseId === id)
      const { body } = await run.request('kb.list', principalId, { query: { limit: 200 } })
      for (const { knowledgeBaseId, size } of body.items as { knowledgeBaseId: string; size?: object }[])
        if (size && isPlanted(knowledgeBaseId) && !seesAll(knowledgeBaseId))
          run.reportLeak('kb.list', principalId, 'the size of hidden documents')
    }),
  ],
  [
    'kb.show',
    neither(
      forEachBase(async ({ run, seesAll, principalId }, { knowledgeBaseId }, params) => {
        const { body } = await run.request('kb.show', principalId, { params })
        if (body.embedder && !seesAll(knowledgeBaseId))
          run.reportLeak('kb.show', principalId, 'the number of hidden chunks')
      }),
    ),
  ],
  ...['kb.stats', 'kb.compact', 'kb.reindex', 'kb.reindexing'].map((name): [string, RouteProbe] => [
    name,
    refuses(
      forEachBase(async ({ run, seesAll, principalId }, { knowledgeBaseId }, params) => {
        if (!seesAll(knowledgeBaseId))
          run.expectRefused(name, principalId, await run.request(name, principalId, { params }))
      }),
    ),
  ]),
  [
    'kb.adoptable',
    neither(async ({ run, principalId }) => void (await run.request('kb.adoptable', principalId))),
  ],
  [
    'jobs.list',
    shows(async context => {
      const { text } = await readAllPages(context, 'jobs.list')
      context.run.expectShown('jobs.list', context.principalId, text, context.fixture.documents)
    }),
  ],
  probeEachDocument('jobs.show', ({ jobId }) => ({ jobId })),
  probeEachDocument('jobs.events', ({ jobId }) => ({ jobId })),
  ['mcp.send', shows(probeMcp)],
  [
    'openai.complete',
    shows(async ({ run, fixture, principalId }) => {
      for (const stream of [false, true]) {
        const messages = [{ role: 'user', content: question }]
        await run.request('openai.complete', principalId, {
          body: { model: fixture.agentId, messages, stream },
        })
      }
    }),
  ],
  ['conversations.listAll', shows(async context => probeConversationList(context, 'conversations.listAll'))],
  ['conversations.list', shows(async context => probeConversationList(context, 'conversations.list'))],
  probeEachConversation('conversations.show'),
  probeEachConversation('messages.list'),
  probeEachConversation('messages.show'),
  probeEachConversation('messages.versions'),
  probeEachConversation('messages.image', () => ({ params: { imageIndex: '0' } }), 'neither'),
  probeEachConversation('attachments.list'),
  probeEachConversation('attachments.show', ({ attachmentId }) => ({ params: { attachmentId } })),
])

async function probeConversationList(context: ProbeContext, name: string): Promise<void> {
  const { run, fixture, principalId } = context
  const params = { agentId: fixture.agentId }
  const { text } = await readAllPages(context, name, params)
  run.expectShown(name, principalId, text, fixture.conversations)
  for (const q of [sharedWord, 'canary']) await run.request(name, principalId, { params, query: { q } })
}

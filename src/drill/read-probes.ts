import { sharedWord } from './canaries.ts'
import {
  type Asker,
  callMcp,
  callTool,
  eachBase,
  eachConversation,
  eachDocument,
  isHiddenFrom,
  neither,
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
  { text: sharedWord, topK, filter: { drill: 'yes' } },
]

async function askMcp(asker: Asker): Promise<void> {
  const { run, world, principalId } = asker
  const { agentId } = world
  const tool = (name: string, args?: object) => callTool(asker, name, args)
  for (const { knowledgeBaseId } of world.bases) {
    const inBase = world.documents.filter(({ base }) => base.knowledgeBaseId === knowledgeBaseId)
    const listed = await tool('list_documents', { knowledgeBaseId, limit: mcpItemsMax })
    run.expectShown('mcp.send', principalId, listed, inBase.length <= mcpItemsMax ? inBase : [])
    await tool('search_kb', { knowledgeBaseId, text: sharedWord, topK: mcpItemsMax })
    for (const { documentId } of inBase) await tool('get_document', { knowledgeBaseId, documentId })
  }
  for (const { base, documentId } of world.documents) {
    const uri = `workbase://${world.workspaceId}/kb/${base.knowledgeBaseId}/documents/${documentId}`
    await callMcp(asker, 'resources/read', { uri })
  }
  await callMcp(asker, 'resources/list')
  await tool('list_knowledge_bases')
  await tool('list_agents')
  await tool('list_chats', { agentId })
  for (const { conversationId } of world.conversations)
    await tool('list_chat_messages', { chatId: conversationId })
  const answer = await tool('run_agent', { agentId, content: question })
  if (!answer.includes('completed'))
    run.reportRefusal('mcp.send', principalId, `run_agent: ${answer.slice(0, 200)}`)
  for (const { conversationId } of world.conversations.filter(isHiddenFrom(principalId)))
    await tool('chat_send', { agentId, chatId: conversationId, content: question })
}

/** Reads the documents that a principal may see, so that the history of the workspace contains requests of all principals. */
export async function readOwnDocuments(asker: Asker): Promise<void> {
  const { run, world, principalId } = asker
  for (const { base, documentId, viewers } of world.documents) {
    if (!viewers.has(principalId)) continue
    const params = { knowledgeBaseId: base.knowledgeBaseId, documentId }
    await run.ask('documents.show', principalId, { params })
    await callTool(asker, 'get_document', params)
  }
}

/**
 * Reads of what others have done. They are asked before any request for something hidden, because the reason of a refused
 * request contains the ID that its caller has sent.
 */
export const historyProbes: ReadonlyMap<string, RouteProbe> = new Map<string, RouteProbe>([
  ['audit.list', neither(async asker => void (await readAllPages(asker, 'audit.list')))],
  ['audit.decisions', neither(async asker => void (await readAllPages(asker, 'audit.decisions')))],
  [
    'connect.traffic',
    neither(async ({ run, principalId }) => {
      await run.ask('connect.traffic', principalId, { query: { limit: 200 } })
    }),
  ],
])

/** Reads of content, in the order in which they are asked. */
export const readProbes: ReadonlyMap<string, RouteProbe> = new Map<string, RouteProbe>([
  [
    'documents.list',
    shows(
      eachBase(async (asker, base, params) => {
        const { run, world, principalId } = asker
        const all = world.documents.filter(one => one.base === base)
        const { text, items } = await readAllPages(asker, 'documents.list', params)
        run.expectShown('documents.list', principalId, text, all)
        const visible = all.filter(({ viewers }) => viewers.has(principalId)).length
        if (items > visible)
          run.reportLeak('documents.list', principalId, `${items} items instead of ${visible}`)
      }),
    ),
  ],
  eachDocument('documents.show', ({ base, documentId }) => ({
    knowledgeBaseId: base.knowledgeBaseId,
    documentId,
  })),
  eachDocument('documents.chunks', ({ base, documentId }) => ({
    knowledgeBaseId: base.knowledgeBaseId,
    documentId,
  })),
  [
    'kb.search',
    shows(
      eachBase(async ({ run, world, principalId }, base, params) => {
        const all = [...world.documents, ...world.records].filter(one => one.base === base)
        for (const body of searches) {
          const { text } = await run.ask('kb.search', principalId, { params, body })
          run.expectShown('kb.search', principalId, text, all)
        }
        for (const other of world.principalIds) {
          const body = { text: sharedWord, topK, filter: { visible_to: other } }
          await run.ask('kb.search', principalId, { params, body })
        }
      }),
    ),
  ],
  [
    'kb.searchMany',
    shows(async ({ run, world, principalId }) => {
      const knowledgeBaseIds = world.bases.map(({ knowledgeBaseId }) => knowledgeBaseId)
      const body = { text: sharedWord, topK, knowledgeBaseIds }
      const { text } = await run.ask('kb.searchMany', principalId, { body })
      run.expectShown('kb.searchMany', principalId, text, [...world.documents, ...world.records])
    }),
  ],
  [
    'filters.create',
    shows(
      eachBase(async ({ run, world, principalId }, base, params) => {
        const created = await run.ask('filters.create', principalId, {
          params,
          body: { name: `drill ${principalId}`, filter: { drill: 'yes' } },
        })
        const knowledgeFilterId = created.body.knowledgeFilterId
        const body = { text: sharedWord, topK, knowledgeFilterId }
        const { text } = await run.ask('filters.create', principalId, { params, body, through: 'kb.search' })
        const all = [...world.documents, ...world.records].filter(one => one.base === base)
        run.expectShown('filters.create', principalId, text, all)
      }),
    ),
  ],
  [
    'filters.list',
    neither(eachBase(async (asker, _, params) => void (await readAllPages(asker, 'filters.list', params)))),
  ],
  [
    'filters.show',
    neither(
      eachBase(async ({ run, principalId }, _, params) => {
        const { body } = await run.ask('filters.list', principalId, { params })
        for (const { knowledgeFilterId } of body.items as { knowledgeFilterId: string }[])
          await run.ask('filters.show', principalId, { params: { ...params, knowledgeFilterId } })
      }),
    ),
  ],
  [
    'kb.list',
    neither(async ({ run, world, seesAll, principalId }) => {
      const isPlanted = (id: string) => world.bases.some(({ knowledgeBaseId }) => knowledgeBaseId === id)
      const { body } = await run.ask('kb.list', principalId, { query: { limit: 200 } })
      for (const { knowledgeBaseId, size } of body.items as { knowledgeBaseId: string; size?: object }[])
        if (size && isPlanted(knowledgeBaseId) && !seesAll(knowledgeBaseId))
          run.reportLeak('kb.list', principalId, 'the size of hidden documents')
    }),
  ],
  [
    'kb.show',
    neither(
      eachBase(async ({ run, seesAll, principalId }, { knowledgeBaseId }, params) => {
        const { body } = await run.ask('kb.show', principalId, { params })
        if (body.embedder && !seesAll(knowledgeBaseId))
          run.reportLeak('kb.show', principalId, 'the number of hidden chunks')
      }),
    ),
  ],
  ...['kb.stats', 'kb.compact'].map((name): [string, RouteProbe] => [
    name,
    refuses(
      eachBase(async ({ run, seesAll, principalId }, { knowledgeBaseId }, params) => {
        if (!seesAll(knowledgeBaseId))
          run.expectRefused(name, principalId, await run.ask(name, principalId, { params }))
      }),
    ),
  ]),
  [
    'kb.adoptable',
    neither(async ({ run, principalId }) => void (await run.ask('kb.adoptable', principalId))),
  ],
  [
    'jobs.list',
    shows(async asker => {
      const { text } = await readAllPages(asker, 'jobs.list')
      asker.run.expectShown('jobs.list', asker.principalId, text, asker.world.documents)
    }),
  ],
  eachDocument('jobs.show', ({ jobId }) => ({ jobId })),
  eachDocument('jobs.events', ({ jobId }) => ({ jobId })),
  ['mcp.send', shows(askMcp)],
  [
    'openai.complete',
    shows(async ({ run, world, principalId }) => {
      for (const stream of [false, true]) {
        const messages = [{ role: 'user', content: question }]
        await run.ask('openai.complete', principalId, { body: { model: world.agentId, messages, stream } })
      }
    }),
  ],
  ['conversations.listAll', shows(async asker => askConversationList(asker, 'conversations.listAll'))],
  ['conversations.list', shows(async asker => askConversationList(asker, 'conversations.list'))],
  eachConversation('conversations.show'),
  eachConversation('messages.list'),
  eachConversation('messages.show'),
  eachConversation('messages.versions'),
  eachConversation('messages.image', () => ({ params: { imageIndex: '0' } }), 'neither'),
  eachConversation('attachments.list'),
  eachConversation('attachments.show', ({ attachmentId }) => ({ params: { attachmentId } })),
])

async function askConversationList(asker: Asker, name: string): Promise<void> {
  const { run, world, principalId } = asker
  const params = { agentId: world.agentId }
  const { text } = await readAllPages(asker, name, params)
  run.expectShown(name, principalId, text, world.conversations)
  for (const q of [sharedWord, 'canary']) await run.ask(name, principalId, { params, query: { q } })
}

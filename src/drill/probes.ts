import { type CanaryDocument, sharedWord } from './canaries.ts'
import type { CanaryConversation, DrillResponse, DrillRun, DrillWorld } from './drill-run.ts'

/** Asks a route as one principal. */
export interface Asker {
  readonly run: DrillRun
  readonly world: DrillWorld
  readonly principalId: string
  readonly seesAll: (knowledgeBaseId: string) => boolean
}

/** A test of one route. */
export interface RouteProbe {
  /**
   * Behavior that the route must show to some principal in every drill: show canaries, or refuse a request. `neither` is for routes
   * whose responses contain no content, and which are only searched for leaks.
   */
  readonly proof: 'shows' | 'refuses' | 'neither'
  ask(asker: Asker): Promise<void>
}

type Ask = RouteProbe['ask']

const acceptsEvents = { accept: 'application/json, text/event-stream' }
export const question = `What does ${sharedWord} say?`
const pageLimit = 7
/** Maximum number of items of an MCP list or search. */
const mcpItemsMax = 50
/** Maximum number of passages of a search. */
const topK = 1_000
const missingId = '00000000-0000-4000-8000-000000000000'

const shows = (ask: Ask): RouteProbe => ({ proof: 'shows', ask })
const refuses = (ask: Ask): RouteProbe => ({ proof: 'refuses', ask })
const neither = (ask: Ask): RouteProbe => ({ proof: 'neither', ask })

const isHiddenFrom =
  (principalId: string) =>
  ({ viewers }: { viewers: ReadonlySet<string> }) =>
    !viewers.has(principalId)

/** Requests a route that needs a scope that no principal of the drill has. */
const needsScope = (name: string): [string, RouteProbe] => [
  name,
  refuses(async ({ run, principalId }) => {
    const params = { principalId: missingId, keyId: missingId }
    run.expectRefused(name, principalId, await run.ask(name, principalId, { params, body: undefined }))
  }),
]

/** Reads all pages of a list, and returns their texts and the number of items. */
async function readAll(
  { run, principalId }: Asker,
  name: string,
  params: Record<string, string> = {},
): Promise<{ text: string; items: number }> {
  let [text, items, cursor] = ['', 0, undefined as string | undefined]
  do {
    const query = { limit: pageLimit, ...(cursor !== undefined && { cursor }) }
    const page = await run.ask(name, principalId, { params, query })
    text += page.text
    items += (page.body.items as unknown[] | undefined)?.length ?? 0
    cursor = (page.body.nextCursor as string | null | undefined) ?? undefined
  } while (cursor !== undefined)
  return { text, items }
}

/** A route of one document or job: visible ones are shown, and others do not exist. */
function eachDocument(
  name: string,
  paramsOf: (one: CanaryDocument) => Record<string, string>,
): [string, RouteProbe] {
  const ask: Ask = async ({ run, world, principalId }) => {
    for (const document of world.documents) {
      const response = await run.ask(name, principalId, { params: paramsOf(document) })
      if (document.viewers.has(principalId)) expectOk(run, name, principalId, response)
      else run.expectRefused(name, principalId, response)
    }
  }
  return [name, shows(ask)]
}

/** A change of documents that the principal may not see. */
function eachHiddenDocument(name: string, body?: unknown): [string, RouteProbe] {
  const ask: Ask = async ({ run, world, principalId }) => {
    for (const { base, documentId, jobId } of world.documents.filter(isHiddenFrom(principalId))) {
      const params = { knowledgeBaseId: base.knowledgeBaseId, documentId, jobId }
      run.expectRefused(name, principalId, await run.ask(name, principalId, { params, body }))
    }
  }
  return [name, refuses(ask)]
}

/** A route of a conversation: its own principal gets an answer, and for others it does not exist. */
function eachConversation(
  name: string,
  partsOf: (one: CanaryConversation) => { params?: Record<string, string>; body?: unknown } = () => ({}),
  proof: RouteProbe['proof'] = 'shows',
): [string, RouteProbe] {
  const ask: Ask = async ({ run, world, principalId }) => {
    for (const one of world.conversations) {
      const isOwn = one.viewers.has(principalId)
      if (isOwn && proof === 'refuses') continue
      const { params, body } = partsOf(one)
      const { agentId } = world
      const { conversationId, questionId: messageId } = one
      const response = await run.ask(name, principalId, {
        params: { agentId, conversationId, messageId, ...params },
        body,
      })
      if (isOwn) expectOk(run, name, principalId, response)
      else run.expectRefused(name, principalId, response)
    }
  }
  return [name, { proof, ask }]
}

function expectOk(run: DrillRun, name: string, principalId: string, { status, text }: DrillResponse): void {
  if (status >= 400) run.reportRefusal(name, principalId, `status ${status}: ${text.slice(0, 200)}`)
}

/** Asks something for each knowledge base of the drill. */
function eachBase(
  ask: (
    asker: Asker,
    base: DrillWorld['bases'][number],
    params: { knowledgeBaseId: string },
  ) => Promise<void>,
): Ask {
  return async asker => {
    for (const base of asker.world.bases) await ask(asker, base, { knowledgeBaseId: base.knowledgeBaseId })
  }
}

const searches: readonly object[] = [
  { text: sharedWord, topK },
  { text: sharedWord, topK, lexicalWeight: 1 },
  { text: sharedWord, topK, hybrid: false },
  { text: sharedWord, topK, rerank: true },
  { text: sharedWord, topK, filter: { drill: 'yes' } },
]

/** Calls an MCP method. */
async function callMcp({ run, principalId }: Asker, method: string, params: object = {}): Promise<string> {
  const body = { jsonrpc: '2.0', id: 1, method, params }
  return (await run.ask('mcp.send', principalId, { body, headers: acceptsEvents })).text
}

/** @throws Error  the tool does not accept the arguments, so that the call proves nothing */
async function callTool(asker: Asker, name: string, args: object = {}): Promise<string> {
  const text = await callMcp(asker, 'tools/call', { name, arguments: args })
  if (text.includes('Invalid arguments for tool')) throw new Error(`the drill called a tool wrongly: ${text}`)
  return text
}

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

/** Returns a form with a text file. */
export function fileForm(name: string, content: string): FormData {
  const form = new FormData()
  form.set('file', new File([content], name, { type: 'text/plain' }))
  return form
}

/** Names of hidden files, which a principal can guess. */
function hiddenFiles({ world, principalId }: Asker, knowledgeBaseId: string): string[] {
  return world.documents
    .filter(isHiddenFrom(principalId))
    .filter(({ base }) => base.knowledgeBaseId === knowledgeBaseId)
    .map(({ filename }) => filename)
}

/** Routes with which each principal starts its conversation. */
export const plantingRoutes: ReadonlyMap<string, RouteProbe['proof']> = new Map([
  ['conversations.create', 'neither'],
  ['chat.stream', 'shows'],
])

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
  ['audit.list', neither(async asker => void (await readAll(asker, 'audit.list')))],
  ['audit.decisions', neither(async asker => void (await readAll(asker, 'audit.decisions')))],
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
        const { text, items } = await readAll(asker, 'documents.list', params)
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
    neither(eachBase(async (asker, _, params) => void (await readAll(asker, 'filters.list', params)))),
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
      const { text } = await readAll(asker, 'jobs.list')
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
  const { text } = await readAll(asker, name, params)
  run.expectShown(name, principalId, text, world.conversations)
  for (const q of [sharedWord, 'canary']) await run.ask(name, principalId, { params, query: { q } })
}

const messageBody = { content: question }

/** Changes, which are asked after all reads. Those of hidden content must be refused. */
export const changeProbes: ReadonlyMap<string, RouteProbe> = new Map<string, RouteProbe>([
  eachConversation('conversations.update', () => ({ body: { title: 'taken over' } }), 'refuses'),
  eachConversation('messages.select', () => ({}), 'refuses'),
  eachConversation('attachments.create', () => ({ body: fileForm('x.txt', 'a note') }), 'refuses'),
  eachConversation('attachments.delete', ({ attachmentId }) => ({ params: { attachmentId } }), 'refuses'),
  eachConversation('chat.send', () => ({ body: messageBody }), 'refuses'),
  eachConversation('chat.attach', () => ({}), 'refuses'),
  eachConversation('chat.stop', () => ({}), 'refuses'),
  eachConversation(
    'chat.decide',
    () => ({ params: { approvalId: missingId }, body: { decision: 'once' } }),
    'refuses',
  ),
  eachConversation('conversations.delete', () => ({}), 'refuses'),
  [
    'agents.delete',
    refuses(async ({ run, world, principalId }) => {
      const params = { agentId: world.agentId }
      run.expectRefused('agents.delete', principalId, await run.ask('agents.delete', principalId, { params }))
    }),
  ],
  eachHiddenDocument('documents.update', { visibleTo: ['*'] }),
  eachHiddenDocument('documents.delete'),
  eachHiddenDocument('jobs.cancel'),
  [
    'documents.bulkDelete',
    refuses(
      eachBase(async ({ run, world, principalId }, base, params) => {
        const hidden = world.documents.filter(one => one.base === base).filter(isHiddenFrom(principalId))
        const documentIds = hidden.map(({ documentId }) => documentId).slice(0, 100)
        if (documentIds.length === 0) return
        const { body } = await run.ask('documents.bulkDelete', principalId, { params, body: { documentIds } })
        const deleted = (body.deleted as unknown[] | undefined)?.length ?? 0
        if (deleted > 0)
          run.reportLeak('documents.bulkDelete', principalId, `${deleted} hidden documents deleted`)
        else run.resultOf('documents.bulkDelete').refused++
      }),
    ),
  ],
  [
    'documents.create',
    refuses(async ({ run, world, principalId }) => {
      for (const { base, documentId } of world.documents.filter(isHiddenFrom(principalId))) {
        const params = { knowledgeBaseId: base.knowledgeBaseId }
        const response = await run.ask('documents.create', principalId, { params, body: { documentId } })
        run.expectRefused('documents.create', principalId, response)
      }
    }),
  ],
  [
    'documents.ingest',
    neither(
      eachBase(async (asker, { knowledgeBaseId }, params) => {
        for (const sourceFilename of hiddenFiles(asker, knowledgeBaseId)) {
          const body = {
            text: `a text of ${asker.principalId}`,
            sourceFilename,
            overwriteOnNameConflict: true,
          }
          await asker.run.ask('documents.ingest', asker.principalId, { params, body })
        }
      }),
    ),
  ],
  [
    'documents.ingestFile',
    neither(
      eachBase(async (asker, { knowledgeBaseId }, params) => {
        for (const name of hiddenFiles(asker, knowledgeBaseId)) {
          const body = fileForm(name, `a file of ${asker.principalId}`)
          body.set('overwriteOnNameConflict', 'true')
          await asker.run.ask('documents.ingestFile', asker.principalId, { params, body })
        }
      }),
    ),
  ],
  [
    'documents.ingestBatch',
    neither(
      eachBase(async (asker, { knowledgeBaseId }, params) => {
        const lines = hiddenFiles(asker, knowledgeBaseId).map(sourceFilename =>
          JSON.stringify({
            text: `a line of ${asker.principalId}`,
            sourceFilename,
            overwriteOnNameConflict: true,
          }),
        )
        if (lines.length > 0)
          await asker.run.ask('documents.ingestBatch', asker.principalId, {
            params,
            body: `${lines.join('\n')}\n`,
          })
      }),
    ),
  ],
  [
    'records.upsert',
    refuses(async ({ run, world, principalId }) => {
      for (const { base, recordId } of world.records.filter(isHiddenFrom(principalId))) {
        const params = { knowledgeBaseId: base.knowledgeBaseId }
        const body = { records: [{ id: recordId, text: 'taken over', visibleTo: ['*'] }] }
        const response = await run.ask('records.upsert', principalId, { params, body })
        run.expectRefused('records.upsert', principalId, response)
      }
    }),
  ],
  [
    'records.delete',
    neither(async ({ run, world, principalId }) => {
      for (const { base, recordId } of world.records.filter(isHiddenFrom(principalId))) {
        const params = { knowledgeBaseId: base.knowledgeBaseId, recordId }
        const { body } = await run.ask('records.delete', principalId, { params })
        if (body.deleted === true) run.reportLeak('records.delete', principalId, `deleted ${recordId}`)
      }
    }),
  ],
  [
    'kb.update',
    refuses(
      eachBase(async ({ run, principalId }, { dsl }, params) => {
        const body =
          dsl === null ? { policyDsl: "'*' <> owner_id", policyEnabled: true } : { policyDsl: null }
        run.expectRefused('kb.update', principalId, await run.ask('kb.update', principalId, { params, body }))
      }),
    ),
  ],
  [
    'kb.create',
    refuses(
      eachBase(async ({ run, principalId }, { name }) => {
        const body = { name: 'drill_attached', attach: true, vectorCollection: name }
        run.expectRefused('kb.create', principalId, await run.ask('kb.create', principalId, { body }))
      }),
    ),
  ],
  [
    'kb.delete',
    refuses(
      eachBase(async ({ run, seesAll, principalId }, { knowledgeBaseId }, params) => {
        if (!seesAll(knowledgeBaseId))
          run.expectRefused('kb.delete', principalId, await run.ask('kb.delete', principalId, { params }))
      }),
    ),
  ],
  [
    'workspaces.update',
    refuses(async ({ run, principalId }) => {
      const response = await run.ask('workspaces.update', principalId, { body: { rlacEnabled: false } })
      run.expectRefused('workspaces.update', principalId, response)
    }),
  ],
  [
    'playground.execute',
    refuses(async ({ run, principalId }) => {
      const body = { commandName: 'find', collection: 'drill_1', command: { find: {} } }
      run.expectRefused(
        'playground.execute',
        principalId,
        await run.ask('playground.execute', principalId, { body }),
      )
    }),
  ],
  ...[
    'policy.preview',
    'policy.audit',
    'accessTools.explain',
    'accessTools.viewers',
    'accessTools.documents',
    'accessTools.counts',
    'accessTools.diff',
    'principals.list',
    'principals.create',
    'principals.show',
    'principals.update',
    'principals.delete',
    'apiKeys.list',
    'apiKeys.create',
    'apiKeys.show',
    'apiKeys.rotate',
    'apiKeys.revoke',
    'workspaces.delete',
  ].map(needsScope),
])

const settings = 'settings of the workspace, which all members can read'

/** Routes that have no content of documents, with the reason. */
export const routesWithoutContent: ReadonlyMap<string, string> = new Map([
  ['workspaces.show', settings],
  ['workspaces.testConnection', 'tests the connection to the database'],
  ['connect.snippets', 'examples of client configurations'],
  ['connect.verify', 'tests the MCP server of the workspace'],
  ['mcp.listen', 'a stream without messages'],
  ['mcp.end', 'has no response body'],
  ...['chunkingServices', 'embeddingServices', 'rerankingServices', 'llmServices'].flatMap(topic =>
    ['list', 'create', 'show', 'update', 'delete'].map((name): [string, string] => [
      `${topic}.${name}`,
      settings,
    ]),
  ),
  ...[
    'list',
    'create',
    'show',
    'update',
    'delete',
    'testConnection',
    'tools',
    'review',
    'showSignIn',
    'beginSignIn',
    'finishSignIn',
    'endSignIn',
  ].map((name): [string, string] => [`mcpServers.${name}`, settings]),
  ['filters.update', 'changes a condition, which all members can read'],
  ['filters.delete', 'deletes a condition, which all members can read'],
  ['agentTemplates.listIn', 'templates of the product'],
  ...['list', 'create', 'createFromTemplate', 'show', 'update', 'tools'].map((name): [string, string] => [
    `agents.${name}`,
    settings,
  ]),
  ['openai.models', 'names of agents, which all members can read'],
])

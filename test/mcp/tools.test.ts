import type { Client } from '@modelcontextprotocol/client'
import { expect, test } from 'vitest'
import { agents } from '../../src/contract/agents.ts'
import { conversations } from '../../src/contract/conversations.ts'
import { documents } from '../../src/contract/documents.ts'
import { folders } from '../../src/contract/folders.ts'
import { chunkingServices, embeddingServices } from '../../src/contract/services.ts'
import { messageRow, writeMessages } from '../harness/agents.ts'
import { call, type McpSetup, setUpMcp, unknownId } from './mcp-setup.ts'

/** Creates an agent, a chat with two visible messages of three, and a document. */
async function filled(options = {}) {
  const wb = await setUpMcp(options)
  const { workspaceId } = wb
  const params = { workspaceId }
  const agent = await wb.callAsOperator(agents.create, { params, body: { name: 'maven' } })
  const chat = await wb.callAsOperator(conversations.create, {
    params: { workspaceId, agentId: agent.agentId },
    body: { title: 'wings' },
  })
  await writeMessages(wb.dataDir, [
    messageRow(chat, 1),
    messageRow(chat, 2, { role: 'tool' }),
    messageRow(chat, 3, { role: 'agent' }),
  ])
  const { document } = await wb.base.ingest('The ornithopter flaps its wings.', { sourceFilename: 'a.txt' })
  return { ...wb, agent, chat, document }
}

test('read tools return the same data as REST, with the documented fields', async () => {
  const wb = await filled()
  const client = await wb.client(await wb.mint(['read']))
  const { agent, chat, document } = wb
  const { knowledgeBaseId } = wb.base.params
  expect(client.getServerVersion()).toMatchObject({ name: `workbase:${wb.workspaceId}` })
  expect(client.getServerCapabilities()).toEqual({ tools: { listChanged: true }, resources: {} })

  const bases = await call(client, 'list_knowledge_bases')
  const base = { knowledgeBaseId, name: wb.base.name, description: null, status: 'active', language: null }
  expect(bases.text).toBe(JSON.stringify([base], null, 2))
  expect((await call(client, 'list_agents')).value).toContainEqual({
    agentId: agent.agentId,
    name: 'maven',
    description: null,
    knowledgeBaseIds: [],
    llmServiceId: null,
    rerankEnabled: false,
  })
  const { agentId } = agent
  const shown = await call(client, 'get_agent', { agentId })
  expect(Object.keys(shown.value as object)).toHaveLength(11)
  expect(shown.value).toMatchObject({ agentId, systemPrompt: null, toolIds: [], rerankMaxResults: null })
  const missing = await call(client, 'get_agent', { agentId: unknownId })
  const message = `agent '${unknownId}' not found`
  expect(missing).toMatchObject({
    isError: true,
    value: { outcome: 'not_found', agentId: unknownId, message },
  })

  const { documentId, sourceFilename, status, chunkTotal, contentHash, ingestedAt } = document
  const listed = [{ documentId, sourceFilename, status, chunkTotal, contentHash, ingestedAt }]
  expect((await call(client, 'list_documents', { knowledgeBaseId })).value).toEqual(listed)
  expect((await call(client, 'list_documents', { knowledgeBaseId, limit: 1 })).value).toEqual(listed)
  const hits = await call(client, 'search_kb', { knowledgeBaseId, text: 'ornithopter', topK: 1 })
  const chunkId = `${documentId}:0`
  const content = 'The ornithopter flaps its wings.'
  expect(hits.value).toEqual([
    {
      chunkId,
      score: expect.any(Number),
      documentId,
      content,
      sourceFilename: 'a.txt',
      title: null,
      heading: null,
      citation: 'a.txt',
    },
  ])
  for (const [args, why] of [
    [{ knowledgeBaseId }, 'send exactly one of text and vector'],
    [{ knowledgeBaseId: unknownId, text: 'x' }, `knowledge base '${unknownId}' not found`],
  ] as const)
    expect(await call(client, 'search_kb', args)).toMatchObject({ isError: true, text: why })

  const { createdAt, conversationId: chatId } = chat
  expect((await call(client, 'list_chats', { agentId })).value).toEqual([
    { chatId, agentId, title: 'wings', knowledgeBaseIds: [], createdAt },
  ])
  const said = (await call(client, 'list_chat_messages', { chatId })).value as object[]
  expect(said.map(({ content }: { content?: string }) => content)).toEqual(['message 1', 'message 3'])
  expect(Object.keys(said[0]!)).toEqual(['messageId', 'role', 'content', 'messageTs', 'metadata'])
  const unknown = await call(client, 'list_chat_messages', { chatId: unknownId })
  expect(unknown).toMatchObject({ isError: true, text: `chat '${unknownId}' not found` })
})

async function services(wb: McpSetup) {
  const params = { workspaceId: wb.workspaceId }
  const [chunking] = (await wb.callAsOperator(chunkingServices.list, { params })).items
  const [embedding] = (await wb.callAsOperator(embeddingServices.list, { params })).items
  return {
    chunkingServiceId: chunking!.chunkingServiceId,
    embeddingServiceId: embedding!.embeddingServiceId,
  }
}

test('list_documents and search_kb show the description of a folder with its first item only', async () => {
  const wb = await filled()
  const { params } = wb.base
  const { knowledgeBaseId } = params
  await wb.base.ingest('Gliders have wings.', { sourceFilename: 'craft/glider.txt' })
  await wb.base.ingest('Kites have wings, too.', { sourceFilename: 'craft/kite.txt' })
  const folder = { path: 'craft', description: 'things that fly without an engine' }
  await wb.callAsOperator(folders.update, { params, body: folder })
  const client = await wb.client(await wb.mint(['read']))
  const foldersOf = async (tool: string, args: object) => {
    const { value } = await call(client, tool, { knowledgeBaseId, ...args })
    return (value as { sourceFilename: string; folder?: object }[])
      .filter(({ sourceFilename }) => sourceFilename.startsWith('craft/'))
      .map(item => item.folder)
  }
  expect(await foldersOf('list_documents', {})).toEqual([folder, undefined])
  expect(await foldersOf('search_kb', { text: 'wings' })).toEqual([folder, undefined])
})

test('S5.5-21 S5.5-22 S5.5-23 S5.5-24: write tools have the same effect as REST and report the outcome', async () => {
  const wb = await setUpMcp()
  const client = await wb.client(await wb.mint(['write:kb', 'write:ingest']))
  const bound = await services(wb)
  const made = await call(client, 'create_knowledge_base', { name: 'notes', ...bound })
  expect(made).toMatchObject({
    isError: false,
    value: { outcome: 'created', name: 'notes', owned: true, status: 'active', ...bound },
  })
  const { knowledgeBaseId } = made.value as { knowledgeBaseId: string }
  const again = await call(client, 'create_knowledge_base', { name: 'notes', ...bound })
  expect(again).toMatchObject({ isError: true, value: { outcome: 'error', code: 'kb_name_taken' } })
  const unbound = { ...bound, chunkingServiceId: unknownId }
  const lost = await call(client, 'create_knowledge_base', { name: 'lost', ...unbound })
  expect(lost).toMatchObject({ isError: true, value: { outcome: 'not_found' } })

  const text = { knowledgeBaseId, text: 'Wings flap.', sourceFilename: 'a.txt', metadata: { by: 'me' } }
  const first = await call(client, 'ingest_text', text)
  expect(first).toMatchObject({ isError: false, value: { outcome: 'completed', chunks: 1 } })
  const { documentId } = first.value as { documentId: string }
  const duplicate = { outcome: 'duplicate', documentId, message: expect.any(String) }
  expect(await call(client, 'ingest_text', text)).toMatchObject({ isError: false, value: duplicate })
  const rival = await call(client, 'ingest_text', { ...text, text: 'Other wings.' })
  expect(rival).toMatchObject({ isError: true, value: { outcome: 'name_conflict', documentId } })

  const place = { knowledgeBaseId, documentId }
  expect((await call(client, 'delete_document', place)).value).toEqual({
    outcome: 'deleted',
    documentId,
    chunksDropped: 1,
  })
  expect(await call(client, 'delete_document', place)).toMatchObject({
    isError: false,
    value: { outcome: 'not_found', documentId, chunksDropped: 0 },
  })
  for (const outcome of ['deleted', 'not_found'])
    expect((await call(client, 'delete_knowledge_base', { knowledgeBaseId })).value).toEqual({
      outcome,
      knowledgeBaseId,
    })
  const { body } = await wb.sendAsOperator(`GET /api/v1/workspaces/${wb.workspaceId}/audit`)
  const actions = (body.items as { action: string; subject: { label: string } }[])
    .filter(({ subject }) => subject.label === 'agent')
    .map(({ action }) => action)
  expect(actions).toEqual(expect.arrayContaining(['kb.create', 'kb.delete', 'document.delete', 'mcp.invoke']))
})

test('every tool and argument has a description for models, with a valid example', async () => {
  const wb = await setUpMcp({ config: { mcp: { enabled: true, exposeChat: true } } })
  const client = await wb.client(await wb.mint(['read', 'write']))
  const { tools } = await client.listTools()
  expect(tools).toHaveLength(15)
  expect(new Set(tools.map(({ title }) => title)).size).toBe(tools.length)
  for (const { name, title, description, inputSchema } of tools) {
    expect(title, name).toMatch(/^[A-Z][a-z]+( [a-z]+)+$/)
    expect(inputSchema.additionalProperties, name).toBe(false)
    const properties = Object.entries((inputSchema.properties ?? {}) as Record<string, Described>)
    const given = exampleIn(description) as Record<string, unknown>
    expect(properties.map(([key]) => key)).toEqual(expect.arrayContaining(Object.keys(given)))
    expect(Object.keys(given)).toEqual(expect.arrayContaining(inputSchema.required ?? []))
    for (const [key, property] of properties)
      expect(exampleIn(property.description), `${name} ${key}`).not.toBeUndefined()
    const examples = properties.map(([key, property]) => [key, exampleIn(property.description)])
    const refused = await call(client, name, Object.fromEntries(examples))
    expect(refused.text, name).not.toContain('Invalid arguments')
  }
})

interface Described {
  readonly description?: string
}

/** Returns the example at the end of a description of two sentences or more. */
function exampleIn(description = ''): unknown {
  const [, text] = /^[A-Z].{10,}\. Example: (.+)$/s.exec(description) ?? []
  return text === undefined ? undefined : JSON.parse(text)
}

test('rejects an unknown argument of a tool by name', async () => {
  const wb = await setUpMcp()
  const client = await wb.client(await wb.mint(['read']))
  const { knowledgeBaseId } = wb.base.params
  const refused = await call(client, 'list_documents', { knowledgeBaseId, size: 3, where: 'x' })
  expect(refused).toMatchObject({
    isError: true,
    text: 'MCP error -32602: Invalid arguments for tool list_documents: unknown argument "size", "where"; this tool takes knowledgeBaseId, limit, cursor',
  })
})

test('the instructions name the knowledge bases, the first tool and how to cite', async () => {
  const wb = await setUpMcp()
  const told = (await wb.client(await wb.mint(['read']))).getInstructions()
  expect(told).toContain(`has the knowledge bases ${wb.base.name}.`)
  expect(told).toMatch(/list_knowledge_bases .* search_kb/)
  expect(told).toContain('citation')
  expect(told!.length).toBeLessThan(1_000)
})

test('the pages of a list contain all items in order', async () => {
  const wb = await setUpMcp()
  const client = await wb.client(await wb.mint(['read']))
  const { knowledgeBaseId } = wb.base.params
  const params = wb.base.params
  const names = Array.from({ length: 45 }, (_, at) => `file${at}.txt`)
  for (const sourceFilename of names)
    await wb.callAsOperator(documents.create, { params, body: { sourceFilename } })
  const pages = await pagesOf(client, 'list_documents', { knowledgeBaseId })
  expect(pages.map(page => page.length)).toEqual([20, 20, 5])
  const listed = pages.flat().map(row => row.sourceFilename as string)
  expect(listed.sort()).toEqual(names.sort())
  expect(await pagesOf(client, 'list_documents', { knowledgeBaseId, limit: 200 })).toHaveLength(1)

  for (const [name, args] of [
    ['list_services', {}],
    ['list_services', { kind: 'embedding' }],
    ['list_knowledge_bases', {}],
    ['list_agents', {}],
  ] as const) {
    const whole = (await pagesOf(client, name, { ...args, limit: 200 })).flat()
    expect((await pagesOf(client, name, { ...args, limit: 1 })).flat(), name).toEqual(whole)
    expect(whole.length).toBeGreaterThan(0)
  }
  const lost = await call(client, 'list_documents', { knowledgeBaseId, cursor: 'x' })
  expect(lost).toMatchObject({ isError: true, text: expect.stringContaining('cursor') })
})

async function pagesOf(client: Client, name: string, args: object): Promise<Record<string, unknown>[][]> {
  const pages: Record<string, unknown>[][] = []
  let cursor: string | undefined
  do {
    const page = await call(client, name, { ...args, cursor })
    pages.push(page.value as Record<string, unknown>[])
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return pages
}

test('hits and documents have a source and a citation', async () => {
  const wb = await setUpMcp()
  const client = await wb.client(await wb.mint(['read']))
  const { knowledgeBaseId } = wb.base.params
  const text = '# Deadlines\n\nCustomers return ornithopters within 30 days.'
  const { document } = await wb.base.ingest(text, {
    sourceFilename: 'returns.md',
    metadata: { title: 'Return policy' },
  })
  const { documentId } = document
  const [hit] = (await call(client, 'search_kb', { knowledgeBaseId, text: 'ornithopters' })).value as object[]
  expect(hit).toMatchObject({
    documentId,
    sourceFilename: 'returns.md',
    title: 'Return policy',
    heading: 'Deadlines',
    citation: 'Return policy (returns.md, "Deadlines")',
  })
  expect((await call(client, 'get_document', { knowledgeBaseId, documentId })).value).toMatchObject({
    documentId,
    sourceFilename: 'returns.md',
    title: 'Return policy',
    citation: 'Return policy (returns.md)',
    status: 'ready',
    metadata: { title: 'Return policy' },
    text,
  })
  const missing = await call(client, 'get_document', { knowledgeBaseId, documentId: unknownId })
  expect(missing).toMatchObject({ isError: true, value: { outcome: 'not_found', documentId: unknownId } })
})

test('the pages of a long document contain its text', async () => {
  const wb = await setUpMcp()
  const client = await wb.client(await wb.mint(['read']))
  const { knowledgeBaseId } = wb.base.params
  const lines = Array.from({ length: 1_500 }, (_, at) => `Line ${at} is about ornithopter number ${at * 7}.`)
  const text = lines.join(' ')
  const { documentId } = (await wb.base.ingest(text)).document
  let read = ''
  let pages = 0
  let cursor: string | undefined
  do {
    const page = await call(client, 'get_document', { knowledgeBaseId, documentId, cursor })
    const part = (page.value as { text: string }).text
    expect(part.length).toBeLessThanOrEqual(20_000)
    read += part
    pages++
    cursor = page.nextCursor
  } while (cursor !== undefined)
  expect(pages).toBeGreaterThan(3)
  expect(read.replace(/\s+/g, ' ')).toBe(text)
})

test('creates a knowledge base with only a name', async () => {
  const wb = await setUpMcp()
  const client = await wb.client(await wb.mint(['write:kb']))
  const made = await call(client, 'create_knowledge_base', { name: 'plain' })
  expect(made).toMatchObject({ isError: false, value: { outcome: 'created', ...(await services(wb)) } })
})

test('audits a denial for a missing scope, even with invalid arguments [S5.5-25]', async () => {
  const wb = await setUpMcp()
  const client = await wb.client(await wb.mint(['read']))
  for (const args of [{}, { knowledgeBaseId: 5 }, { knowledgeBaseId: 'x', text: '' }])
    expect(await call(client, 'ingest_text', args)).toMatchObject({
      isError: true,
      value: { outcome: 'denied', required: 'write:ingest' },
    })
  const records = await wb.toolAuditRecords()
  expect(records.map(({ outcome, details }) => [details?.toolName, outcome])).toEqual(
    Array(3).fill(['ingest_text', 'denied']),
  )
  const writer = await wb.client(await wb.mint(['read', 'write']))
  expect((await call(writer, 'ingest_text', {})).text).toMatch(/^MCP error -32602: /)
  expect(await wb.toolAuditRecords()).toHaveLength(3)
})

test('S5.5-25: denies a caller without the scope in the tool result, changes nothing, and audits it', async () => {
  const wb = await filled()
  const client = await wb.client(await wb.mint(['read', 'write:kb']))
  const { knowledgeBaseId } = wb.base.params
  const { documentId } = wb.document
  const denied = {
    outcome: 'denied',
    code: 'scope_required',
    required: 'write:ingest',
    subjectScopes: ['read', 'write:kb'],
    message: expect.stringContaining('write:ingest'),
  }
  const { tools } = await client.listTools()
  expect(tools.map(({ name }) => name)).toContain('ingest_text')
  for (const [name, args] of [
    ['ingest_text', { knowledgeBaseId, text: 'more' }],
    ['delete_document', { knowledgeBaseId, documentId }],
  ] as const)
    expect(await call(client, name, args)).toMatchObject({ isError: true, value: denied })
  const other = await wb.client(await wb.mint(['read', 'write:ingest']))
  for (const [name, args] of [
    ['create_knowledge_base', { name: 'more', ...(await services(wb)) }],
    ['delete_knowledge_base', { knowledgeBaseId }],
  ] as const)
    expect(await call(other, name, args)).toMatchObject({
      isError: true,
      value: {
        ...denied,
        required: 'write:kb',
        subjectScopes: expect.any(Array),
        message: expect.any(String),
      },
    })
  const asRead = await call(client, 'list_documents', { knowledgeBaseId })
  expect(asRead.value).toMatchObject([{ documentId }])
  await call(client, 'list_documents', { knowledgeBaseId: unknownId })

  const records = await wb.toolAuditRecords()
  expect(records.map(({ outcome, details }) => [details?.toolName, outcome])).toEqual([
    ['ingest_text', 'denied'],
    ['delete_document', 'denied'],
    ['create_knowledge_base', 'denied'],
    ['delete_knowledge_base', 'denied'],
    ['list_documents', 'success'],
    ['list_documents', 'failure'],
  ])
  expect(records[0]).toMatchObject({
    subject: { type: 'apiKey', label: 'agent' },
    details: { requiredScope: 'write:ingest' },
  })
  const { body } = await wb.sendAsOperator(`GET /api/v1/workspaces/${wb.workspaceId}/connect/traffic`)
  expect(body.summary).toEqual({ total: 6, successes: 1, failures: 5 })
  expect(body.entries).toMatchObject([
    { toolName: 'list_documents', outcome: 'failure', subjectType: 'apiKey', subjectLabel: 'agent' },
    { outcome: 'success', reason: null },
    {},
    {},
    {},
    { outcome: 'denied' },
  ])
})

test('reports unknown tools and invalid arguments as protocol errors, without an audit record', async () => {
  const wb = await setUpMcp()
  const client = await wb.client(await wb.mint(['read']))
  for (const [name, args, why] of [
    ['constructor', {}, 'Tool constructor not found'],
    ['chat_send', {}, 'Tool chat_send not found'],
    ['search_kb', { knowledgeBaseId: 'papers' }, 'Invalid arguments for tool search_kb: knowledgeBaseId: '],
    [
      'search_kb',
      { knowledgeBaseId: unknownId, text: 'x', topK: 65 },
      'Invalid arguments for tool search_kb: topK: ',
    ],
  ] as const) {
    const told = await call(client, name, args)
    expect(told.isError).toBe(true)
    expect(told.text.startsWith(`MCP error -32602: ${why}`), told.text).toBe(true)
  }
  expect(await wb.toolAuditRecords()).toEqual([])
})

test('hides the message of an internal error', async () => {
  const secret = 'SQLITE_BUSY at /var/lib/secret'
  let isBroken = false
  const wb = await setUpMcp({
    content: store =>
      new Proxy(store, {
        get(target, name, receiver) {
          if (isBroken && name === 'collection') return () => Promise.reject(new Error(secret))
          const value = Reflect.get(target, name, receiver)
          return typeof value === 'function' ? value.bind(target) : value
        },
      }),
  })
  const client = await wb.client(await wb.mint(['read']))
  isBroken = true
  const { knowledgeBaseId } = wb.base.params
  const told = await call(client, 'search_kb', { knowledgeBaseId, text: 'x' })
  expect(told).toMatchObject({ isError: true, text: expect.stringMatching(/\(request \S+\)$/) })
  expect(told.text).not.toContain('SQLITE')
  expect(JSON.stringify(wb.loggedProblems.map(({ facts }) => String(facts.error)))).toContain(secret)
})

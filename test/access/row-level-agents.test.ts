import { describe, expect, test } from 'vitest'
import { fakeSentenceModel } from '../fakes/sentence-model.ts'
import { builtInToolIds } from '../harness/tools.ts'
import { callMcpTool, itemsOf, type JsonObject } from './principal-requests.ts'
import { createAgent, ingest, missingId, openRestrictedWorkspace } from './restricted-workspace.ts'

/** Opens a workspace with a fake model, and three documents: of alice, of bob, and shared by both. */
async function openWithDocuments() {
  const opened = await openRestrictedWorkspace({
    config: { mcp: { exposeChat: true } },
    sentenceModel: fakeSentenceModel(),
  })
  const { as, base } = opened
  const [alice, bob] = [as('alice'), as('bob')]
  const ids: Record<string, string> = {}
  for (const [name, owner, visibleTo] of [
    ['alice', alice, ['alice']],
    ['bob', bob, ['bob']],
    ['shared', bob, ['alice', 'bob']],
  ] as const) {
    const text = `The turbine report of ${name} mentions the zeppelin${name} contract.`
    ids[name] = await ingest(owner, base, { text, sourceFilename: `${name}.md`, visibleTo })
  }
  return { ...opened, alice, bob, ids, agent: await createAgent(opened) }
}

const search = { name: 'search_kb', arguments: { query: 'turbine report' } }

test('citations and chunk IDs of stored answers are removed while their document is hidden', async () => {
  const { alice, bob, base, workspace, ids, agent } = await openWithDocuments()
  const path = await agent.startConversation(alice)
  agent.model.script({ toolCalls: [search] }, { text: 'In the contracts [1] [2].' })
  expect((await alice(`POST ${path}/messages`, { content: 'what do the reports mention?' })).status).toBe(201)
  const question = itemsOf(await alice(`GET ${path}/messages`))[0]!
  const answers = async () => [
    itemsOf(await alice(`GET ${path}/messages`))[1]!.metadata as Record<string, string>,
    (await alice(`GET ${path}/messages/${question.messageId}/versions`)).text,
    await callMcpTool(alice, workspace, 'list_chat_messages', { chatId: path.split('/').at(-1) }),
  ]
  const citedIn = ([metadata]: unknown[]) =>
    (JSON.parse((metadata as { citations: string }).citations) as { documentId: string }[])
      .map(({ documentId }) => documentId)
      .sort()
  const before = await answers()
  expect(citedIn(before)).toEqual([ids.alice, ids.shared].sort())
  await bob(`PATCH ${base}/documents/${ids.shared}`, { visibleTo: ['bob'] })
  const hidden = await answers()
  expect(citedIn(hidden)).toEqual([ids.alice])
  expect(JSON.stringify(hidden)).not.toMatch(new RegExp(`${ids.shared}|shared\\.md`))
  await bob(`PATCH ${base}/documents/${ids.shared}`, { visibleTo: ['alice', 'bob'] })
  expect(await answers()).toEqual(before)
})

test('the unsupported sentences of a stored answer are removed while a document that it cites is hidden', async () => {
  const { alice, bob, base, ids, agent } = await openWithDocuments()
  const path = await agent.startConversation(alice)
  const text = 'The report mentions the contract of the turbine [1] [2]. It was signed by Anna Berg.'
  agent.model.script({ toolCalls: [search] }, { text })
  await alice(`POST ${path}/messages`, { content: 'what do the reports mention?' })
  const marks = async () => {
    const { metadata } = itemsOf(await alice(`GET ${path}/messages`))[1]!
    return (metadata as Record<string, string>).unsupported
  }
  const before = await marks()
  expect(before).toBe(JSON.stringify([{ start: text.indexOf('It was'), end: text.length }]))
  await bob(`PATCH ${base}/documents/${ids.shared}`, { visibleTo: ['bob'] })
  expect(await marks()).toBeUndefined()
  await bob(`PATCH ${base}/documents/${ids.shared}`, { visibleTo: ['alice', 'bob'] })
  expect(await marks()).toBe(before)
})

test('tools of agents return and count only visible documents, and answer for a hidden one as for a missing one', async () => {
  const { alice, knowledgeBaseId, ids, agent } = await openWithDocuments()
  const path = await agent.startConversation(alice)
  const tools = builtInToolIds.filter(id => id !== 'list_kbs')
  const callsFor = (documentId: string | undefined) =>
    tools.map(name => {
      const one = { knowledgeBaseId, documentId }
      const args = name === 'search_kb' ? { query: 'zeppelinbob' } : {}
      return { name, arguments: /get_document|list_chunks/.test(name) ? one : args }
    })
  const resultsFor = async (documentId: string) => {
    const sent = agent.model.received.length
    agent.model.script({ toolCalls: callsFor(documentId) }, { text: 'Done.' })
    await alice(`POST ${path}/messages`, { content: `look at ${documentId}` })
    const { messages } = agent.model.received
      .slice(sent)
      .map(({ body }) => body as { messages: { role: string; content: string }[] })
      .findLast(({ messages }) => messages.at(-1)!.role === 'tool')!
    return messages
      .slice(-tools.length)
      .map(({ content }) => content.replaceAll(/<\/?data[^>]*>/g, '').replaceAll(documentId, 'ID'))
  }
  const hidden = await resultsFor(ids.bob!)
  expect(hidden).toEqual(await resultsFor(missingId))
  expect(hidden).toHaveLength(tools.length)
  expect(hidden.join()).not.toMatch(/zeppelinbob contract|bob\.md/)
  expect(JSON.parse(hidden[1]!)).toMatchObject({ total: 2 })
  const readable = await resultsFor(ids.shared!)
  expect(readable[5]).toContain('zeppelinshared')
})

test('MCP tools add a text beside a hidden one with the same text and file name', async () => {
  const { alice, bob, base, workspace, knowledgeBaseId, ids } = await openWithDocuments()
  const text = 'The turbine report of bob mentions the zeppelinbob contract.'
  const args = { knowledgeBaseId, text, sourceFilename: 'bob.md', overwriteOnNameConflict: true }
  const added = await callMcpTool(alice, workspace, 'ingest_text', args)
  expect(added).toContain('completed')
  expect(added).not.toContain(ids.bob)
  expect((await bob(`GET ${base}/documents/${ids.bob}/chunks`)).body).toMatchObject([{ text }])
  const listed = await callMcpTool(alice, workspace, 'list_documents', { knowledgeBaseId })
  expect(listed).not.toContain(ids.bob)
})

test('completions of the OpenAI API send no hidden passage to the model, and refer to none', async () => {
  const { alice, workspace, ids, agent } = await openWithDocuments()
  agent.model.script({ toolCalls: [search] }, { text: 'In the contracts [1] [2] [3].' })
  const question = { role: 'user', content: 'what do the reports of alice and bob mention?' }
  const body = { model: 'maven', messages: [question] }
  const answer = await alice(`POST ${workspace}/openai/v1/chat/completions`, body)
  expect(answer.status).toBe(200)
  const sent = JSON.stringify(agent.model.received.map(({ body }) => body as JsonObject))
  expect(sent).toContain('zeppelinshared')
  expect(sent).not.toMatch(/zeppelinbob|bob\.md/)
  expect(answer.text).toContain(ids.shared)
  expect(answer.text).not.toContain(ids.bob)
})

test('an agent that searches before it asks its model retrieves no hidden passage', async () => {
  const { alice, workspace, agent } = await openWithDocuments()
  const args = { agentId: agent.agentId, content: 'what does the turbine report of bob mention?' }
  agent.model.respond(() => ({ text: 'A contract [1] [2] [3].' }))
  const answer = await callMcpTool(alice, workspace, 'run_agent', args)
  expect(answer).toContain('completed')
  const sent = JSON.stringify(agent.model.received.map(({ body }) => body as JsonObject))
  expect(sent).toContain('zeppelinshared')
  expect(sent).not.toContain('zeppelinbob')
})

describe('after a hidden document was deleted, a new one with its ID does not bring back', () => {
  const secret = 'The zeppelin costs 4711 pounds.'

  /** Alice asks about a document of bob. Then bob hides it from her, and deletes it. */
  async function openAfterDeletion() {
    const opened = await openRestrictedWorkspace()
    const { base, as } = opened
    const [alice, bob] = [as('alice'), as('bob')]
    const shared = { text: secret, sourceFilename: 'prices.md', visibleTo: ['alice', 'bob'] }
    const documentId = await ingest(bob, base, shared)
    const agent = await createAgent(opened)
    const path = await agent.startConversation(alice)
    agent.model.script({ toolCalls: [search] }, { text: 'In the price list [1].' })
    await alice(`POST ${path}/messages`, { content: 'what does the zeppelin cost?' })
    const citations = async () =>
      (itemsOf(await alice(`GET ${path}/messages`))[1]!.metadata as JsonObject).citations
    /** Returns what the model receives with the next question. */
    const modelInput = async () => {
      await alice(`POST ${path}/messages`, { content: 'repeat the tool result' })
      return JSON.stringify(agent.model.received.at(-1)!.body.messages)
    }
    expect(await citations()).toContain('prices.md')
    await bob(`PATCH ${base}/documents/${documentId}`, { visibleTo: ['bob'] })
    await bob(`DELETE ${base}/documents/${documentId}?permanently=true`)
    return { ...opened, alice, documentId, citations, modelInput }
  }

  test('citations and tool results', async () => {
    const { base, alice, documentId, citations, modelInput } = await openAfterDeletion()
    expect((await alice(`POST ${base}/documents`, { documentId })).status).toBe(201)
    expect(await citations()).toBe('[]')
    expect(await modelInput()).not.toContain('4711')
  })

  test('citations, if a record gets the ID of its chunk', async () => {
    const { base, operator, documentId, citations } = await openAfterDeletion()
    const record = { id: `${documentId}:0`, text: 'Mine.', visibleTo: ['alice'] }
    expect((await operator(`POST ${base}/records`, { records: [record] })).status).toBe(200)
    expect(await citations()).toBe('[]')
  })

  test('citations, if the knowledge base was deleted and created again, too', async () => {
    const { workspace, base, knowledgeBaseId, operator, alice, documentId, citations } =
      await openAfterDeletion()
    expect((await operator(`DELETE ${base}`)).status).toBe(204)
    await alice(`POST ${workspace}/knowledge-bases`, { name: 'mine', knowledgeBaseId })
    expect((await alice(`POST ${base}/documents`, { documentId })).status).toBe(201)
    expect(await citations()).toBe('[]')
  })

  test('its jobs', async () => {
    const { wb, workspace, base, as } = await openRestrictedWorkspace()
    const [alice, bob] = [as('alice'), as('bob')]
    const { body } = await bob(`POST ${base}/ingest?async=true`, { text: secret })
    const { documentId } = body.document as { documentId: string }
    await wb.settle()
    await bob(`DELETE ${base}/documents/${documentId}?permanently=true`)
    expect((await alice(`POST ${base}/documents`, { documentId })).status).toBe(201)
    expect(itemsOf(await alice(`GET ${workspace}/jobs`))).toEqual([])
  })
})

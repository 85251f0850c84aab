import { expect, onTestFinished, test } from 'vitest'
import { agents } from '../../src/contract/agents.ts'
import { conversations } from '../../src/contract/conversations.ts'
import { llmServices } from '../../src/contract/services.ts'
import { type ChatRequest, startChatServer } from '../fakes/chat-server.ts'
import { call, type McpSetup, setUpMcp, unknownId } from './mcp-setup.ts'

/** A server with chat tools and a model that echoes messages, and fails at "fail". */
async function chatStage() {
  const model = await startChatServer()
  onTestFinished(() => model.close())
  model.respond(asked => {
    const content = questionIn(asked)
    if (content === 'fail') return { status: 400, body: { error: { message: 'cut off' } } }
    return { text: `you said ${content}` }
  })
  const wb = await setUpMcp({
    config: { mcp: { exposeChat: true }, runtime: { allowedEndpoints: [model.host] } },
  })
  return { ...wb, model }
}

/** An agent that uses the model. */
async function agentOf(
  { callAsOperator, workspaceId, model }: McpSetup & { model: { url: string } },
  body = {},
) {
  const params = { workspaceId }
  const service = { name: 'fake', provider: 'ollama', modelName: 'fake', endpointBaseUrl: model.url }
  const { llmServiceId } = await callAsOperator(llmServices.create, { params, body: service })
  return callAsOperator(agents.create, { params, body: { name: 'maven', llmServiceId, ...body } })
}

function questionIn({ body }: ChatRequest): string {
  return (body.messages as { content: string }[]).at(-1)!.content
}

test('S7.3-chat_not_found: chat tools succeed in chats that the caller can see, and report others as not found', async () => {
  const wb = await chatStage()
  const client = await wb.client(await wb.mint(['read']))
  const { workspaceId } = wb
  const { knowledgeBaseId } = wb.base.params
  const { document } = await wb.base.ingest('Hello says the ornithopter.')
  const { agentId } = await agentOf(wb, { knowledgeBaseIds: [knowledgeBaseId] })
  const run = await call(client, 'run_agent', { agentId, content: 'hello ornithopter', title: 'first' })
  const { conversationId } = run.value as { conversationId: string }
  expect(run).toMatchObject({
    isError: false,
    value: {
      outcome: 'completed',
      agentId,
      content: 'you said hello ornithopter',
      finishReason: 'stop',
      tokenCount: expect.any(Number),
      contextChunkIds: [`${document.documentId}:0`],
    },
  })
  expect(wb.model.received.at(-1)!.body).not.toHaveProperty('tools')
  expect(JSON.stringify(wb.model.received.at(-1)!.body)).toContain('ornithopter')
  const params = { workspaceId, agentId, conversationId }
  expect(await wb.callAsOperator(conversations.show, { params })).toMatchObject({
    title: 'first',
    knowledgeBaseIds: [knowledgeBaseId],
  })
  const failed = await call(client, 'run_agent', { agentId, content: 'fail', conversationId })
  expect(failed).toMatchObject({
    isError: false,
    value: { outcome: 'completion_error', conversationId, errorMessage: expect.stringContaining('400') },
  })
  const nowhere = await call(client, 'run_agent', { agentId, content: 'x', conversationId: unknownId })
  expect(nowhere).toMatchObject({
    isError: true,
    value: { outcome: 'chat_not_found', conversationId: unknownId, agentId, message: expect.any(String) },
  })
  expect(await call(client, 'run_agent', { agentId: unknownId, content: 'x' })).toMatchObject({
    isError: true,
    value: { outcome: 'agent_not_found', agentId: unknownId },
  })

  const chat = { agentId, chatId: conversationId }
  expect(await call(client, 'chat_send', { ...chat, content: 'again' })).toMatchObject({
    isError: false,
    text: 'you said again',
  })
  expect(await call(client, 'chat_send', { ...chat, content: 'fail' })).toMatchObject({ isError: true })
  const silent = await wb.callAsOperator(agents.create, { params: { workspaceId }, body: { name: 'silent' } })
  expect(await call(client, 'run_agent', { agentId: silent.agentId, content: 'x' })).toMatchObject({
    isError: true,
    text: expect.stringContaining('no LLM service'),
  })
  for (const place of [
    { ...chat, chatId: unknownId },
    { ...chat, agentId: unknownId },
  ])
    expect(await call(client, 'chat_send', { ...place, content: 'x' })).toMatchObject({
      isError: true,
      text: `chat '${place.chatId}' not found`,
    })
})

test('with row-level access, a chat of another caller is not found', async () => {
  const wb = await chatStage()
  const { workspaceId } = wb
  await wb.sendAsOperator(`PATCH /api/v1/workspaces/${workspaceId}`, { rlacEnabled: true })
  const { agentId } = await agentOf(wb)
  const keyOf = async (principalId: string) => {
    await wb.sendAsOperator(`POST /api/v1/workspaces/${workspaceId}/principals`, { principalId })
    const body = { label: principalId, scopes: ['read'], principalId }
    const made = await wb.sendAsOperator(`POST /api/v1/workspaces/${workspaceId}/api-keys`, body)
    return String(made.body.plaintext)
  }
  const ann = await wb.client(await keyOf('ann'))
  const bob = await wb.client(await keyOf('bob'))
  const { conversationId } = (await call(ann, 'run_agent', { agentId, content: 'mine' })).value as {
    conversationId: string
  }
  const chat = { agentId, chatId: conversationId }
  expect(await call(ann, 'chat_send', { ...chat, content: 'x' })).toMatchObject({ isError: false })
  expect(await call(bob, 'chat_send', { ...chat, content: 'x' })).toMatchObject({ isError: true })
  expect(await call(bob, 'list_chat_messages', { chatId: conversationId })).toMatchObject({ isError: true })
  expect((await call(bob, 'list_chats', { agentId })).value).toEqual([])
})

import { expect, onTestFinished, test } from 'vitest'
import { type Client, openClient } from '../../src/client/client.ts'
import { chat, type TurnEvent } from '../../src/contract/chat.ts'
import { type Conversation, messages } from '../../src/contract/conversations.ts'
import { mcpServers } from '../../src/contract/mcp-servers.ts'
import type { ClientRequest } from '../../src/contract/route.ts'
import { llmServices } from '../../src/contract/services.ts'
import { createSandbox, type Sandbox, type TestServer } from '../commands/sandbox.ts'
import { type ChatServer, startChatServer } from '../fakes/chat-server.ts'
import { startMcpServer } from '../fakes/mcp-server.ts'
import { makeAgent, makeConversation } from '../harness/agents.ts'
import { imageBytes, imageOf } from '../harness/images.ts'
import { makeWorkspace } from '../harness/resources.ts'

function clientOf({ url }: TestServer): Client {
  return openClient({ baseUrl: url, fetch })
}

/** A conversation with an agent of a server, with a fake model and a tool that never responds. */
async function begun(here: Sandbox) {
  const model = await startChatServer()
  onTestFinished(() => model.close())
  const slow = { name: 'slow', call: () => new Promise<never>(() => {}) }
  const tools = await startMcpServer({ tools: [slow] })
  const server = await here.spawnServe()
  const client = clientOf(server)
  const { workspaceId } = await makeWorkspace(client)
  const params = { workspaceId }
  const service = { name: 'fake', provider: 'ollama', modelName: 'a:3b', endpointBaseUrl: model.url }
  const { llmServiceId } = await client.call(llmServices.create, { params, body: service })
  const { mcpServerId } = await client.call(mcpServers.create, {
    params,
    body: { label: 'slow', url: tools.url },
  })
  const toolIds = ['list_kbs', `mcp:${mcpServerId}:slow`]
  const agent = await makeAgent(client, { workspaceId, llmServiceId, toolIds })
  return { model, server, client, conversation: await makeConversation(client, agent) }
}

/** Sends a question and kills the server on a given event. */
async function killedAt(
  { server, client, conversation: params }: Awaited<ReturnType<typeof begun>>,
  isDue: (event: TurnEvent) => boolean,
  body: ClientRequest<typeof chat.stream>['body'] = { content: 'first' },
): Promise<void> {
  const read = async () => {
    for await (const event of client.events(chat.stream, { params, body }))
      if (isDue(event as unknown as TurnEvent)) server.process.kill('SIGKILL')
  }
  await expect(read()).rejects.toThrow('the event stream was interrupted')
  await server.ended
}

interface Told {
  role: string
  content: string | null
  tool_calls?: { id: string }[]
  tool_call_id?: string
}

/** Checks that calls and results match in the last request to the model. */
function toldTo({ received }: ChatServer): string[] {
  const told = received.at(-1)!.body.messages as Told[]
  const called = told.flatMap(({ tool_calls = [] }) => tool_calls.map(({ id }) => id))
  const answered = told.flatMap(({ tool_call_id: id }) => id ?? [])
  expect(answered).toEqual(called)
  const asked = told.filter(({ role }) => role === 'user' || role === 'assistant')
  expect(asked.every(({ role }, at) => role === (at % 2 === 0 ? 'user' : 'assistant'))).toBe(true)
  return told.filter(({ role }) => role === 'user').map(({ content }) => String(content))
}

const called = (model: ChatServer) => {
  const tools = model.received.at(-1)!.body.tools as { function: { name: string } }[]
  return { toolCalls: tools.map((tool, at) => ({ name: tool.function.name, id: `call_${at}` })) }
}

async function contents(client: Client, params: Conversation): Promise<(string | null)[]> {
  const { items } = await client.call(messages.list, { params, query: {} })
  return items.map(({ content }) => content)
}

test.each<[string, (model: ChatServer) => void, (event: TurnEvent) => boolean]>([
  [
    'while it speaks',
    model => model.script({ text: 'one two three four', silentAfter: 4 }),
    ({ event }) => event === 'token',
  ],
  [
    'between two results of tools',
    model => model.respond(() => (model.received.length === 1 ? called(model) : undefined)),
    ({ event }) => event === 'tool-result',
  ],
])(
  'a server killed during a turn, %s, keeps the question, and the conversation can continue',
  {
    timeout: 60_000,
  },
  async (_when, play, isDue) => {
    const here = createSandbox()
    const turn = await begun(here)
    const { model, conversation: params } = turn
    play(model)
    await killedAt(turn, isDue)
    const client = clientOf(await here.serve())
    expect(await contents(client, params)).toEqual(['first'])
    await client.call(chat.send, { params, body: { content: 'second' } })
    expect(toldTo(model)).toEqual(['first', 'second'])
    const { items } = await client.call(messages.list, { params, query: {} })
    const body = { content: 'first, again', replaces: items[0]!.messageId }
    await client.call(chat.send, { params, body })
    expect(toldTo(model)).toEqual(['first, again'])
    expect(await contents(client, params)).toEqual(['first, again', 'Hello there.'])
    const { status, stdout } = await here.wb(['doctor', '--deep'])
    expect({ status, stdout }).toMatchObject({ status: 0, stdout: expect.stringMatching(/^store\tok\t/m) })
  },
)

test('a server killed while it answers another version keeps the question and its first answer', {
  timeout: 60_000,
}, async () => {
  const here = createSandbox()
  const turn = await begun(here)
  const { model, client: first, conversation: params } = turn
  const { user } = await first.call(chat.send, { params, body: { content: 'first' } })
  const body = { content: 'first, again', replaces: user.messageId }
  model.script({ text: 'one two three four', silentAfter: 4 })
  await killedAt(turn, ({ event }) => event === 'token', body)
  const client = clientOf(await here.serve())
  expect(await contents(client, params)).toEqual(['first', 'Hello there.'])
  await client.call(chat.send, { params, body })
  expect(await contents(client, params)).toEqual(['first, again', 'Hello there.'])
  const of = { ...params, messageId: user.messageId }
  const { items } = await client.call(messages.versions, { params: of })
  expect(items.map(({ answer, isCurrent }) => [answer?.content, isCurrent])).toEqual([
    ['Hello there.', false],
    [undefined, false],
    ['Hello there.', true],
  ])
  const { status, stdout } = await here.wb(['doctor', '--deep'])
  expect({ status, stdout }).toMatchObject({ status: 0, stdout: expect.stringMatching(/^store\tok\t/m) })
})

test('a server killed after it stored a question keeps its images', { timeout: 60_000 }, async () => {
  const here = createSandbox()
  const turn = await begun(here)
  const { model, conversation: params } = turn
  const bytes = imageBytes('image/png', 300_000)
  model.script({ text: 'one two three four', silentAfter: 4 })
  const body = { content: 'first', images: [imageOf('image/png', 300_000)] }
  await killedAt(turn, ({ event }) => event === 'user-message', body)
  const server = await here.serve()
  const { items } = await clientOf(server).call(messages.list, { params, query: {} })
  const { workspaceId, agentId, conversationId } = params
  const path = `/api/v1/workspaces/${workspaceId}/agents/${agentId}/conversations/${conversationId}`
  const answer = await fetch(`${server.url}${path}/messages/${items[0]!.messageId}/images/0`)
  expect(Buffer.from(await answer.arrayBuffer()).equals(bytes)).toBe(true)
})

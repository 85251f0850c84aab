import { onTestFinished } from 'vitest'
import { readEvents } from '../../src/client/read-events.ts'
import type { Agent } from '../../src/contract/agents.ts'
import type { MessageSend, TurnEvent } from '../../src/contract/chat.ts'
import type { Conversation } from '../../src/contract/conversations.ts'
import type { ClientRequest } from '../../src/contract/route.ts'
import { llmServices } from '../../src/contract/services.ts'
import { type ChatServer, startChatServer } from '../fakes/chat-server.ts'
import { makeAgent, makeConversation } from './agents.ts'
import { makeWorkspace } from './resources.ts'
import { open, type TestRuntime, type TestRuntimeOptions } from './runtime.ts'

/** A runtime with a fake model, an agent and a conversation. */
export interface TestChat extends TestRuntime {
  readonly model: ChatServer
  readonly agent: Agent
  readonly conversation: Conversation
  /** Path of the conversation. */
  readonly path: string
  /** Creates another conversation with the agent. */
  startConversation(): Promise<{ path: string }>
  /** Sends a message and returns all events of the turn. */
  stream(content: string, more?: Partial<MessageSend>): Promise<TurnEvent[]>
  /** Sends a message and yields events as they arrive; leaving the loop disconnects. */
  streamEvents(content: string, more?: Partial<MessageSend>): AsyncGenerator<TurnEvent>
}

interface TestChatOptions extends TestRuntimeOptions {
  readonly service?: object
  readonly agent?: Partial<Agent>
  /** Runs before the agent is created. */
  readonly prepare?: (opened: TestRuntime, workspaceId: string) => Promise<Partial<Agent>>
}

export async function openTestChat({
  service,
  agent: fields,
  prepare,
  ...options
}: TestChatOptions = {}): Promise<TestChat> {
  const model = await startChatServer()
  onTestFinished(() => model.close())
  const opened = await open(options)
  const { workspaceId } = await makeWorkspace(opened)
  const fakeService = { name: 'fake', provider: 'ollama', modelName: 'a:3b', endpointBaseUrl: model.url }
  const { llmServiceId } = await opened.call(llmServices.create, {
    params: { workspaceId },
    body: { ...fakeService, ...service } as ClientRequest<typeof llmServices.create>['body'],
  })
  const prepared = await prepare?.(opened, workspaceId)
  const agent = await makeAgent(opened, { workspaceId, llmServiceId, ...prepared, ...fields })
  const pathOf = ({ agentId, conversationId }: Conversation) =>
    `/api/v1/workspaces/${workspaceId}/agents/${agentId}/conversations/${conversationId}`
  const conversation = await makeConversation(opened, agent)
  const path = pathOf(conversation)
  async function* streamEvents(content: string, more: Partial<MessageSend> = {}): AsyncGenerator<TurnEvent> {
    const abort = new AbortController()
    const response = await opened.runtime.fetch(
      new Request(`http://localhost${path}/messages/stream`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...options.headers },
        body: JSON.stringify({ content, ...more }),
        signal: abort.signal,
      }),
    )
    if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`)
    try {
      for await (const { event, data } of readEvents(response.body!, abort.signal))
        yield { event, data } as TurnEvent
    } finally {
      abort.abort()
    }
  }
  const stream = async (content: string, more?: Partial<MessageSend>) => {
    const events: TurnEvent[] = []
    for await (const event of streamEvents(content, more)) events.push(event)
    return events
  }
  const startConversation = async () => ({ path: pathOf(await makeConversation(opened, agent)) })
  return { ...opened, model, agent, conversation, path, startConversation, stream, streamEvents }
}

/** Returns the names of events, with consecutive tokens as one. */
export function eventNames(events: readonly TurnEvent[]): string[] {
  return events
    .map(({ event }) => event)
    .filter((event, at, all) => event !== 'token' || all[at - 1] !== 'token')
}

/** Returns the data of events with a name. */
export function eventData<K extends TurnEvent['event']>(
  events: readonly TurnEvent[],
  name: K,
): Extract<TurnEvent, { event: K }>['data'][] {
  return events.flatMap(({ event, data }) => (event === name ? [data as never] : []))
}

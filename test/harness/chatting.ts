import { onTestFinished } from 'vitest'
import { readEvents } from '../../src/client/read-events.ts'
import type { Agent } from '../../src/contract/agents.ts'
import type { MessageSend, TurnEvent } from '../../src/contract/chat.ts'
import type { Conversation } from '../../src/contract/conversations.ts'
import type { ClientRequest as Asked } from '../../src/contract/route.ts'
import { llmServices } from '../../src/contract/services.ts'
import { type ChatServer, startChatServer } from '../fakes/chat-server.ts'
import { makeAgent, makeConversation } from './agents.ts'
import { makeWorkspace } from './place.ts'
import { type Opened, type Options, open } from './runtime.ts'

/** A conversation with an agent whose model is a fake, in a runtime of its own. */
export interface Chatting extends Opened {
  readonly model: ChatServer
  readonly agent: Agent
  readonly conversation: Conversation
  /** Path of the conversation. */
  readonly path: string
  /** Another conversation with the agent. */
  begin(): Promise<{ path: string }>
  /** All that a turn tells. */
  stream(content: string, more?: Partial<MessageSend>): Promise<TurnEvent[]>
  /** The same while it goes on; the reader goes away when it is left. */
  streaming(content: string, more?: Partial<MessageSend>): AsyncGenerator<TurnEvent>
}

interface Wanted extends Options {
  readonly service?: object
  readonly agent?: Partial<Agent>
  /** Made before the agent. */
  readonly prepare?: (opened: Opened, workspaceId: string) => Promise<Partial<Agent>>
}

export async function chatting({
  service,
  agent: fields,
  prepare,
  ...options
}: Wanted = {}): Promise<Chatting> {
  const model = await startChatServer()
  onTestFinished(() => model.close())
  const opened = await open(options)
  const { workspaceId } = await makeWorkspace(opened)
  const own = { name: 'fake', provider: 'ollama', modelName: 'a:3b', endpointBaseUrl: model.url }
  const { llmServiceId } = await opened.call(llmServices.create, {
    params: { workspaceId },
    body: { ...own, ...service } as Asked<typeof llmServices.create>['body'],
  })
  const prepared = await prepare?.(opened, workspaceId)
  const agent = await makeAgent(opened, { workspaceId, llmServiceId, ...prepared, ...fields })
  const pathOf = ({ agentId, conversationId }: Conversation) =>
    `/api/v1/workspaces/${workspaceId}/agents/${agentId}/conversations/${conversationId}`
  const conversation = await makeConversation(opened, agent)
  const path = pathOf(conversation)
  async function* streaming(content: string, more: Partial<MessageSend> = {}): AsyncGenerator<TurnEvent> {
    const leave = new AbortController()
    const answer = await opened.runtime.fetch(
      new Request(`http://localhost${path}/messages/stream`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...options.headers },
        body: JSON.stringify({ content, ...more }),
        signal: leave.signal,
      }),
    )
    if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`)
    try {
      for await (const { event, data } of readEvents(answer.body!, leave.signal))
        yield { event, data } as TurnEvent
    } finally {
      leave.abort()
    }
  }
  const stream = async (content: string, more?: Partial<MessageSend>) => {
    const events: TurnEvent[] = []
    for await (const event of streaming(content, more)) events.push(event)
    return events
  }
  const begin = async () => ({ path: pathOf(await makeConversation(opened, agent)) })
  return { ...opened, model, agent, conversation, path, begin, stream, streaming }
}

/** The names of what a turn told; tokens in a row are one. */
export function shapeOf(events: readonly TurnEvent[]): string[] {
  return events
    .map(({ event }) => event)
    .filter((event, at, all) => event !== 'token' || all[at - 1] !== 'token')
}

/** The data of the events of a name. */
export function dataOf<K extends TurnEvent['event']>(
  events: readonly TurnEvent[],
  name: K,
): Extract<TurnEvent, { event: K }>['data'][] {
  return events.flatMap(({ event, data }) => (event === name ? [data as never] : []))
}

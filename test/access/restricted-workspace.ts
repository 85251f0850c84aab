import { onTestFinished } from 'vitest'
import { readEvents } from '../../src/client/read-events.ts'
import type { ServerEvent } from '../../src/contract/route.ts'
import { type ChatServer, startChatServer } from '../fakes/chat-server.ts'
import { open, type TestRuntime, type TestRuntimeOptions } from '../harness/runtime.ts'
import type { JsonObject, Send } from './principal-requests.ts'

/** A workspace with row-level access and one knowledge base, in a runtime that requires keys. */
export interface RestrictedWorkspace {
  readonly wb: TestRuntime
  /** Path of the workspace. */
  readonly workspace: string
  /** Path of the knowledge base. */
  readonly base: string
  readonly knowledgeBaseId: string
  /** Sends a request as the owner of the data directory, who sees everything. */
  readonly operator: Send
  /** Returns a function that sends requests with a key of a principal, which has the scopes of an editor. */
  as(principalId: string): Send
  /** Yields the events of a stream until the stream ends. */
  follow(principalId: string, path: string): AsyncGenerator<ServerEvent>
}

export const missingId = '00000000-0000-4000-8000-000000000000'
const workspaces = '/api/v1/workspaces'

export async function openRestrictedWorkspace(
  options: TestRuntimeOptions = {},
): Promise<RestrictedWorkspace> {
  const wb = await open({
    ...options,
    config: {
      ...options.config,
      auth: { mode: 'apiKey', anonymousPolicy: 'reject' },
      runtime: { rateLimit: { capacity: 1_000_000 }, allowedEndpoints: ['127.0.0.1'] },
    },
  })
  const operator: Send = (line, json) => wb.sendAsOperator(line, json)
  const made = await operator(`POST ${workspaces}`, { name: 'w', kind: 'local', rlacEnabled: true })
  const workspace = `${workspaces}/${made.body.workspaceId}`
  const { body } = await operator(`POST ${workspace}/knowledge-bases`, { name: 'kb' })
  const knowledgeBaseId = String(body.knowledgeBaseId)
  const tokens = new Map<string, Promise<string>>()
  const createToken = async (principalId: string) => {
    const key = { label: principalId, role: 'editor', principalId }
    return String((await operator(`POST ${workspace}/api-keys`, key)).body.plaintext)
  }
  const authorizationOf = async (principalId: string) => {
    const token = tokens.get(principalId) ?? createToken(principalId)
    tokens.set(principalId, token)
    return { authorization: `Bearer ${await token}` }
  }
  return {
    wb,
    workspace,
    base: `${workspace}/knowledge-bases/${knowledgeBaseId}`,
    knowledgeBaseId,
    operator,
    as: principalId => async (line, json, headers) =>
      wb.send(line, json, { ...(await authorizationOf(principalId)), ...headers }),
    async *follow(principalId, path) {
      const headers = { ...(await authorizationOf(principalId)), accept: 'text/event-stream' }
      const response = await wb.runtime.fetch(new Request(`http://localhost${path}`, { headers }))
      yield* readEvents(response.body!, undefined)
    },
  }
}

/** An agent with a fake model. */
export interface RestrictedAgent {
  readonly model: ChatServer
  readonly agentId: string
  /** Creates a conversation, and returns its path. */
  startConversation(send: Send): Promise<string>
}

/** Creates the agent `maven`, which searches all knowledge bases of the workspace. */
export async function createAgent({ workspace, operator }: RestrictedWorkspace): Promise<RestrictedAgent> {
  const model = await startChatServer()
  onTestFinished(() => model.close())
  const service = { name: 'fake', provider: 'ollama', modelName: 'fake', endpointBaseUrl: model.url }
  const { llmServiceId } = (await operator(`POST ${workspace}/llm-services`, service)).body
  const { agentId } = (await operator(`POST ${workspace}/agents`, { name: 'maven', llmServiceId })).body
  return {
    model,
    agentId: String(agentId),
    async startConversation(send) {
      const path = `${workspace}/agents/${agentId}/conversations`
      return `${path}/${(await send(`POST ${path}`, {})).body.conversationId}`
    },
  }
}

/** Ingests a text that is visible to some principals, and returns the ID of its document. */
export async function ingest(send: Send, base: string, body: JsonObject): Promise<string> {
  const answer = await send(`POST ${base}/ingest`, body)
  if (answer.status !== 201) throw new Error(`${answer.status} ${answer.text}`)
  return (answer.body.document as { documentId: string }).documentId
}

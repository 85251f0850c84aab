import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import type { Citation, MessageSend } from '../../src/contract/chat.ts'
import type { Message } from '../../src/contract/conversations.ts'

export const ids = {
  workspace: '00000000-0000-4000-8000-000000000001',
  maven: '00000000-0000-4000-8000-0000000000a1',
  bobby: '00000000-0000-4000-8000-0000000000a2',
  base: '00000000-0000-4000-8000-0000000000b1',
  service: '00000000-0000-4000-8000-0000000000c1',
  document: '00000000-0000-4000-8000-0000000000d1',
}

/** One turn, scripted by a test. */
export interface ScriptedTurn {
  readonly userMessage: MessageSend
  sendEvent(event: string, data: object): Promise<void>
  sendToken(text: string): Promise<void>
  /** Sends the stored answer, which ends the stream. */
  finish(content: string, metadata?: Record<string, string>): Promise<void>
  /** Requests an approval and returns the decision. */
  requestApproval(toolCall: object): Promise<string>
  /** Closes the connection. */
  disconnect(): void
  readonly signal: AbortSignal
}

export interface ChatRuntime {
  readonly url: string
  readonly port: number
  /** Responds to messages that are not rejected by `refusal`. */
  play: (turn: ScriptedTurn) => Promise<void>
  refusal: { status: number; code: string; message: string; hint?: string } | undefined
  /** Rejects detached turns with `rate_limited`. */
  isFull: boolean
  /** Metadata of an answer that is not streamed. */
  answerMetadata: Record<string, string>
  readonly storedMessages: Message[]
  readonly sentMessages: MessageSend[]
  close(): Promise<void>
}

const now = '2026-01-01T00:00:00.000Z'
const path = /^\/api\/v1\/workspaces(?:\/([^/]+)(?:\/(.*))?)?$/

function agent(agentId: string, name: string) {
  return {
    workspaceId: ids.workspace,
    agentId,
    name,
    description: null,
    systemPrompt: null,
    userPrompt: null,
    llmServiceId: ids.service,
    knowledgeBaseIds: [ids.base],
    toolIds: [],
    rerankEnabled: false,
    rerankingServiceId: null,
    rerankMaxResults: null,
    toolRules: {},
    createdAt: now,
    updatedAt: now,
  }
}

function document(title?: string) {
  return {
    workspaceId: ids.workspace,
    knowledgeBaseId: ids.base,
    attachmentId: null,
    documentId: ids.document,
    sourceFilename: 'laws.md',
    metadata: title === undefined ? {} : { title },
    status: 'ready',
  }
}

const agents = [agent(ids.bobby, 'Bobby'), agent(ids.maven, 'Maven')]
const service = {
  llmServiceId: ids.service,
  name: 'hosted',
  provider: 'openai',
  modelName: 'gpt-4o-mini',
}

/** Starts a fake runtime with the routes of a chat and a real event stream, scripted by a test. */
export async function chatRuntime(port = 0): Promise<ChatRuntime> {
  const conversations: { title: string | null }[] = []
  const entitle = (content: string) => {
    const [last] = conversations.slice(-1)
    if (last) last.title ??= content
  }
  const decisions = new Map<string, (decision: string) => void>()
  let serial = 0
  const id = () => `00000000-0000-4000-8000-${String(++serial).padStart(12, '0')}`
  const runtime = {
    storedMessages: [] as Message[],
    sentMessages: [] as MessageSend[],
    refusal: undefined as ChatRuntime['refusal'],
    isFull: false,
    answerMetadata: {} as ChatRuntime['answerMetadata'],
    play: (async turn => turn.finish('An answer.')) as ChatRuntime['play'],
  }
  const message = (
    role: Message['role'],
    content: string,
    metadata: Record<string, string> = {},
  ): Message => {
    const stored = {
      workspaceId: ids.workspace,
      chatId: ids.workspace,
      messageId: id(),
      messageTs: now,
      role,
      content,
      tokenCount: role === 'agent' ? 100 : null,
      metadata,
    }
    runtime.storedMessages.push(stored)
    return stored
  }
  const page = (items: object[]) => ({ items, nextCursor: null })

  const refuse = (response: ServerResponse, { status, ...refusal }: NonNullable<ChatRuntime['refusal']>) =>
    json(response, status, { error: { hint: '', ...refusal, requestId: 'r' } })

  async function stream(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const userMessage = JSON.parse(await bodyOf(request)) as MessageSend
    runtime.sentMessages.push(userMessage)
    if (runtime.refusal) return refuse(response, runtime.refusal)
    if (runtime.isFull && userMessage.detached)
      return refuse(response, { status: 429, code: 'rate_limited', message: 'too many' })
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const over = new AbortController()
    response.on('close', () => over.abort())
    const sendEvent = async (event: string, data: object) => {
      if (over.signal.aborted) return
      const flows = response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
      if (!flows) await new Promise(done => response.once('drain', done))
    }
    if (userMessage.replaces) {
      const at = runtime.storedMessages.findIndex(({ messageId }) => messageId === userMessage.replaces)
      if (at >= 0) runtime.storedMessages.splice(at)
    }
    entitle(userMessage.content)
    await sendEvent('user-message', message('user', userMessage.content))
    await runtime.play({
      userMessage,
      sendEvent,
      sendToken: delta => sendEvent('token', { delta }),
      async finish(content, metadata) {
        await sendEvent(
          'done',
          message('agent', content, { model: 'gpt-4o-mini', finish_reason: 'stop', ...metadata }),
        )
      },
      async requestApproval(toolCall) {
        const approvalId = id()
        const decided = new Promise<string>(done => decisions.set(approvalId, done))
        const expiresAt = new Date(Date.now() + 120_000).toISOString()
        await sendEvent('tool-approval', { approvalId, toolCall, expiresAt })
        return decided
      },
      disconnect: () => response.destroy(),
      signal: over.signal,
    })
    response.end()
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '/', 'http://fake')
    const [, workspaceId, rest = ''] = path.exec(pathname) ?? []
    const workspace = { workspaceId: ids.workspace, name: 'demo', kind: 'embedded' }
    if (pathname === '/api/v1/workspaces') return json(response, 200, page([workspace]))
    if (workspaceId === undefined) return json(response, 404, {})
    if (rest === '') return json(response, 200, workspace)
    if (rest === 'agents') return json(response, 200, page(agents))
    if (rest === 'available-tools')
      return json(response, 200, {
        items: [{ id: 'search_kb', description: 'finds passages', source: 'builtin', inputSchema: {} }],
      })
    if (rest === 'llm-services') return json(response, 200, page([service]))
    if (rest.startsWith('llm-services/')) return json(response, 200, service)
    if (rest === 'knowledge-bases')
      return json(response, 200, page([{ knowledgeBaseId: ids.base, name: 'papers', description: null }]))
    if (rest === 'search')
      return json(response, 200, [
        {
          id: 'c1',
          score: 1,
          knowledgeBaseId: ids.base,
          payload: { chunkText: 'A passage that was found.', documentId: ids.document, chunkIndex: 2 },
        },
      ])
    if (rest.endsWith('/chunks'))
      return json(response, 200, [
        { id: 'c0', chunkIndex: 1, text: 'Before it.', payload: {} },
        { id: 'c1', chunkIndex: 2, text: 'The passage itself.', payload: {} },
      ])
    if (rest.endsWith('/documents')) return json(response, 200, page([document('Similarity laws')]))
    if (rest.includes('/documents/')) return json(response, 200, document())
    if (rest.endsWith('/messages/stream')) return stream(request, response)
    if (rest.endsWith('/attachments') && request.method === 'GET') return json(response, 200, page([]))
    if (rest.endsWith('/messages') && request.method === 'GET')
      return json(response, 200, page(runtime.storedMessages))
    if (rest.endsWith('/messages')) {
      const { content } = JSON.parse(await bodyOf(request)) as MessageSend
      if (runtime.refusal) return refuse(response, runtime.refusal)
      entitle(content)
      return json(response, 201, {
        user: message('user', content),
        assistant: message('agent', 'Whole.', runtime.answerMetadata),
      })
    }
    const approvalId = /\/approvals\/(.+)$/.exec(rest)?.[1]
    if (approvalId) {
      const { decision } = JSON.parse(await bodyOf(request)) as { decision: string }
      decisions.get(approvalId)?.(decision)
      return json(response, 200, { approvalId, decision })
    }
    if (rest.endsWith('/conversations') || rest === 'conversations') {
      if (request.method === 'GET') return json(response, 200, page(conversations))
      const body = JSON.parse(await bodyOf(request)) as object
      const conversation = {
        workspaceId,
        agentId: ids.maven,
        conversationId: id(),
        title: null,
        knowledgeBaseIds: [],
        createdAt: now,
        lastActivityAt: now,
        ...body,
      }
      conversations.push(conversation)
      return json(response, 201, conversation)
    }
    if (rest.endsWith('/attachments')) {
      // An upload gets no response.
      if (request.method === 'GET') json(response, 200, page([]))
      return
    }
    if (rest.includes('/conversations/'))
      return json(response, request.method === 'DELETE' ? 204 : 200, conversations[0] ?? {})
    return json(response, 200, agents.find(({ agentId }) => rest === `agents/${agentId}`) ?? agents[1]!)
  }

  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy())
  })
  await listening(server, port)
  const bound = (server.address() as AddressInfo).port
  return Object.assign(runtime, {
    url: `http://127.0.0.1:${bound}`,
    port: bound,
    close: () =>
      new Promise<void>(done => {
        server.close(() => done())
        server.closeAllConnections()
      }),
  })
}

/** Returns metadata with a citation of the passage of this runtime. */
export function citationMetadata(): Record<string, string> {
  const citation: Citation = {
    number: 1,
    knowledgeBaseId: ids.base,
    attachmentId: null,
    documentId: ids.document,
    chunkId: 'c1',
    chunkIndex: 2,
    title: 'aeroelastic models of heated high speed aircraft',
    sourceFilename: 'laws.md',
    page: null,
  }
  return { citations: JSON.stringify([citation, { ...citation, number: 2, page: 4 }]) }
}

/** Streams an answer word by word. */
export async function streamWords(turn: ScriptedTurn, text: string, pauseMs = 0): Promise<void> {
  for (const [piece] of text.matchAll(/\s*\S+\s*$|\s*\S+/g)) {
    if (turn.signal.aborted) return
    await turn.sendToken(piece)
    if (pauseMs > 0) await wait(pauseMs)
  }
}

async function listening(server: Server, port: number): Promise<void> {
  await new Promise<void>(done => server.listen(port, '127.0.0.1', done))
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  return Buffer.concat(parts).toString('utf8')
}

function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(status === 204 ? undefined : JSON.stringify(body))
}

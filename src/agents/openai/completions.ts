import type { Caller, Handlers } from '../../access/caller.ts'
import { requireWorkspace } from '../../access/require-workspace.ts'
import { newId } from '../../base/id.ts'
import type { Agent } from '../../contract/agents.ts'
import type { MessageSend } from '../../contract/chat.ts'
import { WbError } from '../../contract/errors.ts'
import type { ChatCompletion, CompletionCreate, openai } from '../../contract/openai.ts'
import type { ServerEvent } from '../../contract/route.ts'
import type { RowStore } from '../../storage/rows.ts'
import type { ConversationRow, MessageRow } from '../../storage/tables.ts'
import type { ChatModelSource } from '../chat/answering-model.ts'
import { drainingError } from '../chat/opened-turn.ts'
import { Turns, type TurnsParts } from '../chat/turns.ts'
import { conversationVisibility } from '../conversation-visibility.ts'
import type { ConversationKey } from '../conversations.ts'
import { emptyFields, imageRows, imagesField } from '../messages.ts'
import { agentOfModel, listModels } from './agent-models.ts'
import { CompletionChunks, type CompletionIdentity, toChatCompletion } from './chat-completion.ts'
import { type CompletionRequest, parseCompletionRequest } from './completion-request.ts'
import { CompletionStream } from './completion-stream.ts'
import { type CarriedMessage, RequestConversation } from './request-conversation.ts'

/** A conversation of a request, with the agent and model that answer. */
interface OpenedConversation {
  readonly turns: Turns
  readonly conversationKey: ConversationKey
  readonly send: MessageSend
  readonly identity: CompletionIdentity
}

/**
 * Answers conversations that are part of the request and are not stored.
 *
 * @see docs/agents.md#from-an-openai-client
 */
export class Completions {
  constructor(private readonly parts: Omit<TurnsParts, 'conversations' | 'compactions' | 'carried'>) {}

  /** @throws the errors of a message to an agent, chat_answer_failed */
  async complete(workspaceId: string, body: CompletionCreate, caller: Caller): Promise<ChatCompletion> {
    const { turns, conversationKey: place, send, identity } = await this.#open(workspaceId, body, caller)
    const { assistant } = await turns.send(place, send, caller)
    if (assistant.metadata.interrupted) throw drainingError()
    return toChatCompletion(identity, assistant)
  }

  /** @throws the errors of a message to an agent, chat_answer_failed, before the model begins to answer */
  async stream(
    workspaceId: string,
    body: CompletionCreate,
    caller: Caller,
  ): Promise<AsyncIterable<ServerEvent>> {
    const { turns, conversationKey: place, send, identity } = await this.#open(workspaceId, body, caller)
    const chunks = new CompletionChunks(identity, body.stream_options?.include_usage ?? false)
    const stream = new CompletionStream(await turns.stream(place, send, caller), chunks)
    const { requestId } = caller
    const end = () =>
      stream.return().catch(error => this.parts.log.error({ requestId, error }, 'a completion did not end'))
    const callOff = caller.onDrain(() => void end())
    try {
      await stream.begin()
    } finally {
      callOff()
    }
    return stream
  }

  async #open(workspaceId: string, body: CompletionCreate, { auth }: Caller): Promise<OpenedConversation> {
    const { rows, models } = this.parts
    const request = parseCompletionRequest(body)
    // As for a new conversation: with row-level access, only a principal can have one.
    if (conversationVisibility(await requireWorkspace(rows, workspaceId), auth).of === 'none')
      throw new WbError('policy_principal_required', 'a conversation here belongs to a principal')
    const agent = await agentOfModel(rows, workspaceId, body.model)
    const created = this.parts.clock.now()
    const conversation = conversationOf(agent, auth.subject?.principalId ?? null, created)
    const turns = new Turns({
      ...this.parts,
      rows: new RequestConversation(rows, conversation, messagesOf(request, conversation)),
      conversations: { get: async () => conversation },
      // The client decides which messages it sends again.
      compactions: { begin: () => {}, interrupt: () => {} },
      models: request.maxTokens === undefined ? models : withTokenLimit(models, request.maxTokens),
      carried: {
        instructions: request.instructions,
        hasRead: request.earlier.some(({ role }) => role === 'assistant'),
      },
    })
    return {
      turns,
      conversationKey: conversation,
      send: { content: request.question, images: [...request.images], approvals: false, detached: false },
      identity: {
        id: `chatcmpl-${conversation.conversationId}`,
        created: Math.floor(created / 1_000),
        model: body.model,
      },
    }
  }
}

function conversationOf(
  { workspaceId, agentId }: Agent,
  ownerPrincipalId: string | null,
  createdMs: number,
): ConversationRow {
  const createdAt = new Date(createdMs).toISOString()
  return {
    workspaceId,
    agentId,
    conversationId: newId(),
    title: null,
    knowledgeBaseIds: [],
    createdAt,
    lastActivityAt: createdAt,
    ownerPrincipalId,
  }
}

/** Returns the earlier messages as rows, one millisecond apart, with the rows of their images. */
function messagesOf({ earlier }: CompletionRequest, conversation: ConversationRow): CarriedMessage[] {
  const { workspaceId, conversationId, createdAt } = conversation
  const firstMs = Date.parse(createdAt) - earlier.length
  return earlier.map(({ role, content, images }, at) => {
    const row: MessageRow = {
      ...emptyFields,
      workspaceId,
      conversationId,
      messageId: newId(),
      messageTs: new Date(firstMs + at).toISOString(),
      role: role === 'assistant' ? 'agent' : 'user',
      content,
      ...imagesField(images),
    }
    return { row, images: imageRows(row, images) }
  })
}

/** Returns the chat models with answers limited to `maxTokens`. */
function withTokenLimit(models: ChatModelSource, maxTokens: number): ChatModelSource {
  const limit = <M extends { readonly maxTokens: number }>(model: M): M => ({
    ...model,
    maxTokens: Math.min(model.maxTokens, maxTokens),
  })
  return {
    openChat: (...service) => limit(models.openChat(...service)),
    runtimeChat: () => limit(models.runtimeChat()),
  }
}

export function openAiHandlers(rows: RowStore, room: Completions): Handlers<typeof openai> {
  return {
    models: async ({ params: { workspaceId } }) => {
      await requireWorkspace(rows, workspaceId)
      return { status: 200, body: await listModels(rows, workspaceId) }
    },
    complete: async ({ params: { workspaceId }, body }, caller) =>
      body.stream
        ? { status: 200, events: await room.stream(workspaceId, body, caller) }
        : { status: 200, body: await room.complete(workspaceId, body, caller) },
  }
}

import type { Caller, Handlers } from '../../access/caller.ts'
import { requireWorkspace } from '../../access/require-workspace.ts'
import { drainingError } from '../../access/run-until-caller-disconnects.ts'
import { principalIdOf } from '../../access/subject.ts'
import { newId } from '../../base/id.ts'
import type { Agent } from '../../contract/agents.ts'
import type { MessageSend } from '../../contract/chat.ts'
import { WbError } from '../../contract/errors.ts'
import type { ChatCompletion, CompletionCreate, openai } from '../../contract/openai.ts'
import type { ServerEvent } from '../../contract/route.ts'
import type { RowStore } from '../../storage/rows.ts'
import type { ConversationRow, MessageRow } from '../../storage/tables.ts'
import type { ChatModelSource } from '../chat/answering-model.ts'
import { Turns, type TurnsDependencies } from '../chat/turns.ts'
import { conversationVisibility } from '../conversation-visibility.ts'
import type { ConversationKey } from '../conversations.ts'
import { emptyMessageFields, imageRows, imagesField } from '../messages.ts'
import { findAgentByModel, listModels } from './agent-models.ts'
import { CompletionChunks, type CompletionIdentity, toChatCompletion } from './chat-completion.ts'
import { type CompletionRequest, parseCompletionRequest } from './completion-request.ts'
import { CompletionStream } from './completion-stream.ts'
import { RequestConversationRows, type RequestMessageRows } from './request-conversation-rows.ts'

/** The conversation in a request, and the inputs of its turn. */
interface OpenedConversation {
  readonly turns: Turns
  readonly conversationKey: ConversationKey
  readonly message: MessageSend
  readonly identity: CompletionIdentity
}

/**
 * Handles requests of OpenAI clients. Each request contains its conversation, which is not stored.
 *
 * @see docs/agents.md#from-an-openai-client
 */
export class Completions {
  constructor(
    private readonly deps: Omit<
      TurnsDependencies,
      'conversations' | 'compactions' | 'requestContext' | 'answerCheck'
    >,
  ) {}

  /** @throws the errors of `Turns.send`, chat_answer_failed */
  async complete(workspaceId: string, body: CompletionCreate, caller: Caller): Promise<ChatCompletion> {
    const { turns, conversationKey, message, identity } = await this.#open(workspaceId, body, caller)
    const { assistant } = await turns.send(conversationKey, message, caller)
    if (assistant.metadata.interrupted) throw drainingError()
    return toChatCompletion(identity, assistant)
  }

  /** @throws the errors of `Turns.send`, chat_answer_failed  only before the answer starts */
  async stream(
    workspaceId: string,
    body: CompletionCreate,
    caller: Caller,
  ): Promise<AsyncIterable<ServerEvent>> {
    const { turns, conversationKey, message, identity } = await this.#open(workspaceId, body, caller)
    const chunks = new CompletionChunks(identity, body.stream_options?.include_usage ?? false)
    const stream = new CompletionStream(await turns.stream(conversationKey, message, caller), chunks)
    const { requestId } = caller
    const close = () =>
      stream
        .return()
        .catch(error => this.deps.log.error({ requestId, error }, 'a completion stream could not be closed'))
    const removeDrainListener = caller.onDrain(() => void close())
    try {
      await stream.waitForStart()
    } finally {
      removeDrainListener()
    }
    return stream
  }

  async #open(workspaceId: string, body: CompletionCreate, { auth }: Caller): Promise<OpenedConversation> {
    const { rows, models } = this.deps
    const request = parseCompletionRequest(body)
    // Applies the same rule as `Conversations.create`: with row-level access, only principals have conversations.
    if (conversationVisibility(await requireWorkspace(rows, workspaceId), auth).kind === 'none')
      throw new WbError(
        'policy_principal_required',
        'row-level access is on in this workspace, so only principals can have conversations',
      )
    const agent = await findAgentByModel(rows, workspaceId, body.model)
    const createdMs = this.deps.clock.now()
    const conversation = conversationOf(agent, principalIdOf(auth), createdMs)
    const turns = new Turns({
      ...this.deps,
      rows: new RequestConversationRows(rows, conversation, messagesOf(request, conversation)),
      conversations: { get: async () => conversation },
      // The conversation is not summarized, because the client decides which earlier messages to send.
      compactions: { startIfNeeded: () => {}, interrupt: () => {} },
      // The response has no field for the result.
      answerCheck: undefined,
      models: request.maxTokens === undefined ? models : withTokenLimit(models, request.maxTokens),
      requestContext: {
        instructions: request.instructions,
        hasReadUntrusted: request.earlierMessages.some(({ role }) => role === 'assistant'),
      },
    })
    return {
      turns,
      conversationKey: conversation,
      message: { content: request.question, images: [...request.images], approvals: false, detached: false },
      identity: {
        id: `chatcmpl-${conversation.conversationId}`,
        created: Math.floor(createdMs / 1_000),
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

/** Converts the earlier messages to rows, one millisecond apart, with the rows of their images. */
function messagesOf(
  { earlierMessages }: CompletionRequest,
  conversation: ConversationRow,
): RequestMessageRows[] {
  const { workspaceId, conversationId, createdAt } = conversation
  const firstMs = Date.parse(createdAt) - earlierMessages.length
  return earlierMessages.map(({ role, content, images }, index) => {
    const row: MessageRow = {
      ...emptyMessageFields,
      workspaceId,
      conversationId,
      messageId: newId(),
      messageTs: new Date(firstMs + index).toISOString(),
      role: role === 'assistant' ? 'agent' : 'user',
      content,
      // The client sent the text, so it reveals nothing to the client.
      sources: [],
      ...imagesField(images),
    }
    return { row, images: imageRows(row, images) }
  })
}

/** Returns a source of chat models whose answers have at most `maxTokens` tokens. */
function withTokenLimit(models: ChatModelSource, maxTokens: number): ChatModelSource {
  const limitAnswer = <M extends { readonly maxTokens: number }>(model: M): M => ({
    ...model,
    maxTokens: Math.min(model.maxTokens, maxTokens),
  })
  return {
    openChat: (...service) => limitAnswer(models.openChat(...service)),
    runtimeChat: () => limitAnswer(models.runtimeChat()),
  }
}

export function openAiHandlers(rows: RowStore, completions: Completions): Handlers<typeof openai> {
  return {
    models: async ({ params: { workspaceId } }) => {
      await requireWorkspace(rows, workspaceId)
      return { status: 200, body: await listModels(rows, workspaceId) }
    },
    complete: async ({ params: { workspaceId }, body }, caller) =>
      body.stream
        ? { status: 200, events: await completions.stream(workspaceId, body, caller) }
        : { status: 200, body: await completions.complete(workspaceId, body, caller) },
  }
}

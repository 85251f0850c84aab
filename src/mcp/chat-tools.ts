import type { Handlers } from '../access/caller.ts'
import type { Turns } from '../agents/chat/turns.ts'
import type { Conversations } from '../agents/conversations.ts'
import { agents } from '../contract/agents.ts'
import { conversations, type Message } from '../contract/conversations.ts'
import { WbError } from '../contract/errors.ts'
import { boundedText } from '../contract/fields.ts'
import { params } from '../contract/ids.ts'
import { limits } from '../contract/limits.ts'
import { exampleId } from './example-id.ts'
import { rethrowAsChatNotFound } from './rethrow-as-chat-not-found.ts'
import { declareArgument, declareTool, type FacadeCall, type FacadeResult, type FacadeTool } from './tool.ts'

export interface ChatToolDependencies {
  /** Handlers of the routes that the tools call. */
  readonly routes: {
    readonly agents: Pick<Handlers<typeof agents>, 'show'>
    readonly conversations: Pick<Handlers<typeof conversations>, 'create'>
  }
  readonly conversations: Pick<Conversations, 'get'>
  /** Answers messages from retrieved passages, without tool calls. */
  readonly replies: Pick<Turns, 'reply'>
}

const exampleQuestion = 'What changed in the return policy this year?'
const agentId = declareArgument(params.agentId, 'ID of the agent that answers, from list_agents.', exampleId)
const content = declareArgument(
  boundedText(limits.chatMessageChars),
  `Question for the agent, at most ${limits.chatMessageChars} characters.`,
  exampleQuestion,
)
const titleCharsMax = 120

/**
 * Returns the tools that send messages to agents, in display order.
 *
 * @see docs/mcp.md#the-tools
 */
export function chatTools(deps: ChatToolDependencies): FacadeTool[] {
  return [
    declareTool({
      name: 'chat_send',
      title: 'Send a chat message',
      description:
        'Send a message to an existing chat, and return the answer of its agent as text. To start a conversation, use run_agent.',
      input: {
        agentId,
        chatId: declareArgument(params.conversationId, 'ID of the chat, from list_chats.', exampleId),
        content,
      },
      example: { agentId: exampleId, chatId: exampleId, content: exampleQuestion },
      async run(input, { workspaceId, caller }) {
        const conversationKey = { workspaceId, agentId: input.agentId, conversationId: input.chatId }
        await deps.conversations
          .get(conversationKey, caller.auth)
          .catch(error => rethrowAsChatNotFound(input.chatId, error))
        const { message } = await deps.replies.reply(conversationKey, input.content, caller)
        const payload = message.content ?? ''
        return hasFailed(message) ? { payload, isError: true, code: 'chat_answer_failed' } : { payload }
      },
    }),
    declareTool({
      name: 'run_agent',
      title: 'Ask an agent',
      description:
        'Ask an agent a question, and return its answer and the conversationId for further questions. The agent searches the knowledge bases by itself.',
      input: {
        agentId,
        content,
        conversationId: declareArgument(
          params.conversationId.optional(),
          'ID of the conversation to continue, from an earlier run_agent. Omit it to start a conversation.',
          exampleId,
        ),
        title: declareArgument(
          boundedText(titleCharsMax).optional(),
          `Title of the new conversation, at most ${titleCharsMax} characters.`,
          'Return policy',
        ),
      },
      example: { agentId: exampleId, content: exampleQuestion },
      run: (input, call) => runAgent(deps, input, call),
    }),
  ]
}

interface AgentRun {
  readonly agentId: string
  readonly content: string
  readonly conversationId?: string | undefined
  readonly title?: string | undefined
}

async function runAgent(deps: ChatToolDependencies, run: AgentRun, call: FacadeCall): Promise<FacadeResult> {
  let conversationId: string
  try {
    conversationId = await findOrCreateConversation(deps, run, call)
  } catch (error) {
    if (!(error instanceof WbError)) throw error
    const { code, message } = error
    const details = { agentId: run.agentId, message }
    if (code === 'agent_not_found') return { isError: true, code, payload: { outcome: code, ...details } }
    if (code !== 'chat_not_found') throw error
    const { conversationId: requestedId } = run
    return { isError: true, code, payload: { outcome: code, conversationId: requestedId, ...details } }
  }
  const conversationKey = { workspaceId: call.workspaceId, agentId: run.agentId, conversationId }
  const { message, contextChunkIds } = await deps.replies.reply(conversationKey, run.content, call.caller)
  const { finish_reason: finishReason, error_message: errorMessage } = message.metadata
  return {
    payload: {
      outcome: hasFailed(message) ? 'completion_error' : 'completed',
      conversationId,
      agentId: run.agentId,
      content: message.content,
      finishReason: finishReason ?? null,
      tokenCount: message.tokenCount,
      contextChunkIds,
      ...(errorMessage !== undefined && { errorMessage }),
    },
  }
}

/**
 * Returns the ID of the conversation to continue, or of a new conversation with the agent's knowledge bases.
 *
 * @throws agent_not_found, chat_not_found
 */
async function findOrCreateConversation(
  { routes, conversations: conversationReader }: ChatToolDependencies,
  { agentId: id, conversationId, title }: AgentRun,
  { workspaceId, caller, routeCaller }: FacadeCall,
): Promise<string> {
  const agent = (await routeCaller.call(agents.show, routes.agents.show, { params: { agentId: id } })).body
  if (conversationId !== undefined) {
    const conversationKey = { workspaceId, agentId: id, conversationId }
    await conversationReader
      .get(conversationKey, caller.auth)
      .catch(error => rethrowAsChatNotFound(conversationId, error))
    return conversationId
  }
  const { knowledgeBaseIds } = agent
  const request = { params: { agentId: id }, body: { title, knowledgeBaseIds } }
  return (await routeCaller.call(conversations.create, routes.conversations.create, request)).body
    .conversationId
}

function hasFailed({ metadata }: Message): boolean {
  return metadata.finish_reason === 'error'
}

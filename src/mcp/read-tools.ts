import type { Handlers } from '../access/caller.ts'
import type { Conversations } from '../agents/conversations.ts'
import { agents } from '../contract/agents.ts'
import { conversations, messages } from '../contract/conversations.ts'
import { WbError } from '../contract/errors.ts'
import { params } from '../contract/ids.ts'
import { kb } from '../contract/knowledge.ts'
import { type DocumentToolDependencies, documentTools } from './document-tools.ts'
import { exampleId } from './example-id.ts'
import { pageResult, pagingArguments } from './pages.ts'
import { pickFields } from './pick-fields.ts'
import { rethrowAsChatNotFound } from './rethrow-as-chat-not-found.ts'
import { type ServiceToolDependencies, serviceTools } from './service-tools.ts'
import { declareArgument, declareTool, type FacadeTool } from './tool.ts'

export interface ReadToolDependencies {
  /** Handlers of the routes that the tools call. */
  readonly routes: DocumentToolDependencies['routes'] &
    ServiceToolDependencies['routes'] & {
      readonly kb: Pick<Handlers<typeof kb>, 'list'>
      readonly agents: Pick<Handlers<typeof agents>, 'list' | 'show'>
      readonly conversations: Pick<Handlers<typeof conversations>, 'list'>
      readonly messages: Pick<Handlers<typeof messages>, 'list'>
    }
  readonly conversations: Pick<Conversations, 'get'>
}

const agentId = declareArgument(params.agentId, 'ID of an agent, from list_agents.', exampleId)
const chatId = declareArgument(params.conversationId, 'ID of a chat, from list_chats.', exampleId)

/**
 * Returns the read-only tools, in display order.
 *
 * @see docs/mcp.md#the-tools
 */
export function readTools(deps: ReadToolDependencies): FacadeTool[] {
  const { routes, conversations: conversationReader } = deps
  return [
    declareTool({
      name: 'list_knowledge_bases',
      title: 'List knowledge bases',
      description:
        'List the knowledge bases of this workspace. Call it first: the other tools take the knowledgeBaseId that it returns.',
      input: pagingArguments,
      example: {},
      run: async (input, { routeCaller }) =>
        pageResult(
          await routeCaller.page(kb.list, routes.kb.list, input, base =>
            pickFields(base, knowledgeBaseFields),
          ),
        ),
    }),
    declareTool({
      name: 'list_agents',
      title: 'List agents',
      description:
        'List the agents of this workspace, each with its name and the knowledge bases that it searches.',
      input: pagingArguments,
      example: {},
      run: async (input, { routeCaller }) =>
        pageResult(
          await routeCaller.page(agents.list, routes.agents.list, input, agent =>
            pickFields(agent, agentFields),
          ),
        ),
    }),
    declareTool({
      name: 'get_agent',
      title: 'Show an agent',
      description: 'Show the settings of one agent: its prompts, tools, knowledge bases and model service.',
      input: { agentId },
      example: { agentId: exampleId },
      async run(input, { routeCaller }) {
        try {
          const { body } = await routeCaller.call(agents.show, routes.agents.show, { params: input })
          return { payload: pickFields(body, agentDetails) }
        } catch (error) {
          if (!(error instanceof WbError) || error.code !== 'agent_not_found') throw error
          return { isError: true, payload: { outcome: 'not_found', ...input, message: error.message } }
        }
      },
    }),
    ...documentTools(deps),
    ...serviceTools(deps),
    declareTool({
      name: 'list_chats',
      title: 'List chats',
      description: 'List the chats with an agent, the newest first.',
      input: { agentId, ...pagingArguments },
      example: { agentId: exampleId },
      async run({ agentId: id, ...query }, { routeCaller }) {
        const request = { ...query, params: { agentId: id } }
        const page = await routeCaller.page(conversations.list, routes.conversations.list, request, chat => ({
          chatId: chat.conversationId,
          ...pickFields(chat, ['agentId', 'title', 'knowledgeBaseIds', 'createdAt']),
        }))
        return pageResult(page)
      },
    }),
    declareTool({
      name: 'list_chat_messages',
      title: 'List chat messages',
      description: 'List the messages of a chat with an agent, the oldest first.',
      input: { chatId, ...pagingArguments },
      example: { chatId: exampleId, limit: 10 },
      async run({ chatId: id, ...query }, { workspaceId, caller, routeCaller }) {
        const conversationKey = { workspaceId, conversationId: id }
        const chat = await conversationReader
          .get(conversationKey, caller.auth)
          .catch(error => rethrowAsChatNotFound(id, error))
        const request = { ...query, params: { agentId: chat.agentId, conversationId: chat.conversationId } }
        return pageResult(
          await routeCaller.page(messages.list, routes.messages.list, request, message =>
            pickFields(message, messageFields),
          ),
        )
      },
    }),
  ]
}

const knowledgeBaseFields = ['knowledgeBaseId', 'name', 'description', 'status', 'language'] as const
const agentFields = [
  'agentId',
  'name',
  'description',
  'knowledgeBaseIds',
  'llmServiceId',
  'rerankEnabled',
] as const
const agentDetails = [
  'agentId',
  'name',
  'description',
  'systemPrompt',
  'userPrompt',
  'toolIds',
  'knowledgeBaseIds',
  'llmServiceId',
  'rerankEnabled',
  'rerankingServiceId',
  'rerankMaxResults',
] as const
const messageFields = ['messageId', 'role', 'content', 'messageTs', 'metadata'] as const

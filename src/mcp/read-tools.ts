import { z } from 'zod'
import type { Handlers } from '../access/caller.ts'
import type { Conversations } from '../agents/conversations.ts'
import { agents } from '../contract/agents.ts'
import { conversations, messages } from '../contract/conversations.ts'
import { documents } from '../contract/documents.ts'
import { WbError } from '../contract/errors.ts'
import { vector } from '../contract/fields.ts'
import { params } from '../contract/ids.ts'
import { type Hit, kb } from '../contract/knowledge.ts'
import { limits } from '../contract/limits.ts'
import { chatNotFound } from './missing.ts'
import { type FacadeTool, tool } from './tool.ts'

export interface ReadToolParts {
  /** Handlers of the routes that the tools stand for. */
  readonly routes: {
    readonly kb: Pick<Handlers<typeof kb>, 'list' | 'search'>
    readonly documents: Pick<Handlers<typeof documents>, 'list'>
    readonly agents: Pick<Handlers<typeof agents>, 'list' | 'show'>
    readonly conversations: Pick<Handlers<typeof conversations>, 'list'>
    readonly messages: Pick<Handlers<typeof messages>, 'list'>
  }
  readonly conversations: Pick<Conversations, 'get'>
}

/** Hits of one search. @see docs/mcp.md#the-tools */
const topKMax = 64

const { knowledgeBaseId, agentId } = params
const chatId = params.conversationId

/** The tools that change nothing, in the order in which they are listed. @see docs/mcp.md#the-tools */
export function readTools({ routes, conversations: rooms }: ReadToolParts): FacadeTool[] {
  return [
    tool({
      name: 'list_knowledge_bases',
      title: 'List knowledge bases',
      description: 'List the knowledge bases of the workspace.',
      input: z.object({}),
      async run(_input, { rest }) {
        const bases = await rest.all(kb.list, routes.kb.list)
        return { payload: bases.map(base => pick(base, baseFields)) }
      },
    }),
    tool({
      name: 'list_agents',
      title: 'List agents',
      description: 'List the agents of the workspace.',
      input: z.object({}),
      async run(_input, { rest }) {
        const all = await rest.all(agents.list, routes.agents.list)
        return { payload: all.map(agent => pick(agent, agentFields)) }
      },
    }),
    tool({
      name: 'get_agent',
      title: 'Show an agent',
      description: 'Show an agent: its prompts, tools, knowledge bases and model.',
      input: z.object({ agentId }),
      async run(input, { rest }) {
        try {
          const { body } = await rest.ask(agents.show, routes.agents.show, { params: input })
          return { payload: pick(body, agentDetails) }
        } catch (error) {
          if (!(error instanceof WbError) || error.code !== 'agent_not_found') throw error
          return { isError: true, payload: { outcome: 'not_found', ...input, message: error.message } }
        }
      },
    }),
    tool({
      name: 'list_documents',
      title: 'List documents',
      description: 'List the documents of a knowledge base.',
      input: z.object({ knowledgeBaseId, limit: z.int().min(1).max(limits.pageMax).optional() }),
      async run({ limit, ...place }, { rest }) {
        const { list } = routes.documents
        const found =
          limit === undefined
            ? await rest.all(documents.list, list, place)
            : (await rest.ask(documents.list, list, { params: place, query: { limit } })).body.items
        return { payload: found.map(document => pick(document, documentFields)) }
      },
    }),
    tool({
      name: 'search_kb',
      title: 'Search a knowledge base',
      description: 'Find the passages of a knowledge base that fit a text or a vector best, best first.',
      input: z.object({
        knowledgeBaseId,
        text: z.string().optional(),
        vector: vector.optional(),
        topK: z.int().min(1).max(topKMax).optional(),
        hybrid: z.boolean().optional(),
        rerank: z.boolean().optional(),
      }),
      async run({ knowledgeBaseId: id, ...body }, { rest }) {
        const asked = { params: { knowledgeBaseId: id }, body }
        const hits = (await rest.ask(kb.search, routes.kb.search, asked)).body
        return { payload: hits.map(passageOf) }
      },
    }),
    tool({
      name: 'list_chats',
      title: 'List chats',
      description: 'List the chats with an agent, the newest first.',
      input: z.object({ agentId }),
      async run(input, { rest }) {
        const found = await rest.all(conversations.list, routes.conversations.list, input)
        return {
          payload: found.map(({ conversationId, ...chat }) => ({
            chatId: conversationId,
            ...pick(chat, ['agentId', 'title', 'knowledgeBaseIds', 'createdAt']),
          })),
        }
      },
    }),
    tool({
      name: 'list_chat_messages',
      title: 'List chat messages',
      description: 'List the messages of a chat, the oldest first.',
      input: z.object({ chatId }),
      async run(input, { workspaceId, caller, rest }) {
        const place = { workspaceId, conversationId: input.chatId }
        const chat = await rooms.get(place, caller.auth).catch(error => chatNotFound(input.chatId, error))
        const found = await rest.all(messages.list, routes.messages.list, {
          agentId: chat.agentId,
          conversationId: chat.conversationId,
        })
        return { payload: found.map(message => pick(message, messageFields)) }
      },
    }),
  ]
}

const baseFields = ['knowledgeBaseId', 'name', 'description', 'status', 'language'] as const
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
const documentFields = [
  'documentId',
  'sourceFilename',
  'status',
  'chunkTotal',
  'contentHash',
  'ingestedAt',
] as const
const messageFields = ['messageId', 'role', 'content', 'messageTs', 'metadata'] as const

/** Some fields, in this order. */
function pick<T extends object, K extends keyof T>(whole: T, fields: readonly K[]): Pick<T, K> {
  return Object.fromEntries(fields.map(field => [field, whole[field]])) as Pick<T, K>
}

function passageOf({ id, score, payload = {} }: Hit) {
  const textOf = (value: unknown) => (typeof value === 'string' ? value : null)
  return { chunkId: id, score, documentId: textOf(payload.documentId), content: textOf(payload.chunkText) }
}

import { z } from 'zod'
import { member, ownRecords } from './access.ts'
import { sortedKnowledgeBaseIds } from './agents.ts'
import type { ErrorCode } from './errors.ts'
import { boundedText, isoTimestamp } from './fields.ts'
import { ImageDescriptor } from './images.ts'
import { limits } from './limits.ts'
import { pageOfItems, pageQuery } from './page.ts'
import { route } from './route.ts'

export const Conversation = z
  .object({
    workspaceId: z.uuid(),
    agentId: z.uuid(),
    conversationId: z.uuid(),
    title: z
      .string()
      .nullable()
      .meta({ description: 'title of the conversation, by default derived from the first question' }),
    knowledgeBaseIds: z.array(z.uuid()),
    createdAt: isoTimestamp,
    lastActivityAt: isoTimestamp.meta({ description: 'time of the last question or answer' }),
  })
  .meta({ id: 'Conversation' })
export type Conversation = z.output<typeof Conversation>

export const Message = z
  .object({
    workspaceId: z.uuid(),
    chatId: z.uuid().meta({ description: 'identifier of the conversation' }),
    messageId: z.uuid(),
    messageTs: isoTimestamp,
    role: z.enum(['user', 'agent', 'system']),
    content: z.string().nullable(),
    tokenCount: z.int().nullable(),
    metadata: z.record(z.string(), z.string()),
    images: z
      .array(ImageDescriptor)
      .optional()
      .meta({ description: 'Images of the message. Absent if there are none.' }),
  })
  .meta({ id: 'Message' })
export type Message = z.output<typeof Message>

const MessageVersion = z.object({
  message: Message.meta({ description: 'the question' }),
  answer: Message.nullable().meta({
    description:
      'the answer, or null if the version has none. An answer of more than 20,000 characters is truncated, and its `metadata.content_truncated` is `true`.',
  }),
  isCurrent: z
    .boolean()
    .meta({ description: 'true for the version that the conversation currently contains' }),
})
export type MessageVersion = z.output<typeof MessageVersion>

const changeable = {
  title: boundedText(limits.conversationTitleChars).nullable(),
  knowledgeBaseIds: sortedKnowledgeBaseIds,
}

const ConversationCreate = z.object({
  conversationId: z.uuid().optional(),
  title: changeable.title.default(null),
  knowledgeBaseIds: sortedKnowledgeBaseIds.default([]),
})
export type ConversationCreate = z.output<typeof ConversationCreate>

const ConversationPatch = z.strictObject(changeable).partial()
export type ConversationPatch = z.output<typeof ConversationPatch>

const conversationQuery = pageQuery.extend({
  q: z.string().trim().min(1).max(limits.conversationSearchChars).optional().meta({
    description:
      'words that must all occur in the title, the questions or the answers. Case and order do not matter. A page can have fewer items than `limit`, or none, even if more pages follow.',
  }),
  sort: z
    .enum(['created', 'activity'])
    .default('created')
    .meta({ description: '`created` lists the newest first, `activity` the most recently used first' }),
})
export type ConversationQuery = z.output<typeof conversationQuery>

const json = { kind: 'json', limitBytes: limits.jsonBodyBytes } as const
const errors = ['workspace_not_found', 'conversation_not_found'] as const satisfies ErrorCode[]

export const conversations = {
  listAll: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/conversations',
    summary: 'List the conversations of a workspace',
    access: member('read:chat'),
    query: conversationQuery,
    replies: { 200: pageOfItems(Conversation) },
    errors: ['workspace_not_found', 'invalid_cursor'],
  }),
  list: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/agents/:agentId/conversations',
    summary: 'List the conversations with an agent',
    access: member('read:chat'),
    query: conversationQuery,
    replies: { 200: pageOfItems(Conversation) },
    errors: ['workspace_not_found', 'agent_not_found', 'invalid_cursor'],
  }),
  create: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/agents/:agentId/conversations',
    summary: 'Start a conversation with an agent',
    access: member('read:chat'),
    body: { ...json, mode: 'lenient', schema: ConversationCreate },
    replies: { 201: Conversation },
    errors: ['workspace_not_found', 'agent_not_found', 'conflict', 'policy_principal_required'],
  }),
  show: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/agents/:agentId/conversations/:conversationId',
    summary: 'Show a conversation',
    access: member('read:chat'),
    replies: { 200: Conversation },
    errors,
  }),
  update: route({
    method: 'PATCH',
    path: '/api/v1/workspaces/:workspaceId/agents/:agentId/conversations/:conversationId',
    summary: 'Change the title or the knowledge bases of a conversation',
    access: member('read:chat'),
    body: { ...json, mode: 'strict', schema: ConversationPatch },
    replies: { 200: Conversation },
    errors,
  }),
  delete: route({
    method: 'DELETE',
    path: '/api/v1/workspaces/:workspaceId/agents/:agentId/conversations/:conversationId',
    summary: 'Delete a conversation with its messages and attachments',
    access: ownRecords('read:chat', 'write', 'manage'),
    replies: { 204: null },
    errors,
  }),
}

export const messages = {
  list: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/agents/:agentId/conversations/:conversationId/messages',
    summary: 'List the messages of a conversation',
    access: member('read:chat'),
    query: pageQuery,
    replies: { 200: pageOfItems(Message) },
    errors: [...errors, 'invalid_cursor'],
  }),
  show: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/agents/:agentId/conversations/:conversationId/messages/:messageId',
    summary: 'Show a message',
    access: member('read:chat'),
    replies: { 200: Message },
    errors: [...errors, 'chat_message_not_found'],
  }),
  image: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/agents/:agentId/conversations/:conversationId/messages/:messageId/images/:imageIndex',
    summary: 'Get an image of a message',
    description: 'Returns the original image with its media type.',
    access: member('read:chat'),
    replies: { 200: 'image/*' },
    errors: [...errors, 'chat_message_not_found', 'chat_image_not_found'],
  }),
  versions: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/agents/:agentId/conversations/:conversationId/messages/:messageId/versions',
    summary: 'List the versions of a question',
    description:
      'Each message that is sent with `replaces` creates a version of the question, even if the answer fails. The conversation contains one version at a time.',
    access: member('read:chat'),
    replies: { 200: z.object({ items: z.array(MessageVersion) }) },
    errors: [...errors, 'chat_message_not_found'],
  }),
  select: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/agents/:agentId/conversations/:conversationId/messages/:messageId/select',
    summary: 'Select a version of a question',
    description:
      'Restores a version of the question and the messages that followed it. The current version and its following messages are kept.',
    access: member('read:chat'),
    replies: { 200: Message },
    errors: [...errors, 'chat_message_not_found', 'conflict'],
  }),
}

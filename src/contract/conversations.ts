import { z } from 'zod'
import { timestamp } from './fields.ts'

export const Conversation = z
  .object({
    workspaceId: z.uuid(),
    agentId: z.uuid(),
    conversationId: z.uuid(),
    title: z.string().nullable(),
    knowledgeBaseIds: z.array(z.uuid()),
    createdAt: timestamp,
  })
  .meta({ id: 'Conversation' })
export type Conversation = z.output<typeof Conversation>

export const Message = z
  .object({
    workspaceId: z.uuid(),
    chatId: z.uuid().meta({ description: 'the conversation' }),
    messageId: z.uuid(),
    messageTs: timestamp,
    role: z.enum(['user', 'agent', 'system']),
    content: z.string().nullable(),
    tokenCount: z.int().nullable(),
    metadata: z.record(z.string(), z.string()),
  })
  .meta({ id: 'Message' })
export type Message = z.output<typeof Message>

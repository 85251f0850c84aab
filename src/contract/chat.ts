import { z } from 'zod'
import { member } from './access.ts'
import { Message } from './conversations.ts'
import type { ErrorCode } from './errors.ts'
import { isoTimestamp } from './fields.ts'
import { ImageInput } from './images.ts'
import { limits } from './limits.ts'
import { route } from './route.ts'

const MessageSend = z.object({
  content: z.string().min(1).max(limits.chatMessageChars),
  images: z.array(ImageInput).max(limits.messageImages).optional().meta({
    description:
      'Images for a model that reads them: PNG, JPEG, GIF or WebP. A message that `replaces` another one does not take over its images.',
  }),
  approvals: z.boolean().default(false).meta({
    description:
      'true if the sender answers `tool-approval` events; otherwise, calls that need an approval are denied',
  }),
  detached: z
    .boolean()
    .default(false)
    .meta({ description: 'for streams: the turn continues if the connection breaks, and can be read again' }),
  llmServiceId: z
    .uuid()
    .optional()
    .meta({ description: 'LLM service for this message, instead of that of the agent' }),
  temperature: z
    .number()
    .min(0)
    .max(limits.temperatureMax)
    .optional()
    .meta({ description: 'randomness of this answer, from 0 to 2' }),
  replaces: z.uuid().optional().meta({
    description:
      'ID of an earlier message of the user. Once the answer is complete, this message replaces it and all messages that follow; they are kept as a version.',
  }),
})
export type MessageSend = z.output<typeof MessageSend>

const MessagePair = z.object({ user: Message, assistant: Message })
export type MessagePair = z.output<typeof MessagePair>

/** Tool call as the model wrote it. */
export const ToolCall = z.object({
  id: z.string(),
  name: z.string().meta({ description: 'id of the tool' }),
  arguments: z.string().meta({ description: 'JSON, as the model wrote it' }),
})
export type ToolCall = z.output<typeof ToolCall>

export const toolOutcomes = ['success', 'failure', 'denied'] as const
export type ToolOutcome = (typeof toolOutcomes)[number]

/**
 * Events of a turn, in this order: `user-message (output token-reset tool-call (tool-approval?
 * tool-result)+)* output (done|error)`, where `output` is `(reasoning|token|token-reset)*`; or a single
 * `stream-error`.
 *
 * @see docs/agents.md#over-http
 */
export const turnEvents = {
  'user-message': Message,
  reasoning: z.object({ delta: z.string() }),
  token: z.object({ delta: z.string() }),
  'token-reset': z.object({}),
  'tool-call': z.object({ toolCalls: z.array(ToolCall) }),
  'tool-approval': z.object({ approvalId: z.uuid(), toolCall: ToolCall, expiresAt: isoTimestamp }),
  'tool-result': z.object({
    toolCallId: z.string(),
    name: z.string(),
    content: z.string(),
    outcome: z.enum(toolOutcomes),
    durationMs: z.int(),
  }),
  done: Message,
  error: Message,
  'stream-error': z.object({
    code: z.string(),
    message: z.string(),
    status: z.int(),
    hint: z.string().optional().meta({ description: 'what to do next' }),
  }),
} as const

export type TurnEvent = {
  [K in keyof typeof turnEvents]: { event: K; data: z.output<(typeof turnEvents)[K]> }
}[keyof typeof turnEvents]

/**
 * Passage that an answer cites as `[number]`. The answer's metadata contains all of them as JSON, in
 * `citations`.
 */
export const Citation = z.object({
  number: z.int().positive(),
  knowledgeBaseId: z.uuid().nullable().meta({ description: 'null for a passage of an attachment' }),
  attachmentId: z
    .uuid()
    .nullable()
    .default(null)
    .meta({ description: 'attachment of the conversation; null for a passage of a knowledge base' }),
  documentId: z.string().nullable(),
  chunkId: z.string(),
  chunkIndex: z.int().nullable(),
  title: z.string().nullable(),
  sourceFilename: z.string().nullable(),
  page: z.int().nullable(),
})
export type Citation = z.output<typeof Citation>

export const approvalDecisions = ['once', 'always', 'never'] as const
const Approval = z.object({
  decision: z.enum(approvalDecisions).meta({
    description: '`always` applies to this tool in this conversation, until its description changes',
  }),
})
export type Approval = z.output<typeof Approval>

const json = { kind: 'json', limitBytes: limits.jsonBodyBytes } as const
const message = {
  kind: 'json',
  mode: 'lenient',
  schema: MessageSend,
  limitBytes: limits.messageBodyBytes,
} as const
const ofConversation = '/api/v1/workspaces/:workspaceId/agents/:agentId/conversations/:conversationId'
const ofTurn = [
  'workspace_not_found',
  'agent_not_found',
  'conversation_not_found',
  'chat_message_not_found',
  'chat_disabled',
  'llm_service_not_found',
] as const satisfies ErrorCode[]
/** Errors of a message before anything is stored. A stream reports them as `stream-error`. */
const ofModel = [
  'llm_provider_unsupported',
  'llm_credential_missing',
  'llm_model_not_chat',
  'llm_model_unavailable',
  'llm_model_no_images',
] as const satisfies ErrorCode[]

export const chat = {
  send: route({
    method: 'POST',
    path: `${ofConversation}/messages`,
    summary: 'Send a message and wait for the answer',
    access: member('read:chat'),
    body: message,
    replies: { 201: MessagePair },
    errors: [...ofTurn, ...ofModel],
  }),
  stream: route({
    method: 'POST',
    path: `${ofConversation}/messages/stream`,
    summary: 'Send a message and stream the answer',
    access: member('read:chat'),
    body: message,
    replies: { 200: 'text/event-stream' },
    errors: ofTurn,
    events: turnEvents,
  }),
  attach: route({
    method: 'GET',
    path: `${ofConversation}/messages/stream`,
    summary: 'Read a detached turn from its first event',
    description:
      'Streams the last turn that the caller sent with `detached` in the conversation. Works until one minute after the turn ends, on the process that runs it.',
    access: member('read:chat'),
    replies: { 200: 'text/event-stream' },
    errors: ['workspace_not_found', 'conversation_not_found'],
    events: turnEvents,
  }),
  stop: route({
    method: 'DELETE',
    path: `${ofConversation}/messages/stream`,
    summary: 'Stop a detached turn',
    description:
      'Stops the last turn that the caller sent with `detached` in the conversation. The partial answer is stored and marked as interrupted.',
    access: member('read:chat'),
    replies: { 204: null },
    errors: ['workspace_not_found', 'conversation_not_found'],
  }),
  decide: route({
    method: 'POST',
    path: `${ofConversation}/approvals/:approvalId`,
    summary: 'Approve or deny a tool call',
    description:
      'Only the sender of the message can decide. Without a decision within 120 seconds, the call is denied.',
    access: member('read:chat'),
    body: { ...json, mode: 'strict', schema: z.strictObject(Approval.shape) },
    replies: { 200: Approval.extend({ approvalId: z.uuid() }) },
    errors: ['workspace_not_found', 'conversation_not_found'],
    audit: 'tool.decide',
  }),
}

import { z } from 'zod'
import { member } from './access.ts'
import { Message } from './conversations.ts'
import type { ErrorCode } from './errors.ts'
import { isoTimestamp } from './fields.ts'
import { ImageInput } from './images.ts'
import { limits } from './limits.ts'
import { route } from './route.ts'

const MessageSend = z.object({
  content: z.string().min(1).max(limits.chatMessageChars).meta({ description: 'your message' }),
  images: z.array(ImageInput).max(limits.messageImages).optional().meta({
    description:
      'PNG, JPEG, GIF or WebP images for a model that can read images. A message that `replaces` another one does not inherit its images.',
  }),
  approvals: z.boolean().default(false).meta({
    description:
      'true if the client responds to `tool-approval` events; otherwise, tool calls that require an approval are denied',
  }),
  detached: z.boolean().default(false).meta({
    description:
      'true to continue the turn if the client loses the connection; the client can then read the stream again',
  }),
  llmServiceId: z
    .uuid()
    .optional()
    .meta({ description: 'LLM service to use for this message instead of the LLM service of the agent' }),
  temperature: z
    .number()
    .min(0)
    .max(limits.temperatureMax)
    .optional()
    .meta({ description: 'randomness of this answer, from 0 to 2' }),
  replaces: z.uuid().optional().meta({
    description:
      'ID of an earlier user message. Once the answer is complete, this message replaces the earlier message and all messages after it. The replaced messages are kept as a version.',
  }),
})
export type MessageSend = z.output<typeof MessageSend>

const MessagePair = z.object({ user: Message, assistant: Message })
export type MessagePair = z.output<typeof MessagePair>

/** Tool call of the model. */
export const ToolCall = z.object({
  id: z.string(),
  name: z.string().meta({ description: 'ID of the tool' }),
  arguments: z.string().meta({ description: 'arguments as the JSON string that the model wrote' }),
})
export type ToolCall = z.output<typeof ToolCall>

export const toolOutcomes = ['success', 'failure', 'denied'] as const
export type ToolOutcome = (typeof toolOutcomes)[number]

/**
 * Events of a turn. Either `stream-error` is the only event, or the order is `user-message (output token-reset
 * tool-call (tool-approval? tool-result)+)* output (done|error)`, where `output` is
 * `(reasoning|token|token-reset)*`.
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
 * Passage that an answer cites as `[number]`. The metadata field `citations` of the answer contains all
 * citations as JSON.
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

/**
 * Part of an answer, as offsets in UTF-16 units; `end` is exclusive. The metadata field `unsupported` contains the
 * sentences that no passage supports as JSON. It is absent if the answer was not checked.
 */
const SentenceRange = z.object({ start: z.int().nonnegative(), end: z.int().positive() })
export type SentenceRange = z.output<typeof SentenceRange>

export const approvalDecisions = ['once', 'always', 'never'] as const
const Approval = z.object({
  decision: z.enum(approvalDecisions).meta({
    description:
      '`once` allows this call, `never` denies it, and `always` allows all calls of the tool in this conversation until the tool changes',
  }),
})
export type Approval = z.output<typeof Approval>

const json = { kind: 'json', limitBytes: limits.jsonBodyBytes } as const
const messageBody = {
  kind: 'json',
  mode: 'lenient',
  schema: MessageSend,
  limitBytes: limits.messageBodyBytes,
} as const
const conversationPath = '/api/v1/workspaces/:workspaceId/agents/:agentId/conversations/:conversationId'
const turnErrors = [
  'workspace_not_found',
  'agent_not_found',
  'conversation_not_found',
  'chat_message_not_found',
  'chat_disabled',
  'llm_service_not_found',
] as const satisfies ErrorCode[]
/** Errors about the model, returned before anything is stored. A stream reports them as `stream-error`. */
const modelErrors = [
  'llm_provider_unsupported',
  'llm_credential_missing',
  'llm_model_not_chat',
  'llm_model_unavailable',
  'llm_model_no_images',
] as const satisfies ErrorCode[]

export const chat = {
  send: route({
    method: 'POST',
    path: `${conversationPath}/messages`,
    summary: 'Send a message and wait for the answer',
    access: member('read:chat'),
    body: messageBody,
    replies: { 201: MessagePair },
    errors: [...turnErrors, ...modelErrors],
  }),
  stream: route({
    method: 'POST',
    path: `${conversationPath}/messages/stream`,
    summary: 'Send a message and stream the answer',
    access: member('read:chat'),
    body: messageBody,
    replies: { 200: 'text/event-stream' },
    errors: turnErrors,
    events: turnEvents,
  }),
  attach: route({
    method: 'GET',
    path: `${conversationPath}/messages/stream`,
    summary: 'Stream a detached turn from its first event',
    description:
      'Streams the last turn that the caller started with `detached` in the conversation. The events are available until one minute after the turn ends, and only in the server process that runs the turn.',
    access: member('read:chat'),
    replies: { 200: 'text/event-stream' },
    errors: ['workspace_not_found', 'conversation_not_found'],
    events: turnEvents,
  }),
  stop: route({
    method: 'DELETE',
    path: `${conversationPath}/messages/stream`,
    summary: 'Stop a detached turn',
    description:
      'Stops the last turn that the caller started with `detached` in the conversation. The partial answer is stored and marked as interrupted.',
    access: member('read:chat'),
    replies: { 204: null },
    errors: ['workspace_not_found', 'conversation_not_found'],
  }),
  decide: route({
    method: 'POST',
    path: `${conversationPath}/approvals/:approvalId`,
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

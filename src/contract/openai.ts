import { z } from 'zod'
import { member } from './access.ts'
import { Citation } from './chat.ts'
import type { ErrorCode } from './errors.ts'
import { boundedText } from './fields.ts'
import { ImageInput, parseImageUrl } from './images.ts'
import { limits } from './limits.ts'
import { route } from './route.ts'

/** Part of a message. Other types, such as audio and files, are rejected with an error that names the type. */
const ContentPart = z
  .object({
    type: z.string().meta({ description: '`text` or `image_url`; other types are rejected' }),
    text: z.string().max(limits.completionMessageChars).optional(),
    image_url: z
      .object({ url: z.string().meta({ description: 'data URL of the image, in base64' }) })
      .optional()
      .meta({ description: 'the image of a part of the type `image_url`' }),
  })
  .superRefine((part, context) => {
    const problem = partProblem(part)
    if (problem) context.addIssue({ code: 'custom', ...problem })
  })

function partProblem({
  type,
  text,
  image_url: image,
}: {
  type: string
  text?: string
  image_url?: { url: string }
}) {
  if (type === 'text') return text === undefined ? { path: ['text'], message: 'is required' } : undefined
  if (type !== 'image_url')
    return { path: ['type'], message: `'${type}' is not supported; send text or image_url` }
  if (!image) return { path: ['image_url'], message: 'is required' }
  const path = ['image_url', 'url']
  const parsed = parseImageUrl(image.url)
  if (!parsed) return { path, message: 'must be a base64 data URL; images are not fetched' }
  const message = ImageInput.safeParse(parsed).error?.issues[0]?.message
  return message === undefined ? undefined : { path, message }
}

const CompletionMessage = z
  .object({
    role: z.enum(['system', 'developer', 'user', 'assistant']).meta({
      description: 'author of the message; `system` and `developer` messages are added to the agent prompt',
    }),
    content: z
      .union([
        z.string().max(limits.completionMessageChars),
        z.array(ContentPart).max(limits.completionMessageParts),
      ])
      .nullish()
      .meta({ description: 'text, or a list of parts; only `user` messages can have images' }),
  })
  .superRefine(({ role, content }, context) => {
    if (!Array.isArray(content)) return
    const images = content.filter(({ type }) => type === 'image_url').length
    const reject = (message: string) => context.addIssue({ code: 'custom', path: ['content'], message })
    if (images > 0 && role !== 'user') reject('only messages with the role user can have images')
    if (images > limits.messageImages) reject(`must have at most ${limits.messageImages} images`)
  })
export type CompletionMessage = z.output<typeof CompletionMessage>

const tokenLimit = z.int().positive().nullish()

const CompletionCreate = z.object({
  model: boundedText(limits.agentNameChars).meta({ description: 'name or ID of an agent' }),
  messages: z
    .array(CompletionMessage)
    .min(1)
    .max(limits.completionMessages)
    .meta({ description: 'the conversation so far; the last message is the question' }),
  stream: z.boolean().nullish(),
  stream_options: z
    .object({
      include_usage: z
        .boolean()
        .nullish()
        .meta({ description: 'true to send a last chunk with the token counts' }),
    })
    .nullish(),
  max_completion_tokens: tokenLimit.meta({
    description: 'maximum length of the answer in tokens; the limit of the LLM service also applies',
  }),
  max_tokens: tokenLimit.meta({ description: 'older name of `max_completion_tokens`' }),
})
export type CompletionCreate = z.output<typeof CompletionCreate>

const Usage = z.object({
  prompt_tokens: z.int(),
  completion_tokens: z.int(),
  total_tokens: z.int(),
})
export type Usage = z.output<typeof Usage>

export const completionFinishReasons = ['stop', 'length', 'content_filter'] as const
const finishReason = z.enum(completionFinishReasons)
export type CompletionFinishReason = z.output<typeof finishReason>

const references = z.array(Citation).meta({
  description: 'passages that the answer cites as `[number]`; an extension of the OpenAI format',
})

const completionFields = {
  id: z.string(),
  created: z.int().meta({ description: 'time of creation, in seconds since 1970' }),
  model: z.string().meta({ description: 'value of `model` in the request' }),
}

const ChatCompletion = z
  .object({
    ...completionFields,
    object: z.literal('chat.completion'),
    choices: z.array(
      z.object({
        index: z.int(),
        message: z.object({
          role: z.literal('assistant'),
          content: z.string(),
          refusal: z.null(),
          references,
        }),
        logprobs: z.null(),
        finish_reason: finishReason,
      }),
    ),
    usage: Usage.optional().meta({
      description: 'token counts; absent if the provider does not report them',
    }),
  })
  .meta({ id: 'ChatCompletion' })
export type ChatCompletion = z.output<typeof ChatCompletion>

const ChatCompletionChunk = z.object({
  ...completionFields,
  object: z.literal('chat.completion.chunk'),
  choices: z.array(
    z.object({
      index: z.int(),
      delta: z.object({
        role: z.literal('assistant').optional(),
        content: z.string().optional(),
        refusal: z.null().optional(),
        references: references.optional(),
      }),
      logprobs: z.null(),
      finish_reason: finishReason.nullable(),
    }),
  ),
  usage: Usage.nullable().optional(),
})
export type ChatCompletionChunk = z.output<typeof ChatCompletionChunk>

/** Events of a streamed completion. Only their data is sent, and `done` is sent as `[DONE]`. */
export const completionEvents = {
  chunk: ChatCompletionChunk,
  error: z.object({
    error: z.object({
      message: z.string(),
      type: z.string(),
      code: z.string(),
      param: z.null(),
    }),
  }),
  done: z.object({}),
} as const

const ModelList = z.object({
  object: z.literal('list'),
  data: z.array(
    z.object({
      id: z
        .string()
        .meta({ description: 'name of the agent, or its ID if several agents have the same name' }),
      object: z.literal('model'),
      created: z.int().meta({ description: 'time of creation, in seconds since 1970' }),
      owned_by: z.literal('workbase'),
      agent_id: z.uuid(),
    }),
  ),
})
export type ModelList = z.output<typeof ModelList>

const openaiPath = '/api/v1/workspaces/:workspaceId/openai/v1'
const completionErrors = [
  'workspace_not_found',
  'agent_not_found',
  'policy_principal_required',
  'chat_disabled',
  'llm_service_not_found',
  'llm_provider_unsupported',
  'llm_credential_missing',
  'llm_model_not_chat',
  'llm_model_unavailable',
  'llm_model_no_images',
] as const satisfies ErrorCode[]

/**
 * Routes that offer the agents of a workspace to clients of the OpenAI API.
 *
 * @see docs/agents.md#from-an-openai-client
 */
export const openai = {
  models: route({
    method: 'GET',
    path: `${openaiPath}/models`,
    summary: 'List the agents of a workspace as models of the OpenAI API',
    description: `Returns at most ${limits.idsPerList} agents, oldest first.`,
    access: member(null),
    replies: { 200: ModelList },
    errors: ['workspace_not_found'],
    dialect: 'openai',
  }),
  complete: route({
    method: 'POST',
    path: `${openaiPath}/chat/completions`,
    summary: 'Ask an agent in the format of the OpenAI API',
    description:
      'The request contains the whole conversation, and nothing is stored. Tool calls that require an approval are denied. With `stream`, the answer is sent as server-sent events. Other fields of the OpenAI API are ignored and listed in `X-Workbase-Ignored`.',
    access: member('read:chat'),
    body: {
      kind: 'json',
      mode: 'lenient',
      schema: CompletionCreate,
      limitBytes: limits.completionBodyBytes,
    },
    replies: { 200: ChatCompletion },
    errors: [...completionErrors, 'chat_answer_failed'],
    events: completionEvents,
    dialect: 'openai',
  }),
}

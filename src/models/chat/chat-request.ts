import { sha256 } from '../../base/id.ts'
import { isObject } from '../../base/is-object.ts'
import { parseJson } from '../../base/parse-json.ts'
import type { ToolCall } from '../../contract/chat.ts'
import { imageUrl } from '../../contract/images.ts'
import type { ChatMessage, CompletionSettings, SamplingSettings, ToolSpec } from './completion.ts'
import type { ModelTraits } from './model-traits.ts'
import { ToolNames } from './tool-names.ts'

/** Length of tool call IDs for providers that require short ones, such as Mistral. */
const shortIdChars = 9

/** The part of a request that depends on the messages and the settings, and the data for reading its answer. */
export interface ChatRequest {
  readonly body: Readonly<Record<string, unknown>>
  readonly names: ToolNames
  /** Tools that the model may call. */
  readonly tools: readonly ToolSpec[]
}

/**
 * Returns the body of a chat completions request, in the format that the model accepts.
 *
 * @see https://platform.openai.com/docs/api-reference/chat/create
 */
export function buildChatRequest(
  messages: readonly ChatMessage[],
  { maxTokens, tools = [], toolChoice = 'auto', sampling = {} }: CompletionSettings,
  traits: ModelTraits,
): ChatRequest {
  const names = new ToolNames(
    [tools, ...messages.map(message => ('toolCalls' in message && message.toolCalls) || [])].flatMap(list =>
      list.map(({ name }) => name),
    ),
    new Map(tools.flatMap(({ name, alias }) => (alias === undefined ? [] : [[name, alias]]))),
  )
  const sentTools = toolChoice === 'auto' || traits.definesTools ? tools : []
  const functions = sentTools.map(({ name, description, parameters }) => ({
    type: 'function',
    function: { name: names.encode(name), description, parameters },
  }))
  return {
    names,
    tools: toolChoice === 'auto' ? tools : [],
    body: {
      [traits.tokenLimit]: maxTokens,
      ...toWireSampling(sampling),
      messages: arrangeMessages(messages, traits).map(message => toWireMessage(message, names, traits)),
      ...(functions.length > 0 ? { tools: functions, tool_choice: toolChoice } : {}),
    },
  }
}

/**
 * Returns the messages to send. For a model without a system role, moves the system prompt to the first user message.
 */
function arrangeMessages(
  messages: readonly ChatMessage[],
  { lacksSystemRole }: ModelTraits,
): readonly ChatMessage[] {
  const [system, ...rest] = messages
  const index = rest.findIndex(({ role }) => role === 'user')
  const firstUser = rest[index]
  if (!lacksSystemRole || system?.role !== 'system' || firstUser?.role !== 'user') return messages
  return rest.with(index, { ...firstUser, content: `${system.content}\n\n${firstUser.content}` })
}

function toWireSampling({ temperature, topP, reasoningEffort, stop = [] }: SamplingSettings): object {
  return {
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { top_p: topP }),
    ...(reasoningEffort === undefined ? {} : { reasoning_effort: reasoningEffort }),
    ...(stop.length > 0 ? { stop } : {}),
  }
}

function toWireMessage(message: ChatMessage, names: ToolNames, traits: ModelTraits): object {
  if (message.role === 'tool')
    return { role: 'tool', tool_call_id: toWireId(message.toolCallId, traits), content: message.content }
  if (message.role === 'user') return { role: message.role, content: userContent(message) }
  if (message.role === 'system') return message
  const { role, content, toolCalls = [], providerFields = {} } = message
  const { reasoning = '', reasoningDetails, callExtras } = providerFields
  const fields = {
    ...(traits.wantsReasoning ? { reasoning_content: reasoning } : {}),
    ...(reasoningDetails ? { reasoning_details: reasoningDetails } : {}),
  }
  if (toolCalls.length === 0) return { role, content: content ?? '', ...fields }
  const calls = toolCalls.map(call => ({
    id: toWireId(call.id, traits),
    ...toWireCall(call, names, callExtras?.[call.id]),
  }))
  return { role, content: content || null, ...fields, tool_calls: calls }
}

/** @see https://platform.openai.com/docs/guides/images-vision */
function userContent({ content, images = [] }: ChatMessage & { role: 'user' }): string | object[] {
  if (images.length === 0) return content
  return [
    ...(content === '' ? [] : [{ type: 'text', text: content }]),
    ...images.map(image => ({ type: 'image_url', image_url: { url: imageUrl(image) } })),
  ]
}

function toWireId(id: string, { wantsShortIds }: ModelTraits): string {
  return wantsShortIds ? sha256(id).slice(0, shortIdChars) : id
}

function toWireCall(call: ToolCall, names: ToolNames, extra: unknown): object {
  // Some providers parse the arguments, and reject the whole conversation if they are invalid JSON.
  const validArguments = isObject(parseJson(call.arguments)) ? call.arguments : '{}'
  return {
    type: 'function',
    function: { name: names.encode(call.name), arguments: validArguments },
    ...(extra === undefined ? {} : { extra_content: extra }),
  }
}

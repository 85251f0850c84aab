import type { ToolCall } from '../../contract/chat.ts'
import type { ChatMessage, CompletionSettings } from './completion.ts'
import { ToolNames } from './tool-names.ts'

/** What of a request the question decides. */
export interface Question {
  readonly body: object
  readonly names: ToolNames
}

/**
 * A question in the form of the chat completions.
 *
 * @see https://platform.openai.com/docs/api-reference/chat/create
 */
export function questionOf(
  messages: readonly ChatMessage[],
  { maxTokens, tools = [], sampling = {} }: CompletionSettings,
): Question {
  const names = new ToolNames(
    [tools, ...messages.map(message => ('toolCalls' in message && message.toolCalls) || [])].flatMap(named =>
      named.map(({ name }) => name),
    ),
  )
  const functions = tools.map(({ name, description, parameters }) => ({
    type: 'function',
    function: { name: names.spelled(name), description, parameters },
  }))
  return {
    names,
    body: {
      max_tokens: maxTokens,
      temperature: sampling.temperature,
      messages: messages.map(message => sent(message, names)),
      ...(functions.length > 0 ? { tools: functions, tool_choice: 'auto' } : {}),
    },
  }
}

function sent(message: ChatMessage, names: ToolNames): object {
  if (message.role === 'tool')
    return { role: 'tool', tool_call_id: message.toolCallId, content: message.content }
  if (message.role !== 'assistant') return message
  const { role, content, toolCalls = [] } = message
  if (toolCalls.length === 0) return { role, content: content ?? '' }
  return { role, content: content || null, tool_calls: toolCalls.map(call => sentCall(call, names)) }
}

function sentCall({ id, name, arguments: written }: ToolCall, names: ToolNames): object {
  return {
    id,
    type: 'function',
    function: { name: names.spelled(name), arguments: isObject(written) ? written : '{}' },
  }
}

/** Providers of other forms parse what their model once wrote, and refuse the whole conversation where they cannot. */
function isObject(json: string): boolean {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}

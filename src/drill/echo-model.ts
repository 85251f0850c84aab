import { sharedWord } from './canaries.ts'

/** The part of an outbound request that the model reads. */
interface ModelRequest {
  readonly body: string | null
}

interface ModelResponse {
  readonly status: number
  readonly headers: { get(name: string): string | null }
  readonly body: AsyncIterable<Uint8Array>
}

const searchTool = 'search_kb'
const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }

/** The part of a chat request that the model reads. */
interface ChatRequest {
  readonly model: string
  readonly stream?: boolean
  readonly messages: readonly { readonly role: string; readonly content: unknown }[]
  readonly tools?: readonly { readonly function: { readonly name: string } }[]
}

/**
 * Replaces the network during a drill. The model searches for `sharedWord` if it can, and then answers with the whole text
 * that it has received, so that a hidden text in a prompt shows in the answer. Any other request gets 404.
 *
 * @see https://platform.openai.com/docs/api-reference/chat/create
 */
export async function echoModel(url: URL, { body }: ModelRequest): Promise<ModelResponse> {
  if (!url.pathname.endsWith('/chat/completions') || body === null)
    return toResponse(404, 'application/json', ['{"error":{"message":"not available in a drill"}}'])
  const request = JSON.parse(body) as ChatRequest
  const { message, finishReason } = answerTo(request)
  const base = { id: 'drill', created: 1, model: request.model }
  if (!request.stream) {
    const completion = {
      ...base,
      object: 'chat.completion',
      usage,
      choices: [choice({ message: { role: 'assistant', ...message } }, finishReason)],
    }
    return toResponse(200, 'application/json', [JSON.stringify(completion)])
  }
  const chunk = (choices: object[], more: object = {}) =>
    `data: ${JSON.stringify({ ...base, object: 'chat.completion.chunk', choices, ...more })}\n\n`
  return toResponse(200, 'text/event-stream', [
    chunk([choice({ delta: { role: 'assistant', ...message } }, null)]),
    chunk([choice({ delta: {} }, finishReason)]),
    chunk([], { usage }),
    'data: [DONE]\n\n',
  ])
}

function answerTo({ messages, tools = [] }: ChatRequest): { message: object; finishReason: string } {
  const canSearch = tools.some(tool => tool.function.name === searchTool)
  if (messages.at(-1)?.role !== 'user' || !canSearch)
    return {
      message: { content: messages.map(({ content }) => textOf(content)).join('\n') },
      finishReason: 'stop',
    }
  const call = { name: searchTool, arguments: JSON.stringify({ query: sharedWord }) }
  const toolCalls = [{ index: 0, id: 'call_0', type: 'function', function: call }]
  return { message: { content: null, tool_calls: toolCalls }, finishReason: 'tool_calls' }
}

function choice(content: object, finish_reason: string | null): object {
  return { index: 0, ...content, finish_reason }
}

function textOf(content: unknown): string {
  return typeof content === 'string' ? content : JSON.stringify(content)
}

function toResponse(status: number, mediaType: string, parts: readonly string[]): ModelResponse {
  const encoder = new TextEncoder()
  return {
    status,
    headers: { get: name => (name.toLowerCase() === 'content-type' ? mediaType : null) },
    body: (async function* () {
      for (const part of parts) yield encoder.encode(part)
    })(),
  }
}

/** The part of an outbound request that the model reads. */
interface ModelRequest {
  readonly body: string | null
}

interface ModelResponse {
  readonly status: number
  readonly headers: { get(name: string): string | null }
  readonly body: AsyncIterable<Uint8Array>
}

const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }

/**
 * Replaces the network during a drill. Answers chat completions with the whole text that the model received, so that a
 * hidden text in a prompt shows in the answer. Any other request gets 404.
 *
 * @see https://platform.openai.com/docs/api-reference/chat/create
 */
export async function echoModel(url: URL, { body }: ModelRequest): Promise<ModelResponse> {
  if (!url.pathname.endsWith('/chat/completions') || body === null)
    return toResponse(404, 'application/json', ['{"error":{"message":"not available in a drill"}}'])
  const request = JSON.parse(body) as { model: string; stream?: boolean; messages: { content: unknown }[] }
  const text = request.messages.map(({ content }) => textOf(content)).join('\n')
  const base = { id: 'drill', created: 1, model: request.model }
  if (!request.stream) {
    const message = { role: 'assistant', content: text }
    const completion = { ...base, object: 'chat.completion', usage, choices: [choice({ message }, 'stop')] }
    return toResponse(200, 'application/json', [JSON.stringify(completion)])
  }
  const chunk = (choices: object[], more: object = {}) =>
    `data: ${JSON.stringify({ ...base, object: 'chat.completion.chunk', choices, ...more })}\n\n`
  return toResponse(200, 'text/event-stream', [
    chunk([choice({ delta: { role: 'assistant', content: text } }, null)]),
    chunk([choice({ delta: {} }, 'stop')]),
    chunk([], { usage }),
    'data: [DONE]\n\n',
  ])
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

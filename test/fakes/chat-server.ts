import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A request as the provider received it. */
export interface ChatRequest {
  readonly line: string
  readonly headers: IncomingHttpHeaders
  readonly body: { readonly model?: string; readonly [field: string]: unknown }
}

/** What the next request is answered with instead of a completion. */
export interface ChatStep {
  readonly status?: number
  readonly headers?: Record<string, string>
  /** Sent as JSON; text as it is. */
  readonly body?: unknown
  /** Say nothing until the client goes away. */
  readonly hang?: true
}

export interface ChatServer {
  /** `http://127.0.0.1:port/v1` */
  readonly url: string
  readonly host: string
  readonly received: ChatRequest[]
  /** Answers for the next requests, in order; after them all is well again. */
  script(...steps: ChatStep[]): void
  close(): Promise<void>
}

/** Refusals as providers word them; each repeats a secret, which must not go on. */
export const refusals = {
  /** OpenAI, for a model id that it does not have. */
  unknownModel: {
    status: 404,
    body: openaiError('The model `nope` does not exist or you do not have access to it. sk-planted', {
      code: 'model_not_found',
    }),
  },
  /** OpenAI, for a model that only completes text. */
  notChat: {
    status: 404,
    body: openaiError(
      'This is not a chat model and thus not supported in the v1/chat/completions endpoint. sk-planted',
      { param: 'model' },
    ),
  },
  /** OpenAI, for a model of another endpoint. */
  otherEndpoint: {
    status: 404,
    body: openaiError('This model is only supported in v1/responses and not in v1/chat/completions.', {
      param: 'model',
    }),
  },
  /** OpenRouter, for an id that it does not have. */
  invalidId: { status: 400, body: { error: { message: 'nope/nope is not a valid model ID', code: 400 } } },
  /** OpenRouter, for a model that nobody serves on the terms that were asked for. */
  noEndpoint: { status: 404, body: { error: { message: 'No endpoints found for nope/nope.', code: 404 } } },
  /** OpenRouter, after it has begun to answer. */
  withStatus200: { status: 200, body: { error: { message: 'No endpoints found for nope.', code: 404 } } },
} as const satisfies Record<string, ChatStep>

function openaiError(message: string, more: { code?: string; param?: string }) {
  return { error: { message, type: 'invalid_request_error', param: null, code: null, ...more } }
}

/**
 * A provider that speaks OpenAI's chat completions and list of models, on a free loopback port.
 *
 * @see https://platform.openai.com/docs/api-reference/chat/create
 */
export async function startChatServer(): Promise<ChatServer> {
  const received: ChatRequest[] = []
  const steps: ChatStep[] = []
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    const body = JSON.parse(Buffer.concat(parts).toString() || '{}') as ChatRequest['body']
    received.push({ line: `${request.method} ${request.url}`, headers: request.headers, body })
    answer(response, steps.shift() ?? soundAnswer(request.url ?? '', body))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url: `http://${host}/v1`,
    host,
    received,
    script: (...more) => void steps.push(...more),
    close() {
      server.closeAllConnections()
      return new Promise(resolve => server.close(() => resolve()))
    },
  }
}

function answer(response: ServerResponse, { status = 200, headers, body, hang }: ChatStep): void {
  if (hang) return
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(typeof body === 'string' ? body : JSON.stringify(body))
}

function soundAnswer(url: string, { model, max_tokens: limit }: ChatRequest['body']): ChatStep {
  if (url.endsWith('/models')) return { body: { object: 'list', data: [{ id: 'b:7b' }, { id: 'a:3b' }] } }
  if (!url.endsWith('/chat/completions')) return { status: 404, body: 'no such page' }
  const isCut = typeof limit === 'number' && limit < 3
  return {
    body: {
      id: 'chatcmpl-1',
      object: 'chat.completion',
      created: 1,
      model,
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: isCut ? 'Hello' : 'Hello there.' },
          finish_reason: isCut ? 'length' : 'stop',
        },
      ],
      usage: { prompt_tokens: 8, completion_tokens: 3, total_tokens: 11 },
    },
  }
}

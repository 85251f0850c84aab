import { EventEmitter } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { completeAnswer, type FakeAnswer, streamedAnswer } from './chat-answer.ts'
import { listenOnLoopback, readJson } from './listen-on-loopback.ts'

/** A request that the provider received. */
export interface ChatRequest {
  readonly line: string
  readonly headers: IncomingHttpHeaders
  readonly body: { readonly model?: string; readonly [field: string]: unknown }
}

/** The response to a request: the answer of a model, or a body. */
export interface ChatStep extends FakeAnswer {
  readonly status?: number
  readonly headers?: Record<string, string>
  /** Replaces the answer of the model: a string is sent unchanged, other values as JSON. */
  readonly body?: unknown
  /** Sends no response until the client disconnects. */
  readonly hang?: true
  /** Maximum number of bytes per write. */
  readonly bytesPerWrite?: number
  /** Closes the connection after the body. */
  readonly cut?: true
  /** Closes the connection after this number of events. */
  readonly cutAfter?: number
  /** Stops sending after this number of events, until `release` or until the client disconnects. */
  readonly silentAfter?: number
  /** Events per second; without a limit by default. */
  readonly tokensPerSecond?: number
  /** Sends keep-alive comments before the first event, as OpenRouter does. */
  readonly comments?: true
}

type Responder = (request: ChatRequest) => ChatStep | undefined | Promise<ChatStep | undefined>

export interface ChatServer {
  /** `http://127.0.0.1:port/v1` */
  readonly url: string
  readonly host: string
  readonly received: ChatRequest[]
  /** Number of connections that were opened. */
  readonly connections: number
  /** Requests whose client disconnected before the response was complete. */
  readonly abandoned: number
  /** Sets the responses to the next requests, in order; later requests succeed. */
  script(...steps: ChatStep[]): void
  /** Responds to requests without a scripted step; undefined sends a valid answer. */
  respond(responder: Responder): void
  /** Sets the response of Ollama's `/api/show`, which is 404 by default. These requests are not in `received`. */
  describe(details: object): void
  /** Resumes responses that are paused by `silentAfter`. */
  release(): void
  close(): Promise<void>
}

/** Error responses of providers; each contains a secret that must not be passed on. */
export const refusals = {
  /** OpenAI, for an unknown model. */
  unknownModel: {
    status: 404,
    body: openaiError('The model `nope` does not exist or you do not have access to it. sk-planted', {
      code: 'model_not_found',
    }),
  },
  /** OpenAI, for a completion model. */
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
  /** OpenRouter, for an unknown model. */
  invalidId: { status: 400, body: { error: { message: 'nope/nope is not a valid model ID', code: 400 } } },
  /** OpenRouter, for a model without a provider that meets the conditions of the request. */
  noEndpoint: { status: 404, body: { error: { message: 'No endpoints found for nope/nope.', code: 404 } } },
  /** OpenRouter, for an error after the response has started. */
  withStatus200: { status: 200, body: { error: { message: 'No endpoints found for nope.', code: 404 } } },
} as const satisfies Record<string, ChatStep>

function openaiError(message: string, more: { code?: string; param?: string }) {
  return { error: { message, type: 'invalid_request_error', param: null, code: null, ...more } }
}

/**
 * Starts a provider with OpenAI's chat completions, streamed or not, and its list of models, on a free loopback
 * port.
 *
 * @see https://platform.openai.com/docs/api-reference/chat/create
 */
export async function startChatServer(): Promise<ChatServer> {
  const received: ChatRequest[] = []
  const steps: ChatStep[] = []
  const counts = { connections: 0, abandoned: 0 }
  let modelDetails: object | undefined
  let responder: Responder = () => undefined
  const silences = new EventEmitter().setMaxListeners(0)
  const server = createServer(async (request, response) => {
    response.on('close', () => {
      if (!response.writableFinished) counts.abandoned++
    })
    const body = await readJson<ChatRequest['body']>(request)
    if (request.url?.endsWith('/api/show')) return showModel(response, modelDetails)
    const chatRequest = { line: `${request.method} ${request.url}`, headers: request.headers, body }
    received.push(chatRequest)
    const step = steps.shift() ?? (await responder(chatRequest)) ?? defaultAnswer(request.url ?? '', body)
    await answer(response, step, body, silences)
  })
  server.on('connection', () => counts.connections++)
  const { host, close } = await listenOnLoopback(server)
  return {
    url: `http://${host}/v1`,
    host,
    received,
    get connections() {
      return counts.connections
    },
    get abandoned() {
      return counts.abandoned
    },
    script: (...more) => void steps.push(...more),
    respond(by) {
      responder = by
    },
    release: () => void silences.emit('end'),
    describe(details) {
      modelDetails = details
    },
    close,
  }
}

function showModel(response: ServerResponse, details: object | undefined): void {
  response.writeHead(details ? 200 : 404, { 'content-type': 'application/json' })
  response.end(JSON.stringify(details ?? { error: 'model not found' }))
}

async function answer(
  response: ServerResponse,
  step: ChatStep,
  { stream, model }: ChatRequest['body'],
  silences: EventEmitter,
): Promise<void> {
  const { status = 200, headers, body, hang } = step
  if (hang) return
  if (body === undefined && stream) return sendStream(response, step, model, silences)
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  const payload = body ?? completeAnswer(step, model)
  write(response, typeof payload === 'string' ? payload : JSON.stringify(payload), step.bytesPerWrite)
  if (!step.cut) return void response.end()
  await wait(flushMs)
  response.destroy()
}

async function sendStream(
  response: ServerResponse,
  step: ChatStep,
  model: unknown,
  silences: EventEmitter,
): Promise<void> {
  const { status = 200, headers, comments, cutAfter, silentAfter, tokensPerSecond } = step
  response.writeHead(status, { 'content-type': 'text/event-stream; charset=utf-8', ...headers })
  response.flushHeaders()
  const closed = nextEvent(response, 'close')
  if (comments) response.write(': PROCESSING\n\n: PROCESSING\n\n')
  const begunAt = performance.now()
  for (const [at, event] of streamedAnswer(step, model).entries()) {
    if (at === cutAfter) break
    if (at === silentAfter) await Promise.race([nextEvent(silences, 'end'), closed])
    const dueMs = tokensPerSecond ? begunAt + (at * 1_000) / tokensPerSecond - performance.now() : 0
    if (dueMs > 1) await wait(dueMs)
    if (response.destroyed) return
    if (!write(response, event, step.bytesPerWrite))
      await Promise.race([nextEvent(response, 'drain'), closed])
  }
  if (cutAfter === undefined) return void response.end()
  await wait(flushMs)
  response.destroy()
}

/** Time after which written data has been sent. */
const flushMs = 20

function nextEvent(by: EventEmitter, event: string): Promise<void> {
  return new Promise(resolve => by.once(event, () => resolve()))
}

/**
 * Returns true if more data can be written before the client reads. @returns whether more can be written before it
 * is read
 */
function write(response: ServerResponse, text: string, bytesPerWrite: number | undefined): boolean {
  const bytes = Buffer.from(text)
  const step = bytesPerWrite ?? bytes.length
  let canContinue = true
  for (let at = 0; at < bytes.length; at += step) canContinue = response.write(bytes.subarray(at, at + step))
  return canContinue
}

function defaultAnswer(url: string, { max_tokens: limit }: ChatRequest['body']): ChatStep {
  if (url.endsWith('/models')) return { body: { object: 'list', data: [{ id: 'b:7b' }, { id: 'a:3b' }] } }
  if (!url.endsWith('/chat/completions')) return { status: 404, body: 'no such page' }
  const isCut = typeof limit === 'number' && limit < 3
  return isCut ? { text: 'Hello', finishReason: 'length' } : { text: 'Hello there.' }
}

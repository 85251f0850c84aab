import { EventEmitter } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { type Said, streamedAnswer, wholeAnswer } from './chat-answer.ts'
import { jsonIn, listening } from './listening.ts'

/** A request as the provider received it. */
export interface ChatRequest {
  readonly line: string
  readonly headers: IncomingHttpHeaders
  readonly body: { readonly model?: string; readonly [field: string]: unknown }
}

/** What a request is answered with: what a model says, or a body as it is. */
export interface ChatStep extends Said {
  readonly status?: number
  readonly headers?: Record<string, string>
  /** Sent instead of what a model says: as JSON; text as it is. */
  readonly body?: unknown
  /** Say nothing until the client goes away. */
  readonly hang?: true
  /** So many bytes in one write. */
  readonly bytesPerWrite?: number
  /** Break the connection after the body. */
  readonly cut?: true
  /** Break the connection after so many events. */
  readonly cutAfter?: number
  /** Fall silent after so many events, until `release` or until the client goes away. */
  readonly silentAfter?: number
  /** Events in a second; as quick as they are read when left out. */
  readonly tokensPerSecond?: number
  /** Lines that keep the connection alive, as OpenRouter sends them, before the first event. */
  readonly comments?: true
}

export interface ChatServer {
  /** `http://127.0.0.1:port/v1` */
  readonly url: string
  readonly host: string
  readonly received: ChatRequest[]
  /** Connections that were made. */
  readonly connections: number
  /** Requests whose client went away before the answer was whole. */
  readonly abandoned: number
  /** Answers for the next requests, in order; after them all is well again. */
  script(...steps: ChatStep[]): void
  /** Answers what the script has no step for, by what the model is told; undefined is a sound answer. */
  respond(responder: (request: ChatRequest) => ChatStep | undefined): void
  /** What Ollama's `/api/show` answers from now on; 404 before. These requests are not among the received ones. */
  describe(details: object): void
  /** Ends the silences that go on. */
  release(): void
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
 * A provider that speaks OpenAI's chat completions, whole and streamed, and its list of models, on a free loopback port.
 *
 * @see https://platform.openai.com/docs/api-reference/chat/create
 */
export async function startChatServer(): Promise<ChatServer> {
  const received: ChatRequest[] = []
  const steps: ChatStep[] = []
  const counts = { connections: 0, abandoned: 0 }
  let shown: object | undefined
  let responder: (request: ChatRequest) => ChatStep | undefined = () => undefined
  const silences = new EventEmitter().setMaxListeners(0)
  const server = createServer(async (request, response) => {
    response.on('close', () => {
      if (!response.writableFinished) counts.abandoned++
    })
    const body = await jsonIn<ChatRequest['body']>(request)
    if (request.url?.endsWith('/api/show')) return showModel(response, shown)
    const asked = { line: `${request.method} ${request.url}`, headers: request.headers, body }
    received.push(asked)
    const step = steps.shift() ?? responder(asked) ?? soundAnswer(request.url ?? '', body)
    await answer(response, step, body, silences)
  })
  server.on('connection', () => counts.connections++)
  const { host, close } = await listening(server)
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
      shown = details
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
  if (body === undefined && stream) return streamed(response, step, model, silences)
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  const said = body ?? wholeAnswer(step, model)
  write(response, typeof said === 'string' ? said : JSON.stringify(said), step.bytesPerWrite)
  if (!step.cut) return void response.end()
  await wait(flushMs)
  response.destroy()
}

async function streamed(
  response: ServerResponse,
  step: ChatStep,
  model: unknown,
  silences: EventEmitter,
): Promise<void> {
  const { status = 200, headers, comments, cutAfter, silentAfter, tokensPerSecond } = step
  response.writeHead(status, { 'content-type': 'text/event-stream; charset=utf-8', ...headers })
  response.flushHeaders()
  const closed = told(response, 'close')
  if (comments) response.write(': PROCESSING\n\n: PROCESSING\n\n')
  const begunAt = performance.now()
  for (const [at, event] of streamedAnswer(step, model).entries()) {
    if (at === cutAfter) break
    if (at === silentAfter) await Promise.race([told(silences, 'end'), closed])
    const dueMs = tokensPerSecond ? begunAt + (at * 1_000) / tokensPerSecond - performance.now() : 0
    if (dueMs > 1) await wait(dueMs)
    if (response.destroyed) return
    if (!write(response, event, step.bytesPerWrite)) await Promise.race([told(response, 'drain'), closed])
  }
  if (cutAfter === undefined) return void response.end()
  await wait(flushMs)
  response.destroy()
}

/** What was written is on its way then. */
const flushMs = 20

function told(by: EventEmitter, event: string): Promise<void> {
  return new Promise(resolve => by.once(event, () => resolve()))
}

/** @returns whether more can be written before it is read */
function write(response: ServerResponse, text: string, bytesPerWrite: number | undefined): boolean {
  const bytes = Buffer.from(text)
  const step = bytesPerWrite ?? bytes.length
  let goesOn = true
  for (let at = 0; at < bytes.length; at += step) goesOn = response.write(bytes.subarray(at, at + step))
  return goesOn
}

function soundAnswer(url: string, { max_tokens: limit }: ChatRequest['body']): ChatStep {
  if (url.endsWith('/models')) return { body: { object: 'list', data: [{ id: 'b:7b' }, { id: 'a:3b' }] } }
  if (!url.endsWith('/chat/completions')) return { status: 404, body: 'no such page' }
  const isCut = typeof limit === 'number' && limit < 3
  return isCut ? { text: 'Hello', finishReason: 'length' } : { text: 'Hello there.' }
}

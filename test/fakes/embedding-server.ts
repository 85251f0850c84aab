import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import { listenOnLoopback, readJson } from './listen-on-loopback.ts'

/** The response to a request; omitted fields have valid values. */
export interface EmbeddingStep {
  status?: number
  headers?: Record<string, string>
  /** Replaces the vectors with this text. */
  body?: string
  /** Length of the vectors. */
  dimension?: number
  /** Sends the vectors in reverse order, each with its index. */
  reversed?: boolean
  /** Number of vectors to omit. */
  missing?: number
  /** Ends the response in the middle of its JSON. */
  truncated?: boolean
  /** Sends no response, or only a part of the body, until the client disconnects. */
  hang?: 'before headers' | 'in body'
  delayMs?: number
  /** Runs before the response is sent. */
  before?: () => Promise<unknown>
}

export interface EmbeddingRequest {
  url: string
  headers: IncomingHttpHeaders
  body: { model?: string; input?: string[]; texts?: string[]; [field: string]: unknown }
}

export interface EmbeddingServer {
  /** `http://127.0.0.1:port/v1` */
  readonly url: string
  readonly host: string
  readonly received: EmbeddingRequest[]
  /** Texts of the requests that got valid vectors, once for each request. */
  readonly embedded: string[]
  /** Delay in milliseconds of each response for which no delay is scripted; 0 by default. */
  delayMs: number
  /** Maximum number of concurrent requests. */
  readonly openMax: number
  /** Requests whose client disconnected before the response was complete. */
  readonly abandoned: number
  /** Sets the responses to the next requests, in order; later requests succeed. */
  script(...steps: EmbeddingStep[]): void
  /** Removes the responses that were set, so that all later requests succeed. */
  recover(): void
  close(): Promise<void>
}

/** Returns the vector of a text: its length, then its character codes. */
export function vectorFor(text: string, dimension: number): number[] {
  return Array.from({ length: dimension }, (_, at) =>
    at === 0 ? text.length : (text.charCodeAt(at - 1) || 0) / 128,
  )
}

/**
 * Starts a provider with the embeddings protocols of OpenAI and, at `/embed`, of Cohere, on a free loopback port.
 */
export async function startEmbeddingServer(dimension: number): Promise<EmbeddingServer> {
  const received: EmbeddingRequest[] = []
  const embedded: string[] = []
  const steps: EmbeddingStep[] = []
  const counts = { open: 0, openMax: 0, abandoned: 0 }

  let provider: EmbeddingServer

  const server = createServer(async (request, response) => {
    counts.open++
    counts.openMax = Math.max(counts.openMax, counts.open)
    response.on('close', () => {
      counts.open--
      if (!response.writableFinished) counts.abandoned++
    })
    const body = await readJson<EmbeddingRequest['body']>(request)
    received.push({ url: request.url ?? '', headers: request.headers, body })
    const step = steps.shift()
    await step?.before?.()
    await answer(response, body, { dimension, delayMs: provider.delayMs, ...step })
    const { status = 200, body: replaced, dimension: sent = dimension, truncated, hang, missing } = step ?? {}
    if (status === 200 && sent === dimension && !(replaced ?? truncated ?? hang ?? missing))
      embedded.push(...(body.input ?? body.texts ?? []))
  })
  const { host, close } = await listenOnLoopback(server)
  provider = {
    delayMs: 0,
    url: `http://${host}/v1`,
    host,
    received,
    embedded,
    get openMax() {
      return counts.openMax
    },
    get abandoned() {
      return counts.abandoned
    },
    script: (...more) => void steps.push(...more),
    recover() {
      steps.length = 0
    },
    close,
  }
  return provider
}

async function answer(
  response: ServerResponse,
  body: EmbeddingRequest['body'],
  step: EmbeddingStep & { dimension: number },
) {
  if (step.hang === 'before headers') return
  if (step.delayMs) await new Promise(resolve => setTimeout(resolve, step.delayMs))
  response.writeHead(step.status ?? 200, { 'content-type': 'application/json', ...step.headers })
  const text =
    step.body ?? JSON.stringify(body.texts ? cohereAnswer(body.texts, step) : openaiAnswer(body, step))
  if (step.hang === 'in body') response.write(text.slice(0, 10))
  else response.end(step.truncated ? text.slice(0, text.length / 2) : text)
}

function openaiAnswer(
  { input = [], model }: EmbeddingRequest['body'],
  step: EmbeddingStep & { dimension: number },
) {
  const data = input
    .slice(0, input.length - (step.missing ?? 0))
    .map((text, index) => ({ object: 'embedding', index, embedding: vectorFor(text, step.dimension) }))
  return {
    object: 'list',
    model,
    data: step.reversed ? data.reverse() : data,
    usage: { prompt_tokens: 1, total_tokens: 1 },
  }
}

function cohereAnswer(texts: string[], step: EmbeddingStep & { dimension: number }) {
  return { id: 'x', texts, embeddings: { float: texts.map(text => vectorFor(text, step.dimension)) } }
}

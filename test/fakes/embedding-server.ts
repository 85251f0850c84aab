import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import { jsonIn, listening } from './listening.ts'

/** What the next request is answered with; what is left out is as a sound provider does it. */
export interface Step {
  status?: number
  headers?: Record<string, string>
  /** Sent as it is instead of vectors. */
  body?: string
  /** Length of the vectors. */
  dimension?: number
  /** Vectors in reverse order, each with its index. */
  reversed?: boolean
  /** Fewer vectors than texts by so many. */
  missing?: number
  /** Say nothing at all, or stop in the middle of the body, until the client goes away. */
  hang?: 'before headers' | 'in body'
  delayMs?: number
}

export interface Received {
  url: string
  headers: IncomingHttpHeaders
  body: { model?: string; input?: string[]; texts?: string[]; [field: string]: unknown }
}

export interface EmbeddingServer {
  /** `http://127.0.0.1:port/v1` */
  readonly url: string
  readonly host: string
  readonly received: Received[]
  /** Most requests that were open at once. */
  readonly openMax: number
  /** Requests whose client went away before the answer was whole. */
  readonly abandoned: number
  /** Answers for the next requests, in order; after them all is well again. */
  script(...steps: Step[]): void
  close(): Promise<void>
}

/** The vector that the fake gives a text: its length, then its character codes. */
export function vectorFor(text: string, dimension: number): number[] {
  return Array.from({ length: dimension }, (_, at) =>
    at === 0 ? text.length : (text.charCodeAt(at - 1) || 0) / 128,
  )
}

/** A provider that speaks the OpenAI embeddings protocol, and Cohere's at `/embed`, on a free loopback port. */
export async function startEmbeddingServer(dimension: number): Promise<EmbeddingServer> {
  const received: Received[] = []
  const steps: Step[] = []
  const counts = { open: 0, openMax: 0, abandoned: 0 }

  const server = createServer(async (request, response) => {
    counts.open++
    counts.openMax = Math.max(counts.openMax, counts.open)
    response.on('close', () => {
      counts.open--
      if (!response.writableFinished) counts.abandoned++
    })
    const body = await jsonIn<Received['body']>(request)
    received.push({ url: request.url ?? '', headers: request.headers, body })
    await answer(response, body, { dimension, ...steps.shift() })
  })
  const { host, close } = await listening(server)
  return {
    url: `http://${host}/v1`,
    host,
    received,
    get openMax() {
      return counts.openMax
    },
    get abandoned() {
      return counts.abandoned
    },
    script: (...more) => void steps.push(...more),
    close,
  }
}

async function answer(response: ServerResponse, body: Received['body'], step: Step & { dimension: number }) {
  if (step.hang === 'before headers') return
  if (step.delayMs) await new Promise(resolve => setTimeout(resolve, step.delayMs))
  response.writeHead(step.status ?? 200, { 'content-type': 'application/json', ...step.headers })
  const text =
    step.body ?? JSON.stringify(body.texts ? cohereAnswer(body.texts, step) : openaiAnswer(body, step))
  if (step.hang === 'in body') response.write(text.slice(0, 10))
  else response.end(text)
}

function openaiAnswer({ input = [], model }: Received['body'], step: Step & { dimension: number }) {
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

function cohereAnswer(texts: string[], step: Step & { dimension: number }) {
  return { id: 'x', texts, embeddings: { float: texts.map(text => vectorFor(text, step.dimension)) } }
}

import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import { listenOnLoopback, readJson } from './listen-on-loopback.ts'

/** The response to a request; omitted fields have valid values. */
export interface RerankStep {
  status?: number
  headers?: Record<string, string>
  /** Replaces the body with this text. */
  body?: string
  /** Sends no response until the client disconnects. */
  hangs?: boolean
  /** Changes the valid entries of the response. */
  change?: (entries: RerankEntry[]) => unknown[]
}

export interface RerankEntry {
  index: number
  score: number
}

export interface RerankRequest {
  url: string
  headers: IncomingHttpHeaders
  /** Cohere, Jina and vLLM name the passages `documents`; Text Embeddings Inference names them `texts`. */
  body: { model?: string; query: string; documents?: string[]; texts?: string[]; [field: string]: unknown }
}

export interface RerankServer {
  /** `http://127.0.0.1:port/v1` */
  readonly url: string
  readonly host: string
  readonly received: RerankRequest[]
  /** Sets the responses to the next requests, in order; later requests succeed. */
  script(...steps: RerankStep[]): void
  close(): Promise<void>
}

/**
 * Starts a server with the reranking protocols of Cohere (also that of Jina and vLLM) and of Text Embeddings Inference, on a
 * free loopback port. It answers as those do, best passage first.
 *
 * @param scoreOf  returns the score of a passage
 */
export async function startRerankServer(scoreOf: (passage: string) => number): Promise<RerankServer> {
  const received: RerankRequest[] = []
  const steps: RerankStep[] = []
  const server = createServer(async (request, response) => {
    const body = await readJson<RerankRequest['body']>(request)
    received.push({ url: request.url ?? '', headers: request.headers, body })
    answer(response, body, scoreOf, steps.shift() ?? {})
  })
  const { host, close } = await listenOnLoopback(server)
  return { url: `http://${host}/v1`, host, received, script: (...more) => void steps.push(...more), close }
}

function answer(
  response: ServerResponse,
  { documents, texts }: RerankRequest['body'],
  scoreOf: (passage: string) => number,
  { status = 200, headers, body, hangs, change = entries => entries }: RerankStep,
): void {
  if (hangs) return
  const entries = (documents ?? texts ?? [])
    .map((passage, index) => ({ index, score: scoreOf(passage) }))
    .sort((a, b) => b.score - a.score)
  const changed = change(entries)
  const results = changed.map(entry => {
    const { index, score, ...rest } = entry as RerankEntry
    return { index, relevance_score: score, ...rest }
  })
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(body ?? JSON.stringify(documents ? { id: 'x', results } : changed))
}

import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A request that the provider received. */
interface Received {
  readonly path: string
  readonly authorization: string | undefined
  readonly model: unknown
  readonly input: readonly string[]
}

/** A server that implements the embeddings call of the OpenAI protocol. */
export interface FakeProvider {
  /** Base URL for an embedding service. */
  readonly url: string
  readonly received: Received[]
  /** Dimension of the returned vectors. */
  dimension: number
  /** Statuses of the next responses, in order; later responses succeed. */
  refusals: number[]
  /** A promise that delays each response. */
  hold: Promise<void>
  close(): Promise<void>
}

export async function startFakeProvider(dimension: number): Promise<FakeProvider> {
  const server = createServer((request, response) => void answer(fake, request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const fake: FakeProvider = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    received: [],
    dimension,
    refusals: [],
    hold: Promise.resolve(),
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  return fake
}

/** Returns a loopback address on which no server listens. */
export async function deadUrl(): Promise<string> {
  const fake = await startFakeProvider(1)
  await fake.close()
  return fake.url
}

async function answer(fake: FakeProvider, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  const body = JSON.parse(Buffer.concat(parts).toString()) as {
    model: unknown
    input: string | string[]
    encoding_format?: string
  }
  const input = [body.input].flat()
  fake.received.push({
    path: request.url ?? '',
    authorization: request.headers.authorization,
    model: body.model,
    input,
  })
  await fake.hold
  const refusal = fake.refusals.shift()
  response.setHeader('content-type', 'application/json')
  if (refusal !== undefined) {
    response.statusCode = refusal
    response.end(
      JSON.stringify({ error: { message: 'sk-provider-detail is wrong', type: 'error', code: 'error' } }),
    )
    return
  }
  const data = input.map((text, index) => {
    const vector = vectorOf(text, fake.dimension)
    return {
      object: 'embedding',
      index,
      embedding: body.encoding_format === 'base64' ? base64(vector) : vector,
    }
  })
  response.end(
    JSON.stringify({ object: 'list', data, model: body.model, usage: { prompt_tokens: 1, total_tokens: 1 } }),
  )
}

/** Returns a vector; different texts rarely have equal vectors. */
function vectorOf(text: string, dimension: number): number[] {
  const vector = Array.from({ length: dimension }, () => 0)
  for (const [index, character] of [...text].entries())
    vector[(character.codePointAt(0)! + index) % dimension]! += 1
  return vector
}

function base64(vector: readonly number[]): string {
  return Buffer.from(new Float32Array(vector).buffer).toString('base64')
}

import { Pool } from 'undici'
import { onTestFinished } from 'vitest'
import { listen } from '../../src/http/listen.ts'
import type { TestResponse, TestRuntime } from './runtime.ts'

/** A body that is sent unchanged, with its media type. */
export class RawBody {
  constructor(
    readonly body: string | Buffer,
    readonly mediaType: string,
  ) {}
}

/** A runtime in this process that is reached over HTTP. */
export interface HttpRuntime extends TestRuntime {
  readonly url: string
}

/** Makes a runtime reachable over HTTP on a loopback port. */
export async function serveOverHttp(opened: TestRuntime): Promise<HttpRuntime> {
  const listening = await listen(opened.runtime.app, { host: '127.0.0.1', port: 0 })
  const pool = new Pool(listening.url)
  onTestFinished(async () => {
    await pool.destroy()
    await listening.close(0)
  })
  const send = async (
    line: string,
    sent?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<TestResponse> => {
    const [method, path] = line.split(' ') as ['GET', string]
    const raw =
      sent === undefined || sent instanceof RawBody
        ? sent
        : new RawBody(JSON.stringify(sent), 'application/json')
    const answer = await pool.request({
      method,
      path,
      headers: { host: 'localhost', ...(raw && { 'content-type': raw.mediaType }), ...headers },
      body: raw?.body ?? null,
    })
    const text = await answer.body.text()
    const received = new Headers()
    for (const [name, value] of Object.entries(answer.headers))
      for (const one of [value ?? []].flat()) received.append(name, one)
    const isJson = received.get('content-type')?.startsWith('application/json') && text !== ''
    return { status: answer.statusCode, text, body: isJson ? JSON.parse(text) : {}, headers: received }
  }
  return { ...opened, url: listening.url, send }
}

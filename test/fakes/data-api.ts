import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import { WbError } from '../../src/contract/errors.ts'
import type { ContentStore, RawCommands } from '../../src/storage/content.ts'
import { withoutPowers } from './powerless.ts'

/** What came to a database, and what it answers. */
export interface DataApi {
  readonly url: string
  readonly asked: { readonly path: string; readonly command: unknown }[]
  /** A status and a body of the next answers. */
  answers: { status: number; body: object }
  stop(): Promise<void>
}

/** A database on this machine that takes commands as the Data API does: JSON over HTTP, errors in the body. */
export async function dataApi(): Promise<DataApi> {
  const asked: DataApi['asked'] = []
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const part of request) text += part
    asked.push({ path: request.url!, command: JSON.parse(text) })
    response.writeHead(api.answers.status, { 'content-type': 'application/json' })
    response.end(JSON.stringify(api.answers.body))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const stop = () =>
    new Promise<void>(resolve => {
      server.closeAllConnections()
      server.close(() => resolve())
    })
  onTestFinished(stop)
  const { port } = server.address() as AddressInfo
  const api: DataApi = {
    url: `http://127.0.0.1:${port}`,
    asked,
    answers: { status: 200, body: { status: { ok: 1 } } },
    stop,
  }
  return api
}

/** A driver for that database, as far as raw commands go. */
export function remoteStore(api: DataApi, local: ContentStore): ContentStore {
  const run: RawCommands['run'] = async ({ keyspace, target }, command, signal) => {
    const path = [keyspace, target.name].filter(part => part !== null).join('/')
    const sent = await fetch(`${api.url}/${path}`, {
      method: 'POST',
      body: JSON.stringify(command),
      signal,
    }).catch(cause => {
      throw new WbError('data_api_unavailable', 'the Data API does not answer', {}, { cause })
    })
    const body = (await sent.json()) as Record<string, unknown>
    if (!sent.ok || 'errors' in body)
      throw new WbError('data_api_error', 'the Data API refused the command', { answered: body })
    return body
  }
  return { ...withoutPowers(local), name: 'remote', commands: { run } }
}

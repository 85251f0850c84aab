import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import { WbError } from '../../src/contract/errors.ts'
import type { ContentStore, RawCommands } from '../../src/storage/content.ts'
import { withoutOptionalFeatures } from './without-optional-features.ts'

/** A fake database that records requests. */
export interface DataApi {
  readonly url: string
  readonly requests: { readonly path: string; readonly command: unknown }[]
  /** Status and body of the next responses. */
  response: { status: number; body: object }
  stop(): Promise<void>
}

/**
 * Starts a database on loopback that accepts commands like the Data API: JSON over HTTP, with errors in the body.
 */
export async function dataApi(): Promise<DataApi> {
  const requests: DataApi['requests'] = []
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const part of request) text += part
    requests.push({ path: request.url!, command: JSON.parse(text) })
    response.writeHead(api.response.status, { 'content-type': 'application/json' })
    response.end(JSON.stringify(api.response.body))
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
    requests,
    response: { status: 200, body: { status: { ok: 1 } } },
    stop,
  }
  return api
}

/** Returns a driver that supports raw commands on the database. */
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
  return { ...withoutOptionalFeatures(local), name: 'remote', commands: { run } }
}

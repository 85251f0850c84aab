import { Pool } from 'undici'
import { onTestFinished } from 'vitest'
import { listen } from '../../src/http/listen.ts'
import type { Opened, Sent } from './runtime.ts'

/** A body that is sent as it is, with its media type. */
export class Raw {
  constructor(
    readonly body: string | Buffer,
    readonly mediaType: string,
  ) {}
}

/** A runtime of this process whose requests come by a connection, as they do from elsewhere. */
export interface Wired extends Opened {
  readonly url: string
}

/** The same runtime, asked by real HTTP on a port of loopback. */
export async function wired(opened: Opened): Promise<Wired> {
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
  ): Promise<Sent> => {
    const [method, path] = line.split(' ') as ['GET', string]
    const raw =
      sent === undefined || sent instanceof Raw ? sent : new Raw(JSON.stringify(sent), 'application/json')
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

import type { IncomingMessage, Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Starts a server on a free loopback port; `close` also closes its connections. */
export async function listenOnLoopback(server: Server): Promise<{ host: string; close(): Promise<void> }> {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.closeAllConnections()
      return new Promise(resolve => server.close(() => resolve()))
    },
  }
}

/** Reads the JSON body of a request; an empty body is an empty object. */
export async function readJson<T>(request: IncomingMessage): Promise<T> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  return JSON.parse(Buffer.concat(parts).toString() || '{}') as T
}

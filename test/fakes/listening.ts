import type { IncomingMessage, Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Have a server listen on a free port of this machine; it ends with all its connections. */
export async function listening(server: Server): Promise<{ host: string; close(): Promise<void> }> {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.closeAllConnections()
      return new Promise(resolve => server.close(() => resolve()))
    },
  }
}

/** The body of a request, which is JSON; none is an empty object. */
export async function jsonIn<T>(request: IncomingMessage): Promise<T> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  return JSON.parse(Buffer.concat(parts).toString() || '{}') as T
}

import type { Server } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { listen as listhen } from 'listhen'
import { type Clock, systemClock } from '../base/clock.ts'
import { TimedOut, withTimeout } from '../base/deadline.ts'
import { connectableHost, isLoopback } from '../base/loopback.ts'
import type { App } from './app.ts'
import { limitConnections } from './connections.ts'
import { createNodeListener } from './node-listener.ts'
import { paceReads } from './read-pace.ts'
import { installWireErrors } from './wire-errors.ts'

export interface ListenOptions {
  /** Address or host name to bind. */
  readonly host: string
  /** Port to bind; 0 selects a free one. */
  readonly port: number
  /** Certificate and key as PEM texts or paths; `true` creates a certificate for localhost. */
  readonly https?: { readonly cert: string; readonly key: string } | true
  readonly clock?: Clock
}

export interface RunningServer {
  /** URL at which this machine reaches the server. */
  readonly url: string
  readonly port: number
  /**
   * Refuses new requests and waits for those in progress. The port stays bound.
   *
   * @param graceMs  maximum time to wait, after which open connections are closed
   * @returns true if all requests finished in time
   */
  drain(graceMs: number): Promise<boolean>
  /** Replaces the application that answers requests. */
  use(app: App): void
  /** Drains, then releases the port. Like {@link drain}, returns true if all requests finished in time. */
  close(graceMs: number): Promise<boolean>
}

/**
 * Time in milliseconds for which an idle connection is kept. It is longer than the idle time of common
 * proxies, so they never reuse a closed connection.
 */
const keepAliveMs = 65_000

/** Maximum number of connections that wait to be accepted; the operating system may allow fewer. */
const backlog = 4_096

/**
 * Serves an application on a port.
 *
 * @throws Error  with `code` `EADDRINUSE`, `EACCES` or `EADDRNOTAVAIL` when the address cannot be bound
 */
export async function listen(app: App, options: ListenOptions): Promise<RunningServer> {
  const { host, https, clock = systemClock } = options
  const port = await probePort(host, options.port)
  let serving = app
  let acceptedCount = 0
  const accepted = () => acceptedCount
  let answer = createNodeListener(app, accepted)
  const listener = await rejectOnError(
    listhen((request, response) => answer(request, response), {
      hostname: host,
      port,
      https: https === true ? { domains: ['localhost', '127.0.0.1', '::1'] } : (https ?? false),
      public: !isLoopback(host),
      isProd: true,
      isTest: true,
      showURL: false,
      clipboard: false,
      open: false,
      autoClose: false,
    }),
  )
  const server = listener.server as Server
  await extendBacklog(server, host)
  installWireErrors(server, () => serving)
  limitConnections(server)
  server.on('connection', () => acceptedCount++)
  paceReads(server, accepted, https ? 'secureConnection' : 'connection', error =>
    serving.log.error({ error }, 'reading a connection failed'),
  )
  server.keepAliveTimeout = keepAliveMs
  const bound = listener.address.port
  if (bound !== port) {
    await listener.close()
    throw new Error(`port ${port} cannot be used: browsers refuse to connect to it`)
  }
  return {
    url: `${https ? 'https' : 'http'}://${connectableHost(host)}:${bound}`,
    port: bound,
    async drain(graceMs) {
      serving.drain()
      const inTime = await endsWithin(serving.idle(), graceMs, clock)
      if (!inTime) server.closeAllConnections()
      return inTime
    },
    use(next) {
      serving = next
      answer = createNodeListener(next, accepted)
    },
    async close(graceMs) {
      serving.drain()
      // `close` closes idle connections at once, including those that never sent anything, and busy ones
      // after their response.
      const inTime = await endsWithin(
        serving.idle().then(() => listener.close()),
        graceMs,
        clock,
      )
      server.close()
      server.closeAllConnections()
      return inTime
    },
  }
}

/**
 * Checks that a port can be bound, and returns it; for 0, returns a free port.
 *
 * listhen also checks, but does not report the reason of a failure, and does not support port 0.
 */
function probePort(host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => reject(explainListenError(error, host, port)))
    server.listen({ host, port }, () => {
      const address = server.address()
      const free = typeof address === 'object' && address ? address.port : port
      server.close(() => resolve(free))
    })
  })
}

/**
 * Listens again with a larger backlog. listhen keeps Node's default of 511; the system silently drops
 * connections above it, and their clients retry after a second or more.
 */
async function extendBacklog(server: Server, host: string): Promise<void> {
  const { port } = server.address() as AddressInfo
  await new Promise(resolve => server.close(resolve))
  await new Promise<void>((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException) => reject(explainListenError(error, host, port))
    server.once('error', fail)
    server.listen({ host, port, backlog }, () => {
      server.off('error', fail)
      resolve()
    })
  })
}

function explainListenError(error: NodeJS.ErrnoException, host: string, port: number): Error {
  if (error.code !== 'EADDRINUSE') return error
  return Object.assign(new Error(`port ${port} of ${host} is in use`, { cause: error }), { code: error.code })
}

/**
 * Rejects if listening fails. listhen has no error listener while it starts to listen, so a port that is
 * taken after the check would otherwise end the process.
 */
async function rejectOnError<T>(listening: Promise<T>): Promise<T> {
  let fail: (error: NodeJS.ErrnoException) => void = () => {}
  const failed = new Promise<never>((_resolve, reject) => {
    fail = error => {
      if (error.syscall === 'listen') reject(error)
      else throw error
    }
  })
  process.on('uncaughtException', fail)
  try {
    return await Promise.race([listening, failed])
  } finally {
    process.off('uncaughtException', fail)
  }
}

/** Returns true if a promise resolves within a time. */
async function endsWithin(ending: Promise<unknown>, graceMs: number, clock: Clock): Promise<boolean> {
  try {
    await withTimeout(clock, graceMs, () => ending)
    return true
  } catch (error) {
    if (error instanceof TimedOut) return false
    throw error
  }
}

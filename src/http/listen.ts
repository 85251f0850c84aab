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
  /** Certificate and key, each as PEM or as a path; `true` creates a certificate for localhost. */
  readonly https?: { readonly cert: string; readonly key: string } | true
  readonly clock?: Clock
}

export interface RunningServer {
  /** URL of the server for clients on this machine. */
  readonly url: string
  readonly port: number
  /**
   * Rejects new requests and waits for the requests in progress. The port stays bound.
   *
   * @param graceMs  maximum time to wait in milliseconds, after which open connections are closed
   * @returns true if all requests finished in time
   */
  drain(graceMs: number): Promise<boolean>
  /** Replaces the application that handles requests. */
  replaceApp(app: App): void
  /** Like {@link drain}, and then releases the port. */
  close(graceMs: number): Promise<boolean>
}

/**
 * Time in milliseconds for which an idle connection stays open. It is longer than the idle timeout of common
 * proxies, so that they do not send a request on a connection that the server has closed.
 */
const keepAliveMs = 65_000

/** Maximum number of connections that wait to be accepted; the operating system may allow fewer. */
const backlog = 4_096

/**
 * Starts a server for an application.
 *
 * @throws Error  with `code` `EADDRINUSE`, `EACCES` or `EADDRNOTAVAIL` when the address cannot be bound
 */
export async function listen(app: App, options: ListenOptions): Promise<RunningServer> {
  const { host, https, clock = systemClock } = options
  const port = await probePort(host, options.port)
  let currentApp = app
  let acceptedCount = 0
  const countAccepted = () => acceptedCount
  let handleRequest = createNodeListener(app, countAccepted)
  const listener = await rejectOnError(
    listhen((request, response) => handleRequest(request, response), {
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
  installWireErrors(server, () => currentApp)
  limitConnections(server)
  server.on('connection', () => acceptedCount++)
  paceReads(server, countAccepted, https ? 'secureConnection' : 'connection', error =>
    currentApp.log.error({ error }, 'reading a connection failed'),
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
      currentApp.drain()
      const isInTime = await endsWithin(currentApp.idle(), graceMs, clock)
      if (!isInTime) server.closeAllConnections()
      return isInTime
    },
    replaceApp(next) {
      currentApp = next
      handleRequest = createNodeListener(next, countAccepted)
    },
    async close(graceMs) {
      currentApp.drain()
      // `listener.close` closes idle connections at once, including unused ones, and busy connections after
      // their response.
      const isInTime = await endsWithin(
        currentApp.idle().then(() => listener.close()),
        graceMs,
        clock,
      )
      server.close()
      server.closeAllConnections()
      return isInTime
    },
  }
}

/**
 * Checks that a port can be bound, and returns it; for 0, returns a free port.
 *
 * listhen also checks the port, but it does not report why the check failed, and does not support port 0.
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
 * Listens again with a larger backlog. listhen uses Node's default of 511. The operating system silently drops
 * connections above it, and the clients retry after a second or more.
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
  return Object.assign(new Error(`port ${port} on ${host} is in use`, { cause: error }), { code: error.code })
}

/**
 * Rejects if listening fails. listhen has no error listener while it starts to listen, so without this function,
 * a port that another process takes after the check would crash the process.
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

/** Returns true if a promise resolves within `graceMs`. */
async function endsWithin(ending: Promise<unknown>, graceMs: number, clock: Clock): Promise<boolean> {
  try {
    await withTimeout(clock, graceMs, () => ending)
    return true
  } catch (error) {
    if (error instanceof TimedOut) return false
    throw error
  }
}

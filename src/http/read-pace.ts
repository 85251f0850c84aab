import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { FairScheduler, workOwner } from './fair-scheduler.ts'

/**
 * Maximum size in bytes of a read that is parsed as soon as it arrives. The headers of most requests are smaller.
 */
const smallReadBytes = 4_096

/**
 * Maximum number of larger reads that are parsed in one event loop tick. Each read has about 64 KB and takes up to
 * 5 ms.
 */
const readsPerTick = 4

/**
 * Limits how much received data Node parses in one event loop tick. By default, Node first parses all data that has
 * arrived on all connections: 64 KB with HTTP chunks of one byte contain 10,000 chunks, so 200 connections would
 * block all requests for seconds.
 *
 * @param countAccepted  returns the number of connections that the server has accepted so far
 * @param event          event that provides the sockets that Node's HTTP parser reads
 * @param onError        called with an exception; only the connection that caused it is closed
 */
export function paceReads(
  server: Server,
  countAccepted: () => number,
  event: 'connection' | 'secureConnection',
  onError: (error: unknown) => void,
): void {
  const scheduler = new FairScheduler(readsPerTick, countAccepted)
  const credentials = new WeakMap<Socket, string>()
  server.prependListener('request', message => {
    credentials.set(message.socket, workOwner(message).credential)
  })
  server.on(event, (socket: Socket) => {
    const isPaused = trackPauses(socket)
    const read = () => {
      if (isPaused()) return
      try {
        socket.read()
      } catch (error) {
        onError(error)
        socket.destroy()
      }
    }
    const scheduleRead = () => {
      const owner = { address: socket.remoteAddress ?? '', credential: credentials.get(socket) ?? '' }
      if (socket.readableLength <= smallReadBytes) read()
      else scheduler.run(owner, read)
    }
    // With a `readable` listener, a socket passes data to the parser only when `read` is called.
    socket.on('readable', scheduleRead).on('resume', scheduleRead)
  })
}

/**
 * Returns a function that returns true while a socket is paused. Node's HTTP server pauses a socket while a body is
 * not read or responses accumulate. The function cannot use `isPaused()`, because `pause()` has no effect on a socket
 * with a `readable` listener.
 */
function trackPauses(socket: Socket): () => boolean {
  const { pause, resume } = socket
  let isPaused = false
  socket.pause = () => {
    isPaused = true
    return pause.call(socket)
  }
  socket.resume = () => {
    isPaused = false
    return resume.call(socket)
  }
  return () => isPaused
}

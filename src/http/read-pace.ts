import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { FairTurns, turnOwner } from './fair-turns.ts'

/**
 * Maximum size in bytes of a read that is parsed as soon as it arrives. The head of a usual request is
 * smaller.
 */
const smallReadBytes = 4_096

/**
 * Maximum number of larger reads that are parsed in one turn of the event loop. Each has about 64 KB and
 * takes up to 5 ms.
 */
const readsPerTurn = 4

/**
 * Parses the data of connections in turns. Without this, Node parses all data that has arrived on all
 * connections before anything else: 64 KB in chunks of one byte are 10,000 chunks, so 200 connections would
 * block all requests for seconds.
 *
 * @param accepted  returns the number of connections that the server has accepted so far
 * @param event     event that provides the sockets which Node's HTTP parser reads
 * @param onError   called with an exception; only the connection that caused it is closed
 */
export function paceReads(
  server: Server,
  accepted: () => number,
  event: 'connection' | 'secureConnection',
  onError: (error: unknown) => void,
): void {
  const reads = new FairTurns(readsPerTurn, accepted)
  const credentials = new WeakMap<Socket, string>()
  server.prependListener('request', message => {
    credentials.set(message.socket, turnOwner(message).credential)
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
    const readInTurn = () => {
      const owner = { address: socket.remoteAddress ?? '', credential: credentials.get(socket) ?? '' }
      if (socket.readableLength <= smallReadBytes) read()
      else reads.run(owner, read)
    }
    // With this listener, a socket delivers data when `read` is called, not as it arrives.
    socket.on('readable', readInTurn).on('resume', readInTurn)
  })
}

/**
 * Returns a function that returns true while a socket is paused. Node's HTTP server pauses a socket while a
 * body is not consumed or responses accumulate. With a listener for `readable`, `pause()` neither stops the
 * socket nor changes `isPaused()`.
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

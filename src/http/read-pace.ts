import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { FairTurns, turnOwner } from './fair-turns.ts'

/** Up to this many bytes are parsed as soon as they arrive: more than the head of a usual request. */
const smallReadBytes = 4_096

/** Larger reads that are parsed in one turn of the event loop. One holds about 64 KB and takes up to 5 ms. */
const readsPerTurn = 4

/**
 * Parses what connections send in turns. Node would parse all that has arrived on all connections before it does
 * anything else: 64 KB in chunks of one byte are 10,000 chunks, so that 200 connections would hold up everyone for
 * seconds.
 *
 * @param accepted returns how many connections the server has accepted so far
 * @param event  gives the sockets that Node's HTTP parser reads
 * @param onError called with an exception; it closes only the connection that it belongs to
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
    // With this listener, a socket gives its data when it is read, instead of as it arrives.
    socket.on('readable', readInTurn).on('resume', readInTurn)
  })
}

/**
 * Returns a function that reads whether a socket is paused. Node's HTTP server pauses a socket while a body is not taken
 * or responses pile up. With a listener for `readable`, a socket neither stops at `pause` nor shows it.
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

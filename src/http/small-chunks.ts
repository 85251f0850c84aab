import type { IncomingMessage } from 'node:http'

/** Chunks up to this size in bytes are joined. */
const smallChunkBytes = 1_024

/** More than the chunks of one byte that one read of a socket can hold. */
const joinedBytes = 16_384

/**
 * Joins the small chunks of a body that arrive together. Each chunk that waits to be read takes about 350 bytes besides
 * its content, so that a megabyte in chunks of one byte would take 350.
 *
 * Call before any of the body arrives.
 */
export function joinSmallChunks(message: IncomingMessage): void {
  const { push } = message
  let small: Buffer[] = []
  let smallBytes = 0
  const pushJoined = (): boolean => {
    if (small.length === 0 || message.destroyed) return true
    // A copy, as a chunk of one byte would keep all that was read with it.
    const chunk = Buffer.concat(small, smallBytes)
    small = []
    smallBytes = 0
    return push.call(message, chunk)
  }
  message.push = (chunk: Buffer | null) => {
    if (chunk === null || chunk.length > smallChunkBytes) {
      pushJoined()
      return push.call(message, chunk)
    }
    const goesOn = smallBytes + chunk.length <= joinedBytes || pushJoined()
    if (small.length === 0) setImmediate(pushJoined)
    small.push(chunk)
    smallBytes += chunk.length
    return goesOn && message.readableLength < message.readableHighWaterMark
  }
}

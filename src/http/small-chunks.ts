import type { IncomingMessage } from 'node:http'

/** Maximum size of a chunk that is joined with others, in bytes. */
const smallChunkBytes = 1_024

/** Maximum size of a joined chunk, in bytes. All one-byte chunks of a socket read (up to about 10,000) fit into one. */
const joinedBytes = 16_384

/**
 * Joins small chunks of a body that arrive together. A queued chunk takes about 350 bytes of memory in addition to its
 * content, so one megabyte in chunks of one byte would take 350 MB.
 *
 * Must be called before any part of the body arrives.
 */
export function joinSmallChunks(message: IncomingMessage): void {
  const { push } = message
  let small: Buffer[] = []
  let smallBytes = 0
  const pushJoined = (): boolean => {
    if (small.length === 0 || message.destroyed) return true
    // Copies the bytes, because even a chunk of one byte would keep the whole read buffer in memory.
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
    const canContinue = smallBytes + chunk.length <= joinedBytes || pushJoined()
    if (small.length === 0) setImmediate(pushJoined)
    small.push(chunk)
    smallBytes += chunk.length
    return canContinue && message.readableLength < message.readableHighWaterMark
  }
}

import type { Server } from 'node:net'

export interface ConnectionLimits {
  /** Connections that the server holds at once. An idle one takes about 15 KB and a file descriptor. */
  readonly total: number
  /** Connections from one address, so that one client alone never locks the others out. */
  readonly perAddress: number
}

const defaults: ConnectionLimits = { total: 10_000, perAddress: 5_000 }

/** Bounds the connections of a server; further ones are closed at once. */
export function limitConnections(server: Server, limits = defaults): void {
  const counts = new Map<string, number>()
  server.maxConnections = limits.total
  server.prependListener('connection', socket => {
    const address = socket.remoteAddress ?? ''
    const count = (counts.get(address) ?? 0) + 1
    if (count > limits.perAddress) {
      socket.destroy()
      return
    }
    counts.set(address, count)
    socket.once('close', () => {
      const left = counts.get(address)! - 1
      if (left > 0) counts.set(address, left)
      else counts.delete(address)
    })
  })
}

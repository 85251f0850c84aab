import type { Server } from 'node:net'

export interface ConnectionLimits {
  /** Maximum number of open connections. An idle connection takes about 15 KB and a file descriptor. */
  readonly total: number
  /** Maximum number of open connections per address, so that one client cannot lock out all others. */
  readonly perAddress: number
}

const defaults: ConnectionLimits = { total: 10_000, perAddress: 5_000 }

/** Limits the open connections of a server. Connections above a limit are closed at once. */
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

import { connect } from 'node:tls'

/** Timeout in milliseconds. A handshake takes two round trips. */
const waitMs = 1_000

/** Returns true if a server speaks TLS. It sends only a handshake, which is harmless to any server. */
export function speaksTls({ hostname, port }: URL): Promise<boolean> {
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  return new Promise(resolve => {
    const socket = connect({
      host,
      port: Number(port || 80),
      rejectUnauthorized: false,
    })
    const finish = (isSpoken: boolean) => {
      clearTimeout(timer)
      socket.destroy()
      resolve(isSpoken)
    }
    const timer = setTimeout(() => finish(false), waitMs)
    socket.once('secureConnect', () => finish(true)).once('error', () => finish(false))
  })
}

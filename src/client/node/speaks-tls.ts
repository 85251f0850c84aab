import { connect } from 'node:tls'

/** Timeout of a handshake, which takes two round trips. */
const handshakeTimeoutMs = 1_000

/** Returns true if a server speaks TLS. Sends only a handshake, which is harmless to any server. */
export function speaksTls({ hostname, port }: URL): Promise<boolean> {
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  return new Promise(resolve => {
    const socket = connect({
      host,
      port: Number(port || 80),
      rejectUnauthorized: false,
    })
    const finish = (isTls: boolean) => {
      clearTimeout(timer)
      socket.destroy()
      resolve(isTls)
    }
    const timer = setTimeout(() => finish(false), handshakeTimeoutMs)
    socket.once('secureConnect', () => finish(true)).once('error', () => finish(false))
  })
}

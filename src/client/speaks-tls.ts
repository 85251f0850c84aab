import { connect } from 'node:tls'

/** A handshake takes two round trips. */
const waitMs = 1_000

/** Whether TLS is spoken at an address. Nothing but a handshake is sent, so that it matters to nobody who answers. */
export function speaksTls({ hostname, port }: URL): Promise<boolean> {
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  return new Promise(resolve => {
    const socket = connect({
      host,
      port: Number(port || 80),
      rejectUnauthorized: false,
    })
    const tell = (isSpoken: boolean) => {
      clearTimeout(timer)
      socket.destroy()
      resolve(isSpoken)
    }
    const timer = setTimeout(() => tell(false), waitMs)
    socket.once('secureConnect', () => tell(true)).once('error', () => tell(false))
  })
}

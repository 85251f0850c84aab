import { once, setMaxListeners } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'

/** An identity provider that serves only discovery and keys, which is all a server requests before a sign-in. */
export interface SignInProvider {
  /** Settings of `auth` for a server with API keys, and with sign-in at this provider. */
  readonly auth: { readonly mode: string; readonly anonymousPolicy: string; readonly oidc: object }
  close(): void
}

/** Starts a provider on loopback. Without one, the sign-in routes reject a request before they read its body. */
export async function startSignInProvider(): Promise<SignInProvider> {
  const server = createServer((request, response) => {
    const { pathname: path } = new URL(request.url!, issuer)
    const answer = path === '/.well-known/openid-configuration' ? described(issuer) : { keys: [] }
    response.setHeader('content-type', 'application/json').end(JSON.stringify(answer))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    auth: {
      mode: 'any',
      anonymousPolicy: 'reject',
      oidc: { issuer, audience: 'workbase', client: { clientId: 'workbase' } },
    },
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** @see OpenID Connect Discovery 1.0 section 3 */
function described(issuer: string): object {
  return {
    issuer,
    authorization_endpoint: `${issuer}/auth`,
    token_endpoint: `${issuer}/token`,
    device_authorization_endpoint: `${issuer}/device`,
    jwks_uri: `${issuer}/keys`,
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES256'],
    code_challenge_methods_supported: ['S256'],
  }
}

/** A request whose body is sent manually, in part or completely. */
export interface HeldBody {
  readonly port: number
  /** Method and path. */
  readonly line: string
  readonly token?: string
  /** Length of the complete body in bytes. */
  readonly declaredBytes: number
  /** Sends the body in chunks of this size; otherwise the head declares the length. */
  readonly chunkBytes?: number
  /** Bytes that are sent; the connection then stays open until the server responds or `stop` aborts. */
  readonly sentBytes: number
  readonly stop: AbortSignal
}

const piece = Buffer.alloc(1_000_000, 'x')
const opening = Buffer.from('{"text":"')
const ending = Buffer.from('"}')

/**
 * Sends a JSON body with one long text. Returns the status of the response, or undefined if `stop` aborts first or
 * the server closes the connection without a response.
 */
export function sendHeldBody(held: HeldBody): Promise<number | undefined> {
  const { port, line, token, declaredBytes, chunkBytes, sentBytes, stop } = held
  setMaxListeners(0, stop)
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1')
    let status: number | undefined
    const abort = () => socket.destroy()
    stop.addEventListener('abort', abort)
    socket.on('error', () => {})
    socket.on('close', () => {
      stop.removeEventListener('abort', abort)
      resolve(status)
    })
    socket.once('data', part => {
      status = Number(part.toString('latin1').split(' ')[1])
      socket.destroy()
    })
    const head = [
      `${line} HTTP/1.1`,
      'Host: localhost',
      ...(token ? [`Authorization: Bearer ${token}`] : []),
      'Content-Type: application/json',
      chunkBytes ? 'Transfer-Encoding: chunked' : `Content-Length: ${declaredBytes}`,
    ]
    socket.write(`${head.join('\r\n')}\r\n\r\n`)
    const isWhole = sentBytes === declaredBytes
    let left = sentBytes - opening.length - (isWhole ? ending.length : 0)
    const send = () => {
      while (left > 0 && !socket.destroyed) {
        const next = left < piece.length ? piece.subarray(0, left) : piece
        left -= next.length
        if (!socket.write(framed(next, chunkBytes))) return void socket.once('drain', send)
      }
      if (isWhole) socket.write(framed(ending, chunkBytes))
      if (isWhole && chunkBytes) socket.write('0\r\n\r\n')
    }
    socket.write(framed(opening, chunkBytes))
    send()
  })
}

const frames = new Map<string, Buffer>()

/** Bytes in chunks of a size; as they are without one. @see RFC 9112 section 7.1 */
function framed(bytes: Buffer, chunkBytes: number | undefined): Buffer {
  if (!chunkBytes) return bytes
  const name = `${bytes.length} ${chunkBytes} ${bytes[0]}`
  let frame = frames.get(name)
  if (!frame) {
    const starts = Array.from({ length: Math.ceil(bytes.length / chunkBytes) }, (_, at) => at * chunkBytes)
    const chunks = starts.map(start => bytes.subarray(start, start + chunkBytes))
    frame = Buffer.concat(
      chunks.flatMap(each => [Buffer.from(`${each.length.toString(16)}\r\n`), each, lineEnd]),
    )
    frames.set(name, frame)
  }
  return frame
}

const lineEnd = Buffer.from('\r\n')

/** Counts equal values. */
export function tally<T>(values: Iterable<T>): Map<T, number> {
  const counts = new Map<T, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  return counts
}

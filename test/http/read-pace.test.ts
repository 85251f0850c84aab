import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { paceReads } from '../../src/http/read-pace.ts'

const throwError = (error: unknown) => {
  throw error
}

/** Starts a server that responds with the length of the body, and opens connections to it. */
async function startPacedServer(connections: number) {
  const server = createServer(async (request, response) => {
    let length = 0
    for await (const chunk of request) length += chunk.length
    response.end(String(length))
  })
  paceReads(server, () => 0, 'connection', throwError)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const sockets = Array.from({ length: connections }, () => connect(port, '127.0.0.1'))
  for (const each of sockets) onTestFinished(() => void each.destroy())
  // Node accepts one connection per turn.
  const count = () => new Promise(resolve => server.getConnections((_error, open) => resolve(open)))
  await expect.poll(count).toBe(connections)
  return { server, sockets }
}

const post = (bytes: number) =>
  `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${bytes}\r\n\r\n${'x'.repeat(bytes)}`

async function answersOf(socket: Socket, count: number): Promise<string> {
  let text = ''
  for await (const part of socket) {
    text += part
    if (text.match(/HTTP\/1\.1 200/g)?.length === count && /\r\n\r\n[^H]+$/.test(text)) return text
  }
  return text
}

test('parses large requests on many open connections over several turns of the event loop', async () => {
  const { server, sockets } = await startPacedServer(60)
  let [inTurn, most] = [0, 0]
  server.on('request', () => {
    most = Math.max(most, ++inTurn)
    setImmediate(() => {
      inTurn = 0
    })
  })
  for (const each of sockets) each.write(post(30_000))
  await Promise.all(sockets.map(each => answersOf(each, 1)))
  expect(most).toBeLessThan(10)
})

test('a small request overtakes waiting large ones', async () => {
  const { server, sockets } = await startPacedServer(60)
  const order: string[] = []
  server.on('request', request => order.push(request.method!))
  const [last, ...others] = sockets.toReversed()
  for (const each of others) each.write(post(30_000))
  last!.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  await Promise.all(sockets.map(each => answersOf(each, 1)))
  expect(order.indexOf('GET')).toBeLessThan(30)
})

test('answers all pipelined requests to a slow reader', async () => {
  const answer = 'y'.repeat(200_000)
  const server = createServer((_request, response) => void response.end(answer))
  paceReads(server, () => 0, 'connection', throwError)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void server.close())
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  const count = 400
  for (let sent = 0; sent < count; sent++) {
    socket.write(`GET /${sent} HTTP/1.1\r\nHost: a\r\nX-Filler: ${'z'.repeat(2_000)}\r\n\r\n`)
    if (sent % 50 === 0) await new Promise(resolve => setImmediate(resolve))
  }
  let bytes = 0
  for await (const part of socket) {
    bytes += part.length
    if (bytes > count * answer.length) break
  }
  expect(bytes).toBeGreaterThan(count * answer.length)
})

test('does not buffer an unread body in the process', async () => {
  const server = createServer(() => {})
  paceReads(server, () => 0, 'connection', throwError)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void server.close())
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  const requested = once(server, 'request') as Promise<[IncomingMessage]>
  socket.write(post(20_000_000))
  const [request] = await requested
  await new Promise(resolve => setTimeout(resolve, 500))
  expect(request.readableLength).toBeLessThan(200_000)
  let length = 0
  for await (const chunk of request) length += chunk.length
  expect(length).toBe(20_000_000)
})

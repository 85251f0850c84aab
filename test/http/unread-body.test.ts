import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { UnreadBodies } from '../../src/http/unread-bodies.ts'

const bodyBytes = 3_000_000
const head = `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${bodyBytes}\r\n\r\n`

/**
 * Starts a server that passes each request to `answer` without reading its body, and returns a function that
 * connects to it.
 */
async function startServer(answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const bodies = new UnreadBodies(() => 0)
  const server = createServer((request, response) => {
    bodies.watch(request, response)
    answer(request, response)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void server.close())
  return (): Socket => {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {})
    onTestFinished(() => void socket.destroy())
    return socket
  }
}

test('clients that reset their connections do not use up the slots of clients that continue to send', async () => {
  let isFlood = true
  let answered = 0
  const open = await startServer((request, response) => {
    const end = () => {
      response.writeHead(401).end()
      answered++
    }
    if (isFlood) request.once('close', () => setImmediate(end))
    else end()
  })
  for (let at = 0; at < 20; at++) {
    const socket = open()
    socket.write(head + 'x'.repeat(1_000), () => setTimeout(() => socket.resetAndDestroy(), 20))
  }
  await expect.poll(() => answered).toBe(20)
  isFlood = false
  const socket = open()
  socket.write(head)
  await once(socket, 'data')
  // Longer than the server waits for an unread body.
  await new Promise(resolve => setTimeout(resolve, 2_500))
  socket.write(`${'x'.repeat(bodyBytes)}${head}`)
  const [next] = (await once(socket, 'data')) as [Buffer]
  expect(String(next)).toContain('HTTP/1.1 401')
})

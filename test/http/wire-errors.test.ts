import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { installWireErrors } from '../../src/http/wire-errors.ts'
import { createTestApp } from './test-app.ts'

test('closes the connection for a CONNECT request after a response that is not read', async () => {
  let pending: ServerResponse | undefined
  const server = createServer(async (_request, response) => {
    pending = response
    await nextTurn()
    response.setTimeout(100).end('x'.repeat(50_000_000))
  })
  installWireErrors(server, () => createTestApp().app)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void server.close())
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {})
  onTestFinished(() => void socket.destroy())
  socket.pause()
  socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\nCONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n')
  await expect.poll(() => pending?.destroyed, { timeout: 3_000 }).toBe(true)
})

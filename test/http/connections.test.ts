import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { limitConnections } from '../../src/http/connections.ts'

/**
 * Starts a server that sends a greeting, and returns a function that connects from an address and returns the socket
 * if it receives the greeting.
 */
async function startGreetingServer(limits: { total: number; perAddress: number }) {
  const server = createServer(socket => socket.on('error', () => {}).write('welcome'))
  limitConnections(server, limits)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  onTestFinished(() => void server.close())
  return async (localAddress: string): Promise<Socket | undefined> => {
    const socket = connect({ host: '127.0.0.1', port, localAddress }).on('error', () => {})
    onTestFinished(() => void socket.destroy())
    return Promise.race([
      once(socket, 'data').then(() => socket),
      once(socket, 'close').then(() => undefined),
    ])
  }
}

test('limits the connections of an address, which can open new ones after it closes some', async () => {
  const open = await startGreetingServer({ total: 5, perAddress: 2 })
  const [first] = [await open('127.0.0.1'), await open('127.0.0.1')]
  expect(await open('127.0.0.1')).toBeUndefined()
  expect(await open('127.0.0.2')).toBeDefined()
  first!.destroy()
  await expect.poll(() => open('127.0.0.1')).toBeDefined()
})

test('closes connections over the limit of the server, regardless of their address', async () => {
  const open = await startGreetingServer({ total: 2, perAddress: 2 })
  expect(await open('127.0.0.1')).toBeDefined()
  expect(await open('127.0.0.2')).toBeDefined()
  expect(await open('127.0.0.3')).toBeUndefined()
})

import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { limitConnections } from '../../src/http/connections.ts'

/** A server that greets, and a function that connects to it from an address and returns the socket if it is greeted. */
async function greeter(limits: { total: number; perAddress: number }) {
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

test('one address gets its share of the connections, and what it closes it can open again', async () => {
  const open = await greeter({ total: 5, perAddress: 2 })
  const [first] = [await open('127.0.0.1'), await open('127.0.0.1')]
  expect(await open('127.0.0.1')).toBeUndefined()
  expect(await open('127.0.0.2')).toBeDefined()
  first!.destroy()
  await expect.poll(() => open('127.0.0.1')).toBeDefined()
})

test('the server closes connections over its own limit, whatever their address', async () => {
  const open = await greeter({ total: 2, perAddress: 2 })
  expect(await open('127.0.0.1')).toBeDefined()
  expect(await open('127.0.0.2')).toBeDefined()
  expect(await open('127.0.0.3')).toBeUndefined()
})

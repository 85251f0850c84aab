import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { type Network, type OutboundRequest, openNetwork } from '../../src/models/outbound.ts'

async function listen(answer: RequestListener): Promise<{ server: Server; url: URL }> {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return { server, url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`) }
}

function open(): Network {
  const network = openNetwork()
  onTestFinished(() => network.close())
  return network
}

const request: OutboundRequest = { method: 'POST', headers: {}, body: '{}', signal: null }

test('requests to one host share eight connections, which are kept for the next', async () => {
  let connections = 0
  const { server, url } = await listen((_, response) => setImmediate(() => response.end('{}')))
  server.on('connection', () => connections++)
  const { send } = open()
  const ask = async () => {
    for await (const _ of (await send(url, request)).body ?? []);
  }
  await Promise.all(Array.from({ length: 40 }, ask))
  for (let at = 0; at < 5; at++) await ask()
  expect(connections).toBeGreaterThan(0)
  expect(connections).toBeLessThanOrEqual(8)
})

test('a redirect is an answer, and is not followed', async () => {
  const asked: (string | undefined)[] = []
  const { url } = await listen((incoming, response) => {
    asked.push(incoming.url)
    response.writeHead(307, { location: '/elsewhere' }).end()
  })
  const { status, headers } = await open().send(url, request)
  expect([status, headers.get('location')]).toEqual([307, '/elsewhere'])
  expect(asked).toEqual(['/'])
})

test('closing fails what is under way, and lets go of what was kept', async () => {
  const { server, url } = await listen(() => {})
  const network = open()
  const asked = network.send(url, request).then(
    () => 'answered',
    () => 'failed',
  )
  await once(server, 'request')
  const [gone] = await Promise.all([
    new Promise(resolve => server.once('close', resolve)),
    network.close(),
    server.close(),
  ])
  expect(gone).toBeUndefined()
  expect(await asked).toBe('failed')
  await expect(network.send(url, request)).rejects.toThrow()
})

test('closing what was never used opens nothing', async () => {
  await expect(openNetwork().close()).resolves.toBeUndefined()
})

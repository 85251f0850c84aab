import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { discardBody } from '../../src/base/read-body.ts'
import { EndpointGuard, endpointRefusalIn } from '../../src/models/endpoint-guard.ts'
import {
  type OutboundNetwork,
  type OutboundRequest,
  openOutboundNetwork,
  type ResolveHost,
} from '../../src/models/outbound.ts'

async function listen(
  answer: RequestListener,
  host = '127.0.0.1',
  onPort = 0,
): Promise<{ server: Server; url: URL; port: number }> {
  const server = createServer(answer).listen(onPort, host)
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  return { server, port, url: new URL(`http://${host}:${port}/`) }
}

const lenient = new EndpointGuard({ blocksPrivate: false, exceptions: [] })

function open(guard = lenient, resolve?: ResolveHost): OutboundNetwork {
  const network = openOutboundNetwork({ guard, resolve })
  onTestFinished(() => network.close())
  return network
}

const request: OutboundRequest = { method: 'POST', headers: {}, body: '{}', signal: null }

test('an answer that is left before it is read gives its connection back', async () => {
  const { server, url } = await listen((_, response) => void response.write('begun'))
  const { send } = open()
  const gone: Promise<unknown>[] = []
  server.on('connection', socket => {
    socket.on('error', () => {})
    gone.push(new Promise(resolve => socket.on('close', resolve)))
  })
  for (let asked = 0; asked < 3; asked++) await discardBody((await send(url, request)).body)
  expect(gone.length).toBeGreaterThan(0)
  await Promise.all(gone)
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
  await expect(openOutboundNetwork({ guard: lenient }).close()).resolves.toBeUndefined()
})

describe('what the guard refuses', () => {
  const strict = (...exceptions: string[]) => new EndpointGuard({ blocksPrivate: true, exceptions })
  /** Gives the answers in turn, the last one for ever. */
  const answering = (...answers: string[][]) =>
    vi.fn<ResolveHost>(async () => (answers.length > 1 ? answers.shift()! : answers[0]!))
  const counting = () => vi.fn<RequestListener>((_, response) => void response.end('{}'))

  test.each(['http://127.0.0.1', 'http://0x7f000001', 'http://2130706433', 'http://[::ffff:127.0.0.1]'])(
    'is not dialled, when %s is an address',
    async host => {
      const asked = counting()
      const { port } = await listen(asked)
      const { send, fetch } = open(strict())
      for (const ask of [() => send(new URL(`${host}:${port}`), request), () => fetch(`${host}:${port}`)]) {
        const error = await ask().catch((thrown: unknown) => thrown)
        expect(endpointRefusalIn(error)?.message).toMatch(/ resolves to a private address$/)
      }
      expect(asked).not.toHaveBeenCalled()
    },
  )

  test('is not dialled, when one address of a name is refused', async () => {
    const asked = counting()
    const { port } = await listen(asked, '127.0.0.2')
    const { send } = open(strict('127.0.0.2'), answering(['127.0.0.2', '127.0.0.1']))
    const error = await send(new URL(`http://models.example:${port}`), request).catch(
      (thrown: unknown) => thrown,
    )
    expect(endpointRefusalIn(error)?.hint).toContain(`"models.example:${port}" to runtime.allowedEndpoints`)
    expect(asked).not.toHaveBeenCalled()
  })

  test('metadata services are not dialled, whatever the operator allows', async () => {
    const { send } = open(
      new EndpointGuard({ blocksPrivate: false, exceptions: ['169.254.169.254', 'a.example'] }),
    )
    for (const url of ['http://169.254.169.254/', 'http://[fd00:ec2::254]/', 'http://[::ffff:a9fe:a9fe]/']) {
      const error = await send(new URL(url), request).catch((thrown: unknown) => thrown)
      expect(endpointRefusalIn(error)?.message).toMatch(/metadata service$/)
    }
  })

  test('a name that is rebound after the check leads to the address that was checked', async () => {
    const inner = counting()
    const { port } = await listen((_, response) => response.end('checked'), '127.0.0.2')
    await listen(inner, '127.0.0.1', port)
    const resolve = answering(['127.0.0.2'], ['127.0.0.1'])
    const { fetch } = open(strict('127.0.0.2'), resolve)
    const url = `http://rebound.example:${port}/`
    const first = await fetch(url, { headers: { connection: 'close' } })
    expect(await first.text()).toBe('checked')
    expect(resolve).toHaveBeenCalledTimes(1)
    const error = await fetch(url).catch((thrown: unknown) => thrown)
    expect(endpointRefusalIn(error)?.message).toBe(
      'rebound.example has no address, or an address that the runtime may not call',
    )
    expect(endpointRefusalIn(error)?.cause).toMatchObject({
      message: 'rebound.example resolves to a private address',
    })
    expect(inner).not.toHaveBeenCalled()
  })

  test('the second address is tried when the first does not answer', async () => {
    const { port } = await listen((_, response) => response.end('here'), '127.0.0.3')
    const { fetch } = open(lenient, answering(['127.0.0.2', '127.0.0.3']))
    expect(await (await fetch(`http://models.example:${port}/`)).text()).toBe('here')
  })

  test('a name that does not resolve fails without a refusal', async () => {
    const { send } = open(strict(), async () => Promise.reject(new Error('ENOTFOUND')))
    const error = await send(new URL('http://nowhere.example/'), request).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(Error)
    expect(endpointRefusalIn(error)).toBeUndefined()
  })
})

test('a server by TLS is asked for the name, not for the address that is dialled', async () => {
  const asked: string[] = []
  const server = createTlsServer({
    SNICallback(name, done) {
      asked.push(name)
      done(new Error('no certificate'))
    },
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const { send } = open(lenient, async () => ['127.0.0.1'])
  await expect(send(new URL(`https://models.example:${port}/`), request)).rejects.toThrow()
  expect(asked).toEqual(['models.example'])
})

test('proxy variables change nothing', async () => {
  const proxied = vi.fn<RequestListener>((_, response) => void response.end())
  const proxy = await listen(proxied)
  for (const name of ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'ALL_PROXY'])
    vi.stubEnv(name, proxy.url.href)
  vi.stubEnv('NO_PROXY', '')
  onTestFinished(() => void vi.unstubAllEnvs())
  const { url } = await listen((_, response) => response.end('direct'))
  expect(await (await open().fetch(url)).text()).toBe('direct')
  expect(proxied).not.toHaveBeenCalled()
})

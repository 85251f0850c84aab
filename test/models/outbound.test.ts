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

test('releases the connection of a response that is not read', async () => {
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

test('returns a redirect without following it', async () => {
  const asked: (string | undefined)[] = []
  const { url } = await listen((incoming, response) => {
    asked.push(incoming.url)
    response.writeHead(307, { location: '/elsewhere' }).end()
  })
  const { status, headers } = await open().send(url, request)
  expect([status, headers.get('location')]).toEqual([307, '/elsewhere'])
  expect(asked).toEqual(['/'])
})

test('closing aborts pending requests and closes idle connections', async () => {
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

test('closing an unused client opens nothing', async () => {
  await expect(openOutboundNetwork({ guard: lenient }).close()).resolves.toBeUndefined()
})

describe('an address that the guard rejects', () => {
  const strict = (...exceptions: string[]) => new EndpointGuard({ blocksPrivate: true, exceptions })
  /** Returns the answers in turn, and repeats the last one. */
  const answering = (...answers: string[][]) =>
    vi.fn<ResolveHost>(async () => (answers.length > 1 ? answers.shift()! : answers[0]!))
  const counting = () => vi.fn<RequestListener>((_, response) => void response.end('{}'))

  test.each(['http://127.0.0.1', 'http://0x7f000001', 'http://2130706433', 'http://[::ffff:127.0.0.1]'])(
    'is not contacted if %s is the address',
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

  test('is not contacted if one address of a name is rejected', async () => {
    const asked = counting()
    const { port } = await listen(asked, '127.0.0.2')
    const { send } = open(strict('127.0.0.2'), answering(['127.0.0.2', '127.0.0.1']))
    const error = await send(new URL(`http://models.example:${port}`), request).catch(
      (thrown: unknown) => thrown,
    )
    expect(endpointRefusalIn(error)?.hint).toContain(`"models.example:${port}" to runtime.allowedEndpoints`)
    expect(asked).not.toHaveBeenCalled()
  })

  test('is not contacted if it is a metadata service, regardless of exceptions', async () => {
    const { send } = open(
      new EndpointGuard({ blocksPrivate: false, exceptions: ['169.254.169.254', 'a.example'] }),
    )
    for (const url of ['http://169.254.169.254/', 'http://[fd00:ec2::254]/', 'http://[::ffff:a9fe:a9fe]/']) {
      const error = await send(new URL(url), request).catch((thrown: unknown) => thrown)
      expect(endpointRefusalIn(error)?.message).toMatch(/metadata service$/)
    }
  })

  test('a name is not resolved again after the check', async () => {
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

  test('uses the second address if the first does not respond', async () => {
    const { port } = await listen((_, response) => response.end('here'), '127.0.0.3')
    const { fetch } = open(lenient, answering(['127.0.0.2', '127.0.0.3']))
    expect(await (await fetch(`http://models.example:${port}/`)).text()).toBe('here')
  })

  test('a name that does not resolve fails without a guard error', async () => {
    const { send } = open(strict(), async () => Promise.reject(new Error('ENOTFOUND')))
    const error = await send(new URL('http://nowhere.example/'), request).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(Error)
    expect(endpointRefusalIn(error)).toBeUndefined()
  })
})

test('TLS uses the name, not the resolved address', async () => {
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

test('ignores proxy variables', async () => {
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

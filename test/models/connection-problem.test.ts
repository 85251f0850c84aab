import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { expect, onTestFinished, test } from 'vitest'
import { EndpointGuard } from '../../src/models/endpoint-guard.ts'
import { openOutboundNetwork } from '../../src/models/outbound.ts'
import { connectionProblemIn } from '../../src/models/provider/connection-problem.ts'
import { listenOnLoopback } from '../fakes/listen-on-loopback.ts'

const tls = (name: string) => readFileSync(`${import.meta.dirname}/../fixtures/tls/${name}`)

async function hostOf(server: Parameters<typeof listenOnLoopback>[0]): Promise<string> {
  const { host, close } = await listenOnLoopback(server)
  onTestFinished(close)
  return host
}

/** Returns the problem of a request to a URL; names resolve as given. */
async function problemOf(url: string, code = 'ENOTFOUND') {
  const network = openOutboundNetwork({
    guard: new EndpointGuard({ blocksPrivate: false, exceptions: [] }),
    resolve: async () => {
      throw Object.assign(new Error('no address'), { code })
    },
  })
  onTestFinished(() => network.close())
  const request = { method: 'GET', headers: {}, body: null, signal: null } as const
  return network.send(new URL(url), request).then(
    () => undefined,
    (error: unknown) => connectionProblemIn(error),
  )
}

test('recognizes a refused connection', async () => {
  const server = createServer()
  const { host, close } = await listenOnLoopback(server)
  await close()
  expect(await problemOf(`http://${host}`)).toMatchObject({
    reason: expect.stringContaining('refused'),
    hint: expect.stringContaining('Start the model server'),
  })
})

test('recognizes a connection that is closed', async () => {
  const host = await hostOf(createServer(({ socket }) => socket.destroy()))
  expect((await problemOf(`http://${host}`))?.reason).toContain('closed')
})

test('recognizes a certificate that is not trusted', async () => {
  const secure = createSecureServer({ key: tls('server-key.pem'), cert: tls('server.pem') })
  expect(await problemOf(`https://${await hostOf(secure as never)}`)).toMatchObject({
    reason: expect.stringContaining('certificate is not trusted'),
    hint: expect.stringContaining('NODE_EXTRA_CA_CERTS'),
  })
})

test('recognizes a server without TLS', async () => {
  expect((await problemOf(`https://${await hostOf(createServer())}`))?.reason).toContain('TLS')
})

test.each([
  ['ENOTFOUND', 'has no address'],
  ['EAI_AGAIN', 'could not be resolved'],
])('recognizes a name that does not resolve: %s', async (code, words) => {
  expect((await problemOf('http://models.example.test', code))?.reason).toContain(words)
})

test('ignores other errors, also with a circular cause', () => {
  const error = new Error('other')
  error.cause = error
  expect(connectionProblemIn(error)).toBeUndefined()
})

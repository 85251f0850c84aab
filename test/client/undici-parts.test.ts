import { readdirSync, readFileSync } from 'node:fs'
import { createSecureServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openNetwork } from '../../src/client/node/transport.ts'

const pem = (name: string) => readFileSync(`test/fixtures/tls/${name}.pem`, 'utf8')
const folder = 'node_modules/undici/lib'

test('undici loads HTTP/2, which is not part of the build, only for connections that negotiated it', () => {
  const users = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    name => name.endsWith('.js') && readFileSync(join(folder, name), 'utf8').includes('client-h2'),
  )
  expect(users).toEqual([join('dispatcher', 'client.js')])
  const client = readFileSync(join(folder, users[0]!), 'utf8')
  expect(client.match(/connectH2\(/g)).toHaveLength(1)
  expect(client).toMatch(/alpnProtocol === 'h2'[^}]*connectH2\(/)
})

test('never negotiates HTTP/2, even with a server that prefers it', async () => {
  const versions: string[] = []
  const server = createSecureServer(
    { key: pem('server-key'), cert: pem('server'), allowHTTP1: true },
    (request, response) => {
      versions.push(request.httpVersion)
      response.end('{}')
    },
  )
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const { fetch, close } = openNetwork({ certificate: pem('server') + pem('authority') })
  onTestFinished(close)
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/`
  expect(await (await fetch(url, { method: 'GET', headers: {} })).text()).toBe('{}')
  expect(versions).toEqual(['1.1'])
})

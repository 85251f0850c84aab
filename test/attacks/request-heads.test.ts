import { connect } from 'node:net'
import { resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { randomNumbers } from '../../src/base/random-numbers.ts'
import { checkHead, exchangeBytes, responsesIn } from '../harness/request-heads.ts'
import { type Serving, serve, spawnServe } from '../wire/harness.ts'

let serving: Serving
let port: number
beforeAll(async () => {
  serving = await serve()
  port = Number(new URL(serving.url).port)
})
afterAll(() => serving.stop())

async function expectAlive(): Promise<void> {
  expect((await fetch(`${serving.url}/healthz`)).status).toBe(200)
}

describe('request heads that break URL parsers or Node', () => {
  // Node 24 parses the last one.
  const last = ['xn--zzzzzz'].filter(host => !URL.canParse(`http://${host}`))
  const hosts = ['a:65536', '1.2.3.256', '4294967296', '08', ...last]
  const targets = ['/./', '/%2e', '/\\', '/{', '/healthz']
  test.each(hosts.flatMap(host => targets.map(target => [host, target])))(
    'Host %s with target %s gets 400 with an error in JSON',
    async (host, target) => {
      const bytes = Buffer.from(`GET ${target} HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
      const [response] = responsesIn(await exchangeBytes(port, bytes), 'GET')
      expect(response!.status).toBe(400)
      expect(JSON.parse(response!.body).error.code).toBe('validation_error')
      await expectAlive()
    },
  )

  test('a tunnel whose client resets the connection leaves the process running', async () => {
    const bytes = Buffer.from('CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n')
    for (let round = 0; round < 50; round++) await exchangeBytes(port, bytes, { reset: true })
    await expectAlive()
  })

  test('an endless request head is cut off without blocking other requests', async () => {
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    socket.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ')
    await expectAlive()
    socket.destroy()
  })
})

test('an exception outside any request is logged, and the server keeps answering', async () => {
  const preload = resolve('test/fixtures/preload/throw-on-signal.mjs')
  const failing = await spawnServe({ env: { NODE_OPTIONS: `--import=${preload}` } })
  let log = ''
  failing.process.stdout!.on('data', part => {
    log += part
  })
  failing.process.kill('SIGUSR2')
  await expect.poll(() => log).toContain('thrown outside any request')
  expect(log).toContain('rejected outside any request')
  expect((await fetch(`${failing.url}/healthz`)).status).toBe(200)
  expect(await failing.stop()).toBe(0)
})

test('2,000 generated request heads get HTTP responses, and errors in JSON [security rule 19]', async () => {
  const random = randomNumbers(20_261_123)
  const statuses = new Map<number | undefined, number>()
  for (let round = 0; round < 100; round++) {
    const answered = await Promise.all(Array.from({ length: 20 }, () => checkHead(port, random)))
    for (const status of answered) statuses.set(status, (statuses.get(status) ?? 0) + 1)
  }
  await expectAlive()
  // The heads get past the parser: some are valid, some fail the head check, and some are rejected by routes.
  for (const status of [200, 400, 403, 404]) expect(statuses.get(status) ?? 0).toBeGreaterThan(3)
})

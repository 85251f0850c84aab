import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { listen } from '../../src/http/listen.ts'
import { exchangeBytes, responsesIn } from '../harness/request-heads.ts'
import { createTestApp } from './test-app.ts'

test('unread responses count against the memory of their caller until the client disconnects', async () => {
  const text = 'x'.repeat(20_000_000)
  const bodyMemory = { totalBytes: 64_000_000, perCallerBytes: 32_000_000 }
  const testApp = createTestApp({
    notes: { page: () => ({ status: 200, body: text }) },
    settings: { bodyMemory },
  })
  const listening = await listen(testApp.app, { host: '127.0.0.1', port: 0 })
  onTestFinished(() => void listening.close(0))
  const socket = connect(listening.port, '127.0.0.1').on('error', () => {})
  socket.write('GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await once(socket, 'readable')
  const refused = await fetch(`${listening.url}/page`)
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1'])
  socket.destroy()
  await expect.poll(async () => (await fetch(`${listening.url}/page`)).status).toBe(200)
})

describe('a connection with pipelined requests', () => {
  const head = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n'

  test('receives its responses in order', async () => {
    const listening = await listen(createTestApp().app, { host: '127.0.0.1', port: 0 })
    onTestFinished(() => void listening.close(0))
    const ids = Array.from({ length: 16 }, (_, at) => `request-${at}`)
    const requests = ids.map(id => head.replace('\r\n\r\n', `\r\nX-Request-Id: ${id}\r\n\r\n`))
    const bytes = await exchangeBytes(listening.port, Buffer.from(requests.join('')))
    expect(responsesIn(bytes, 'GET').map(({ headers }) => headers.get('x-request-id'))).toEqual(ids)
  })

  test('is closed after more than 16 requests, regardless of the size of their responses', async () => {
    const handled = vi.fn()
    const page = () => {
      handled()
      return { status: 200, body: 'x'.repeat(100_000) } as const
    }
    const listening = await listen(createTestApp({ notes: { page } }).app, { host: '127.0.0.1', port: 0 })
    onTestFinished(() => void listening.close(0))
    await exchangeBytes(listening.port, Buffer.from(head.replace('/healthz', '/page').repeat(1_000)))
    expect(handled.mock.calls.length).toBeLessThanOrEqual(16)
    expect((await fetch(`${listening.url}/healthz`)).status).toBe(200)
  })
})

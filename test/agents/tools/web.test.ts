import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { tavilyFake } from '../../fakes/tavily.ts'
import { TestClock, waitUntil } from '../../harness/runtime.ts'
import { setUpTools } from '../../harness/tools.ts'

type Answer = (request: IncomingMessage, response: ServerResponse) => void

/** Starts a web page on loopback, and creates the tool that reads it. */
async function startPage(answer: Answer, { isAllowed = true, clock = new TestClock() } = {}) {
  const received: { method: string; headers: IncomingMessage['headers']; body: string }[] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const part of request.setEncoding('utf8')) body += part
    received.push({ method: request.method!, headers: request.headers, body })
    answer(request, response)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const { run } = await setUpTools({
    clock,
    config: {
      runtime: { allowedEndpoints: isAllowed ? [host] : [] },
      chat: { tools: { fetch: { enabled: true, timeoutMs: 1_000, maxResponseBytes: 1_024 } } },
    },
    environment: { OLLAMA_BASE_URL: `http://${host}/v1` },
  })
  const fetched = (args: object = {}) => run('native:fetch', { url: `http://${host}/page`, ...args })
  return { host, received, fetched, clock }
}

const respondWith =
  (text: string, type = 'text/plain', status = 200): Answer =>
  (_, response) =>
    void response.writeHead(status, { 'content-type': type }).end(text)

test('a page is read and an API is called with the headers and body of the model', async () => {
  const { fetched, received } = await startPage(respondWith('{"ok":true}', 'application/json; charset=utf-8'))
  expect(await fetched()).toEqual({ content: '{"ok":true}', outcome: 'success' })
  const headers = { 'X-Trace': '5', 'Content-Type': 'application/json' }
  await fetched({ method: 'POST', body: '{"a":1}', headers })
  expect(received.map(({ method, body }) => [method, body])).toEqual([
    ['GET', ''],
    ['POST', '{"a":1}'],
  ])
  expect(received[1]!.headers).toMatchObject({ 'x-trace': '5', 'content-type': 'application/json' })
  for (const { headers } of received) expect(headers).not.toHaveProperty('authorization')
})

test('a private address is rejected, even without authentication and if the runtime calls a model there', async () => {
  const { fetched, received } = await startPage(respondWith('inside'), { isAllowed: false })
  const { outcome, content } = await fetched()
  expect([outcome, content]).toEqual(['failure', expect.stringContaining('resolves to a private address')])
  expect(received).toEqual([])
})

test('a redirect is not followed, and its target is reported', async () => {
  const { fetched, host, received } = await startPage((_, response) => {
    response.writeHead(302, { location: '/elsewhere?x=1' }).end()
  })
  expect((await fetched()).content).toBe(
    `Error: ${host} redirects to http://${host}/elsewhere?x=1; to follow the redirect, call that address`,
  )
  expect(received).toHaveLength(1)
})

test.each<[string, Answer, string]>([
  [
    'another type',
    respondWith('%PDF', 'application/pdf'),
    'the response has the type application/pdf; only text',
  ],
  ['no type', (_, response) => void response.writeHead(200).end('x'), 'the response has no content type'],
  ['too many bytes', respondWith('x'.repeat(1_025)), 'more than 1024 bytes'],
  ['an error status', respondWith('no such page', 'text/html', 404), 'status 404\n\nno such page'],
  ['a dropped connection', request => void request.socket.destroy(), 'cannot be reached'],
])('a response with %s is a failure', async (_, answer, words) => {
  const { outcome, content } = await (await startPage(answer)).fetched()
  expect([outcome, content]).toEqual(['failure', expect.stringMatching(/^Error: /)])
  expect(content).toContain(words)
})

test('a server that does not respond times out after the configured time', async () => {
  const { fetched, received, clock, host } = await startPage(() => {})
  const pending = fetched()
  await waitUntil(() => received.length === 1)
  clock.advance(1_000)
  expect((await pending).content).toBe(`Error: ${host} did not respond within 1000 ms`)
})

test.each<[string, object, string]>([
  ['a cookie', { headers: { Cookie: 'a=b' } }, 'headers: Cookie may not be set'],
  ['a key', { headers: { authorization: 'Bearer x' } }, 'headers: authorization may not be set'],
  ['another host', { headers: { Host: 'internal' } }, 'headers: Host may not be set'],
  ['an origin', { headers: { 'Sec-Fetch-Site': 'same-origin' } }, 'may not be set'],
  ['a header with a line break', { headers: { a: 'b\r\nc: d' } }, 'is not a valid header'],
  ['a body without POST', { body: 'x' }, 'body: allowed only with POST'],
  ['another method', { method: 'DELETE' }, 'method: '],
  ['user information', { url: 'http://a:b@example.com/' }, 'url: must not contain a user name or a password'],
  ['another scheme', { url: 'file:///etc/passwd' }, 'url: '],
])('%s is rejected before any connection is opened', async (_, args, words) => {
  const { fetched, received } = await startPage(respondWith('x'))
  const { outcome, content } = await fetched(args)
  expect([outcome, content, received]).toEqual(['failure', expect.stringContaining(words), []])
})

function searching(key = 'tvly-key', apiKeyRef = 'env:SEARCH_KEY') {
  const fake = tavilyFake('tvly-key', ['Herons', 'Owls', 'Gulls'])
  const webSearch = { enabled: true, provider: 'tavily', apiKeyRef, maxResults: 2 }
  const stage = setUpTools({
    outbound: fake.outbound,
    environment: { SEARCH_KEY: key },
    config: { chat: { tools: { webSearch } } },
  })
  return { fake, search: async (args: object) => (await stage).run('native:web_search', args) }
}

test("a web search uses the operator's key, and the configured number of results", async () => {
  const { fake, search } = searching()
  expect(await search({ query: 'birds' })).toEqual({
    outcome: 'success',
    content: '1. Herons\nhttps://example.com/0\nabout Herons\n\n2. Owls\nhttps://example.com/1\nabout Owls',
  })
  expect((await search({ query: 'birds', limit: 1 })).content).not.toContain('Owls')
  expect(fake.received[0]).toEqual({
    url: 'https://api.tavily.com/search',
    authorization: 'Bearer tvly-key',
    body: { query: 'birds', max_results: 2 },
  })
  expect((await search({ query: 'birds', limit: 3 })).outcome).toBe('failure')
})

test('a rejected or missing key is a failure that does not show the key', async () => {
  const refused = await searching('tvly-other').search({ query: 'birds' })
  expect(refused.content).toBe('Error: the web search failed with status 401')
  const missing = await searching('tvly-key', 'env:NO_SUCH').search({ query: 'birds' })
  expect(missing.content).toMatch(/^Error: the web search cannot use its credential: env:NO_SUCH/)
})

test('a rejected search releases its connection', async () => {
  let isLeft = false
  const cancel = () => {
    isLeft = true
  }
  const stage = await setUpTools({
    outbound: async () => new Response(new ReadableStream({ cancel }), { status: 429 }),
    environment: { SEARCH_KEY: 'tvly-key' },
    config: {
      chat: { tools: { webSearch: { enabled: true, provider: 'tavily', apiKeyRef: 'env:SEARCH_KEY' } } },
    },
  })
  expect(await stage.run('native:web_search', { query: 'birds' })).toMatchObject({ outcome: 'failure' })
  expect(isLeft).toBe(true)
})

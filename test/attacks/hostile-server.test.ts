import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { inspect } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openClient } from '../../src/client/client.ts'
import { openNetwork } from '../../src/client/node/transport.ts'
import { Unreachable } from '../../src/client/unreachable.ts'
import { workspaces } from '../../src/contract/workspaces.ts'
import { createSandbox } from '../commands/sandbox.ts'
import { runInFakeTerminal } from '../commands/terminal.ts'

const csi = '\x1b]0;owned\x07\x1b[2J\x9b31mred\u202e'
const page = (items: unknown[], nextCursor: string | null = null) => ({ items, nextCursor })
const uuid = (digit: string) => `${digit.repeat(8)}-1111-4111-8111-111111111111`
const workspace = { workspaceId: uuid('1'), name: 'w', kind: csi, url: csi, credentials: { [csi]: csi } }
const base = { workspaceId: uuid('1'), knowledgeBaseId: `2${csi}`, name: 'k', description: csi, status: csi }
const document = {
  workspaceId: uuid('1'),
  knowledgeBaseId: uuid('2'),
  documentId: `3${csi}`,
  sourceDocId: 'd',
  sourceFilename: `${csi}.md`,
  status: csi,
  metadata: { title: `title${csi}`, [csi]: csi },
  updatedAt: csi,
}
const hit = {
  id: `h${csi}`,
  score: 1,
  payload: { chunkText: `passage ${csi}`, documentId: document.documentId },
}

/** Returns a response with terminal control sequences in every displayed field. */
function responseWithSequences(path: string): unknown {
  if (path.endsWith('/search'))
    return [
      { ...hit, coverage: csi },
      { ...hit, coverage: 1e12, payload: { chunkText: csi } },
    ]
  if (path.includes('/chunks')) return [{ id: csi, chunkIndex: 0, text: csi, payload: {} }]
  if (/\/documents(\?|$)/.test(path)) return page([document])
  if (path.includes('/documents/')) return document
  if (/\/knowledge-bases(\?|$)/.test(path)) return page([base])
  if (path.includes('/knowledge-bases/')) return { ...base, lexical: {} }
  return path.startsWith('/api/v1/workspaces/') ? workspace : page([workspace])
}

/** Starts a server with the given responses, and returns its address. */
async function startHostileServer(answer: (path: string, response: ServerResponse) => void): Promise<string> {
  const server = createServer((request, response) => answer(request.url!, response))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const respondWith = (type: string, body: string) => (_path: string, response: ServerResponse) =>
  void response.writeHead(200, { 'content-type': type }).end(body)

describe('a client of a hostile server', () => {
  const listOf = async (url: string) => {
    const names: string[] = []
    const client = openClient({ baseUrl: url, fetch: openNetwork().fetch })
    for await (const { name } of client.items(workspaces.list, { query: {} })) names.push(name)
    return names
  }

  test('stops reading an endless response', async () => {
    const part = Buffer.alloc(1 << 20, 0x20)
    const url = await startHostileServer((_path, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      const more = () => {
        while (!response.destroyed && response.write(part));
      }
      response.on('drain', more)
      more()
    })
    await expect(listOf(url)).rejects.toThrow(/sent more than/)
  })

  test.each([1, 7])('stops at a cycle of %i pages', async length => {
    let requests = 0
    const url = await startHostileServer((_path, response) => {
      const body = JSON.stringify(page([{ name: 'again' }], `c${requests++ % length}`))
      response.writeHead(200, { 'content-type': 'application/json' }).end(body)
    })
    await expect(listOf(url)).rejects.toThrow(/same page of a list/)
    expect(requests).toBeLessThan(8 * length + 8)
  })

  test.each([
    ['null', 'application/json', 'null'],
    ['a number', 'application/json', '7'],
    ['an object instead of a list', 'application/json', '{"items":{}}'],
    ['truncated JSON', 'application/json', '{"items":[{'],
    ['brackets', 'application/json', '['.repeat(200_000)],
    ['a web page', 'text/html', '<html>'],
    ['nothing', 'application/json', ''],
  ])('reports that %s is not a response of a runtime', async (_what, type, body) => {
    const url = await startHostileServer(respondWith(type, body))
    await expect(listOf(url)).rejects.toBeInstanceOf(Unreachable)
  })

  test('does not repeat a truncated response, which could contain a token', async () => {
    const url = await startHostileServer(respondWith('application/json', '{"token":secretive}'))
    await expect(listOf(url)).rejects.toSatisfy(error => !inspect(error).includes('secret'))
  })

  test.each([
    ['https://user:secret@other.example/login?code=secret#secret', 'https://other.example/login'],
    ['/login?code=secret', /^http:\/\/127\.0\.0\.1:\d+\/login$/],
    ['data:text/plain,secret', 'another address'],
  ])('shows only the target address of the redirect %s', async (location, told) => {
    const url = await startHostileServer(
      (_path, response) => void response.writeHead(302, { location }).end(),
    )
    const refusal: Error = await listOf(url).then(
      () => expect.unreachable(),
      error => error,
    )
    expect(/ redirects to (.*); API calls/.exec(refusal.message)![1]).toEqual(
      typeof told === 'string' ? told : expect.stringMatching(told),
    )
  })

  test('accepts an error with fields of other types', async () => {
    const error = { code: 'conflict', message: 'no', hint: { a: 1 }, requestId: ['x'] }
    const url = await startHostileServer(
      (_path, response) => void response.writeHead(409).end(JSON.stringify({ error })),
    )
    await expect(listOf(url)).rejects.toMatchObject({ code: 'conflict', hint: expect.any(String) })
  })
})

describe('control sequences from a server', () => {
  test.each([
    'workspaces list',
    'workspaces show',
    'kb list',
    'kb show',
    'kb update --description x',
    'kb search k passage',
    'documents list k',
    'documents show d',
    'documents chunks d',
    'documents delete d --yes',
    'api GET /api/v1/workspaces',
  ])('are removed by `wb %s`', async line => {
    const names = { 'x-workbase-ignored': encodeURIComponent(csi), 'content-type': 'application/json' }
    const url = await startHostileServer(
      (path, response) =>
        void response.writeHead(200, names).end(JSON.stringify(responseWithSequences(path))),
    )
    const args = [...line.split(' '), '--url', url]
    const here = createSandbox()
    const piped = await here.wb(args)
    const seen = await runInFakeTerminal(here, args)
    expect([piped.status, seen.status], piped.stderr + seen.text).toEqual([0, 0])
    for (const text of [piped.stdout, piped.stderr, seen.text])
      for (const sign of ['\x1b]', '\x07', '\x1b[2J', '\x9b', '\u202e']) expect(text).not.toContain(sign)
  })
})

test.each([
  ['are removed from a passage in its context', { chunkIndex: 0 }, 'red'],
  [
    'are removed from the document of a passage whose chunk cannot be listed',
    {},
    'the chunk of this passage was deleted',
  ],
])('control sequences from a server %s', async (_what, position, expected) => {
  const url = await startHostileServer((path, response) => {
    const found = path.endsWith('/search') && [{ ...hit, payload: { ...hit.payload, ...position } }]
    const body = JSON.stringify(found || responseWithSequences(path))
    response.writeHead(200, { 'content-type': 'application/json' }).end(body)
  })
  const here = createSandbox()
  expect((await here.wb(['kb', 'search', 'k', 'passage', '--url', url])).status).toBe(0)
  for (const more of [[], ['--full']]) {
    const args = ['documents', 'show', '1', '--url', url, ...more]
    const piped = await here.wb(args)
    const seen = await runInFakeTerminal(here, args)
    expect([piped.status, seen.status], piped.stderr + seen.text).toEqual([0, 0])
    if (more.length === 0) expect(piped.stderr + seen.text).toContain(expected)
    for (const text of [piped.stdout, piped.stderr, seen.text])
      for (const sign of ['\x1b]', '\x07', '\x1b[2J', '\x9b', '\u202e']) expect(text).not.toContain(sign)
  }
})

test('control sequences in a response that is not JSON are removed by `wb api`, in a terminal and in a pipe', async () => {
  const url = await startHostileServer(respondWith('text/plain', `before ${csi}\r\n\tafter`))
  const args = ['api', 'GET', '/x', '--url', url]
  const here = createSandbox()
  const piped = await here.wb(args)
  expect(piped).toMatchObject({ status: 0, stdout: 'before red\n\tafter\n' })
  const seen = await runInFakeTerminal(here, args)
  expect(seen.text).toContain('before red')
  for (const sign of ['\x1b]', '\x07', '\x1b[2J', '\x9b', '\u202e']) expect(seen.text).not.toContain(sign)
})

test('search results without coverage show no bar and no warning', async () => {
  const headers = { 'x-workbase-ignored': 'includeCoverage', 'content-type': 'application/json' }
  const url = await startHostileServer(
    (path, response) =>
      void response.writeHead(200, headers).end(JSON.stringify(responseWithSequences(path))),
  )
  const { status, text } = await runInFakeTerminal(createSandbox(), [
    'kb',
    'search',
    'k',
    'passage',
    '--url',
    url,
  ])
  expect(status, text).toBe(0)
  expect(text).toContain('[2]')
  expect(text).not.toMatch(/[▮▯]|ignored/)
})

test('a credential in a header option is not sent unencrypted to another machine', async () => {
  const line = ['api', 'GET', '/version', '-H', 'Authorization: Bearer k', '--url', 'http://192.0.2.1']
  const { status, stderr } = await createSandbox().wb(line)
  expect(status).toBe(2)
  expect(stderr).toContain('would be sent unencrypted')
})

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openClient, pathOf } from '../../src/client/client.ts'
import { openNetwork } from '../../src/client/node/transport.ts'
import { Unreachable } from '../../src/client/unreachable.ts'
import { documents } from '../../src/contract/documents.ts'
import { WbError } from '../../src/contract/errors.ts'
import { runtimeRoutes } from '../../src/contract/runtime-routes.ts'
import { workspaces } from '../../src/contract/workspaces.ts'

type Answer = (request: IncomingMessage, response: ServerResponse) => void

async function clientFor(answer: Answer, more: Partial<Parameters<typeof openClient>[0]> = {}) {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return openClient({ baseUrl, fetch: openNetwork().fetch, ...more })
}

function json(status: number, body: unknown, headers: Record<string, string> = {}): Answer {
  return (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
  }
}

const ids = { workspaceId: 'a/b', knowledgeBaseId: 'ü', documentId: '?#' }

describe('the typed client', () => {
  test('builds the path and query from the declaration, percent-encoded', () => {
    expect(pathOf(documents.chunks, { params: ids, query: { limit: 5, cursor: undefined } })).toBe(
      '/api/v1/workspaces/a%2Fb/knowledge-bases/%C3%BC/documents/%3F%23/chunks?limit=5',
    )
  })

  test.each(['', '.', '..'])('rejects the parameter "%s", which would reach another route', documentId => {
    expect(() => pathOf(documents.delete, { params: { ...ids, documentId } })).toThrow(
      /documentId must not be/,
    )
  })

  test('sends a body as JSON, and its headers with every call', async () => {
    const seen: unknown[] = []
    const client = await clientFor(
      (request, response) => {
        request
          .setEncoding('utf8')
          .on('data', text => seen.push(request.method, request.headers.authorization, text))
        request.on('end', () => json(201, { name: 'demo' })(request, response))
      },
      { headers: { authorization: 'Bearer k' } },
    )
    expect(await client.call(workspaces.create, { body: { name: 'demo' } })).toEqual({ name: 'demo' })
    expect(seen).toEqual(['POST', 'Bearer k', '{"name":"demo"}'])
  })

  test('converts an error envelope to the error that the runtime threw', async () => {
    const error = { code: 'workspace_not_found', message: 'no such workspace', requestId: 'R', hint: 'look' }
    const client = await clientFor(json(404, { error }))
    const caught = await client.call(workspaces.list, {}).catch((thrown: unknown) => thrown)
    expect(caught).toBeInstanceOf(WbError)
    const { requestId, ...shown } = error
    expect(caught).toMatchObject({ ...shown, status: 404, facts: { requestId } })
  })

  test('keeps an unknown error code of a later version, and derives its meaning from the status', async () => {
    const client = await clientFor(json(409, { error: { code: 'not_yet_known', message: 'taken' } }))
    await expect(client.call(workspaces.list, {})).rejects.toMatchObject({
      status: 409,
      message: 'taken',
      facts: { wireCode: 'not_yet_known' },
    })
  })

  test.each([
    ['a page of a proxy', 502, '<html>', 'responded with 502, but is not a Workbase runtime'],
    ['an empty answer', 500, '', 'responded with 500, but is not a Workbase runtime'],
    ['JSON without an envelope', 404, '{"message":"x"}', 'responded with 404, but is not a Workbase runtime'],
  ])('does not accept %s as a response of a runtime', async (_what, status, body, message) => {
    const client = await clientFor((_request, response) => {
      response.writeHead(status).end(body)
    })
    const caught = await client.call(workspaces.list, {}).catch((thrown: unknown) => thrown)
    expect(caught).toBeInstanceOf(Unreachable)
    expect(caught).toMatchObject({ message: expect.stringContaining(message) })
  })

  test('does not follow a redirect or send credentials to its target', async () => {
    const seen: (string | undefined)[] = []
    const client = await clientFor((request, response) => {
      seen.push(request.url)
      response.writeHead(307, { location: 'http://127.0.0.1:1/steal' }).end()
    })
    await expect(client.call(workspaces.list, {})).rejects.toThrow(/do not follow redirects/)
    expect(seen).toEqual(['/api/v1/workspaces'])
  })

  test('reports that nothing listens at the address', async () => {
    const client = openClient({ baseUrl: 'http://127.0.0.1:1', fetch: openNetwork().fetch })
    await expect(client.call(runtimeRoutes.version, {})).rejects.toThrow(
      'no runtime responds at http://127.0.0.1:1: connection refused',
    )
  })

  test('reports ignored fields', async () => {
    const names: string[][] = []
    const answer = json(
      200,
      { items: [], nextCursor: null },
      { 'x-workbase-ignored': 'colour, gr%C3%B6%C3%9Fe' },
    )
    const client = await clientFor(answer, { onIgnored: ignored => names.push(ignored) })
    await client.call(workspaces.list, {})
    expect(names).toEqual([['colour', 'größe']])
  })

  test('reads a list page by page', async () => {
    const cursors: (string | null)[] = []
    const client = await clientFor((request, response) => {
      const cursor = new URL(request.url!, 'http://x').searchParams.get('cursor')
      cursors.push(cursor)
      json(200, { items: [{ name: cursor ?? 'first' }], nextCursor: cursor ? null : 'second' })(
        request,
        response,
      )
    })
    const names: string[] = []
    for await (const { name } of client.items(workspaces.list, {})) names.push(name)
    expect(names).toEqual(['first', 'second'])
    expect(cursors).toEqual([null, 'second'])
  })

  test('streams lines in both directions, regardless of how the network splits them', async () => {
    const client = await clientFor(async (request, response) => {
      let sent = ''
      for await (const part of request) sent += part
      response.writeHead(200, { 'content-type': 'application/x-ndjson' })
      const echo = Buffer.from(sent)
      for (const byte of echo) response.write(Buffer.from([byte]))
      response.end()
    })
    async function* texts() {
      yield { text: 'ü' }
      yield { text: '\n' }
    }
    const lines: unknown[] = []
    for await (const line of client.stream(documents.ingestBatch, { params: ids, body: texts() }))
      lines.push(line)
    expect(lines).toEqual([{ text: 'ü' }, { text: '\n' }])
  })

  test('rejects an aborted call with the abort reason', async () => {
    const client = await clientFor(() => {})
    const reason = new Error('enough')
    const signal = AbortSignal.timeout(50)
    await expect(client.call(workspaces.list, {}, { signal })).rejects.toThrow(/aborted|timeout/i)
    const controller = new AbortController()
    controller.abort(reason)
    await expect(client.call(workspaces.list, {}, { signal: controller.signal })).rejects.toBe(reason)
  })

  test('rejects wrong parameters and unknown reply fields at compile time', () => {
    const client = openClient({ baseUrl: 'http://x', fetch: () => Promise.reject(new Error('not sent')) })
    const invalidCalls = [
      // @ts-expect-error the parameter is missing
      () => client.call(workspaces.show, {}),
      // @ts-expect-error the name is missing
      () => client.call(workspaces.create, { body: {} }),
      // @ts-expect-error the limit is a number
      () => client.call(workspaces.list, { query: { limit: true } }),
      // @ts-expect-error a workspace has no such field
      async () => (await client.call(workspaces.show, { params: { workspaceId: 'x' } })).colour,
    ]
    expect(invalidCalls).toHaveLength(4)
  })
})

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { build } from 'esbuild'
import { describe, expect, onTestFinished, test } from 'vitest'
import { collect, openClient } from '../../src/client/client.ts'
import { webFetch } from '../../src/client/web-fetch.ts'
import { documents } from '../../src/contract/documents.ts'
import { jobs } from '../../src/contract/jobs.ts'
import { workspaces } from '../../src/contract/workspaces.ts'

/** Bundles a module for browsers. Returns the paths of its inputs, and the unresolved imports. */
async function bundle(entry: string) {
  const { metafile } = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    metafile: true,
    platform: 'browser',
    format: 'esm',
    packages: 'bundle',
    outdir: 'dist',
    logLevel: 'silent',
  })
  const unresolved = Object.values(metafile.outputs).flatMap(output => output.imports.map(({ path }) => path))
  return { inputs: Object.keys(metafile.inputs), unresolved }
}

describe('the client in a browser', () => {
  test.each(['src/client/client.ts', 'src/client/web-fetch.ts'])(
    '%s needs no Node.js module',
    async entry => {
      const { inputs, unresolved } = await bundle(entry)
      expect(inputs).toContain(entry)
      expect(inputs.filter(path => /undici|src\/client\/node\//.test(path))).toEqual([])
      expect(unresolved).toEqual([])
    },
  )

  test('detects an import of a Node.js module', async () => {
    await expect(bundle('src/client/node/transport.ts')).rejects.toThrow('node:')
  })
})

/** Starts a server that records the heads and bodies of requests. */
async function startRecordingServer(answer: {
  status: number
  type?: string
  body: string
  location?: string
}) {
  const requests: { line: string; body: string; type: string | undefined }[] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    requests.push({ line: `${request.method} ${request.url}`, body, type: request.headers['content-type'] })
    const headers = { 'content-type': answer.type ?? 'application/json' }
    response.writeHead(answer.status, answer.location ? { ...headers, location: answer.location } : headers)
    response.end(answer.body)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { requests, server, client: openClient({ baseUrl, fetch: webFetch(fetch) }) }
}

const ids = { workspaceId: 'w', knowledgeBaseId: 'k' }

describe('webFetch', () => {
  test('calls a route', async () => {
    const { client, requests } = await startRecordingServer({ status: 201, body: '{"workspaceId":"w"}' })
    expect(await client.call(workspaces.create, { body: { name: 'a' } })).toEqual({ workspaceId: 'w' })
    expect(requests).toEqual([
      { line: 'POST /api/v1/workspaces', body: '{"name":"a"}', type: 'application/json' },
    ])
  })

  test('sends a streamed body at once, reports its size, and reads lines', async () => {
    const { client, requests } = await startRecordingServer({
      status: 200,
      type: 'application/x-ndjson',
      body: '{"line":1}\n{"line":2}\n',
    })
    const sent: number[] = []
    async function* body() {
      yield { text: 'a' }
      yield { text: 'é' }
    }
    const request = { params: ids, query: {}, body: body() }
    const lines = client.stream(documents.ingestBatch, request as never, {
      onSent: bytes => sent.push(bytes),
    })
    expect(await collect(lines)).toEqual([{ line: 1 }, { line: 2 }])
    expect(requests[0]).toMatchObject({ body: '{"text":"a"}\n{"text":"é"}\n', type: 'application/x-ndjson' })
    expect(sent).toEqual([27])
  })

  test('reads events', async () => {
    const { client } = await startRecordingServer({
      status: 200,
      type: 'text/event-stream',
      body: 'id: 1\nevent: job\ndata: {"a":1}\n\n',
    })
    const events = client.events(jobs.events, { params: { workspaceId: 'w', jobId: 'j' } })
    expect(await collect(events)).toEqual([{ id: '1', event: 'job', data: { a: 1 } }])
  })

  test('does not follow a redirect', async () => {
    const { client, requests } = await startRecordingServer({ status: 302, body: '', location: '/elsewhere' })
    await expect(client.call(workspaces.list, { query: {} })).rejects.toMatchObject({ name: 'Unreachable' })
    expect(requests).toHaveLength(1)
  })

  test('reports a runtime that does not respond', async () => {
    const { client, server } = await startRecordingServer({ status: 200, body: '' })
    await new Promise(resolve => server.close(resolve))
    await expect(client.call(workspaces.list, { query: {} })).rejects.toThrow(
      /^no runtime responds at http:\/\/127\.0\.0\.1:\d+$/,
    )
  })
})

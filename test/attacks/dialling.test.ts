import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import { embeddingServices } from '../../src/contract/services.ts'
import { startEmbeddingServer } from '../fakes/embedding-server.ts'
import { makeBase, makeWorkspace } from '../harness/resources.ts'
import { open, type TestRuntime, type TestRuntimeOptions } from '../harness/runtime.ts'

const withAuth = { auth: { mode: 'apiKey', anonymousPolicy: 'allow' } }

/** Creates a knowledge base with an embedding service at the given address. */
async function createBaseWithEmbedder(wb: TestRuntime, endpointBaseUrl: string) {
  const { workspaceId } = await makeWorkspace(wb)
  const { embeddingServiceId } = await wb.call(embeddingServices.create, {
    params: { workspaceId },
    body: { name: 'far', provider: 'ollama', modelName: 'm', embeddingDimension: 3, endpointBaseUrl },
  })
  return makeBase(wb, { workspaceId, embeddingServiceId })
}

async function ingestWithEmbedder(options: TestRuntimeOptions, host: (port: string) => string) {
  const server = await startEmbeddingServer(3)
  onTestFinished(() => server.close())
  const wb = await open(options)
  const base = await createBaseWithEmbedder(wb, `http://${host(new URL(server.url).port)}/v1`)
  const ingested = base.ingest('a text').then(
    () => undefined,
    (error: unknown) => error,
  )
  return { error: await ingested, received: server.received }
}

test('with authentication, a service name that resolves to an internal address is not called, and the error names the setting to change [security rule 14]', async () => {
  const resolve = async () => ['127.0.0.1']
  const { error, received } = await ingestWithEmbedder(
    { config: withAuth, resolve },
    port => `models.example.com:${port}`,
  )
  expect(error).toMatchObject({
    code: 'embedding_unavailable',
    message: expect.stringContaining(
      'models.example.com has no address, or an address that the runtime may not call',
    ),
    hint: expect.stringMatching(/"models\.example\.com:\d+" to runtime\.allowedEndpoints/),
  })
  expect(received).toEqual([])
})

test('names with an internal address, with the address of a metadata service, and without any address get the same error [security rule 14]', async () => {
  const errorFor = async (resolve: () => Promise<string[]>) => {
    const { error } = await ingestWithEmbedder({ config: withAuth, resolve }, () => 'models.example.com')
    const { code, message, hint } = error as { code: string; message: string; hint: string }
    return { code, message, hint }
  }
  const nobody = Object.assign(new Error('getaddrinfo ENOTFOUND'), { code: 'ENOTFOUND' })
  const unknown = await errorFor(() => Promise.reject(nobody))
  expect(unknown.message).toContain('has no address, or an address that the runtime may not call')
  expect(await errorFor(async () => ['10.0.0.7'])).toEqual(unknown)
  expect(await errorFor(async () => ['169.254.169.254'])).toEqual(unknown)
})

test('a name that is rebound between two lookups never reaches an internal address [security rule 14]', async () => {
  const resolve = vi.fn(async () => ['127.0.0.1'])
  resolve.mockResolvedValueOnce(['127.0.0.9'])
  const config = { ...withAuth, runtime: { allowedEndpoints: ['127.0.0.9'] } }
  const server = await startEmbeddingServer(3)
  onTestFinished(() => server.close())
  const wb = await open({ config, resolve })
  const base = await createBaseWithEmbedder(wb, `http://models.example.com:${new URL(server.url).port}/v1`)
  await expect(base.ingest('a text')).rejects.toMatchObject({ code: 'embedding_unavailable' })
  expect(resolve.mock.calls.length).toBeGreaterThan(1)
  expect(server.received).toEqual([])
})

test('a service at an internal address is called if the operator allows it or authentication is disabled', async () => {
  const resolve = async () => ['127.0.0.1']
  const named = { ...withAuth, runtime: { allowedEndpoints: ['models.example.com'] } }
  for (const config of [named, {}]) {
    const { error, received } = await ingestWithEmbedder(
      { config, resolve },
      port => `models.example.com:${port}`,
    )
    expect(error).toBeUndefined()
    expect(received.length).toBeGreaterThan(0)
  }
})

test('a metadata service is never called, even if the operator allows its address [security rule 14]', async () => {
  const resolve = async () => ['169.254.169.254']
  const config = { runtime: { allowedEndpoints: ['models.example.com', '169.254.0.0/16'] } }
  const { error } = await ingestWithEmbedder({ config, resolve }, () => 'models.example.com')
  expect(error).toMatchObject({
    code: 'embedding_unavailable',
    message: expect.stringContaining('metadata service'),
  })
})

test('internal addresses in the discovery document of an identity provider are called only if the operator allows them [security rule 14]', async () => {
  const inner = vi.fn()
  const keys = await serveJson(() => {
    inner()
    return { keys: [] }
  })
  const provider = await serveJson(port => ({
    issuer: `http://localhost:${port}`,
    jwks_uri: `http://127.0.0.1:${keys}/jwks`,
  }))
  const issuer = `http://localhost:${provider}`
  const claims = { iss: issuer, aud: 'wb', sub: 's', exp: 9_999_999_999 }
  const token = [{ alg: 'RS256', kid: 'k' }, claims, 'signature']
    .map(part => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  const callsWith = async (allowedEndpoints: string[]) => {
    const config = { auth: { mode: 'oidc', oidc: { issuer, audience: 'wb' } }, runtime: { allowedEndpoints } }
    const wb = await open({ config })
    const { status } = await wb.send('GET /api/v1/workspaces', undefined, {
      authorization: `Bearer ${token}`,
    })
    expect(status).toBeGreaterThanOrEqual(401)
    return inner.mock.calls.length
  }
  expect(await callsWith([])).toBe(0)
  expect(await callsWith([`127.0.0.1:${keys}`])).toBeGreaterThan(0)
})

/** Serves a JSON response on a free loopback port until the test ends, and returns the port. */
async function serveJson(answer: (port: number) => object): Promise<number> {
  const server = createServer((_, response) => {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(answer((server.address() as AddressInfo).port)))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

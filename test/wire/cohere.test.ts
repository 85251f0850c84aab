import { expect, onTestFinished, test } from 'vitest'
import { startEmbeddingServer } from '../fakes/embedding-server.ts'
import { open } from '../harness/runtime.ts'

test('a knowledge base on Cohere embeds documents in batches and questions as search queries', async () => {
  const provider = await startEmbeddingServer(8)
  onTestFinished(() => provider.close())
  const wb = await open({
    environment: { COHERE_API_KEY: 'sk-cohere' },
    config: {
      runtime: { secretRefs: { allow: [{ ref: 'env:COHERE_API_KEY', hosts: [provider.host] }] } },
    },
  })
  const made = async (line: string, body: object) => (await wb.send(line, body)).body
  const { workspaceId } = await made('POST /api/v1/workspaces', { name: 'here' })
  const workspace = `/api/v1/workspaces/${workspaceId}`
  const { embeddingServiceId } = await made(`POST ${workspace}/embedding-services`, {
    name: 'cohere',
    provider: 'cohere',
    modelName: 'embed-v4.0',
    embeddingDimension: 8,
    maxBatchSize: 2,
    endpointBaseUrl: provider.url,
    credentialRef: 'env:COHERE_API_KEY',
  })
  const { knowledgeBaseId } = await made(`POST ${workspace}/knowledge-bases`, {
    name: 'papers',
    embeddingServiceId,
  })
  const kb = `${workspace}/knowledge-bases/${knowledgeBaseId}`
  const chunker = { maxChars: 5, minChars: 0, overlapChars: 0 }
  const ingested = await wb.send(`POST ${kb}/ingest`, { text: 'aaaa bbbb cccc dddd eeee', chunker })
  expect(ingested.status, ingested.text).toBe(201)
  expect(provider.received.length).toBeGreaterThan(1)
  for (const { url, headers, body } of provider.received) {
    expect(url).toBe('/v1/embed')
    expect(headers.authorization).toBe('Bearer sk-cohere')
    expect(body).toMatchObject({
      model: 'embed-v4.0',
      input_type: 'search_document',
      embedding_types: ['float'],
      output_dimension: 8,
    })
    expect(body.texts!.length).toBeLessThanOrEqual(2)
  }
  const found = await wb.send(`POST ${kb}/search`, { text: 'bbbb', hybrid: false })
  expect(found.status).toBe(200)
  expect(provider.received.at(-1)?.body).toMatchObject({ input_type: 'search_query', texts: ['bbbb'] })
})

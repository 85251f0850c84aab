import { describe, expect, test } from 'vitest'
import { anyText, arrayOf, exactly } from './exactly.ts'
import { freshName, ingest, makeKnowledgeBase, makeWorkspace } from './fixtures.ts'
import { past, type Row, useServer } from './harness.ts'
import {
  chunkingService,
  embeddingService,
  lineSeed,
  mockSeed,
  notUuid,
  recursiveSeed,
  remoteSeed,
  unknownId,
} from './shapes.ts'

const wire = useServer()

test('S4.2-32: GET /api/v1/chunkers lists the registered chunkers', async () => {
  const listed = await wire.exchange('GET /api/v1/chunkers', undefined, 200, {
    items: arrayOf({ id: anyText, engine: anyText, strategy: anyText, description: anyText }),
  })
  const items = listed.items as Row[]
  const named = items.map(({ id, engine, strategy }) => `${id} is ${engine}/${strategy}`)
  expect(named.sort()).toEqual([
    'line:1 is langchain_ts/line',
    'recursive-char:1 is langchain_ts/recursive',
    'sentence:1 is workbase/sentence',
  ])
})

test('S4.2-32: each of the listed chunkers cuts, by its engine and strategy', async () => {
  const workspace = await makeWorkspace(wire, { kind: 'mock' })
  for (const { id, engine, strategy } of await wire.items('/api/v1/chunkers')) {
    const service = { name: String(id), engine, strategy }
    const chunkingServiceId = await wire.make(`${workspace}/chunking-services`, service, 'chunkingServiceId')
    const kb = await makeKnowledgeBase(wire, workspace, { chunkingServiceId })
    const documentId = await ingest(wire, kb, { text: 'One sentence. And another.' })
    const chunks = (await wire.send(`GET ${kb}/documents/${documentId}/chunks`)).body as { payload: Row }[]
    expect(chunks.map(chunk => chunk.payload['chunker.id'])).toContain(id)
  }
})

describe('seeds (contract 4.7)', () => {
  test('sequence 2: a mock workspace has the seeds of the sheet, in order', async () => {
    const workspace = await makeWorkspace(wire, { kind: 'mock' })
    const workspaceId = workspace.split('/').at(-1)
    await wire.exchange(`GET ${workspace}/chunking-services`, undefined, 200, {
      items: [
        chunkingService({ workspaceId, ...recursiveSeed }),
        chunkingService({ workspaceId, ...lineSeed }),
      ],
      nextCursor: null,
    })
    await wire.exchange(`GET ${workspace}/embedding-services`, undefined, 200, {
      items: [embeddingService({ workspaceId, ...mockSeed })],
      nextCursor: null,
    })
  })

  test('a local workspace has chunking services of its own, then those of the sheet; one built-in embedder', async () => {
    const workspace = await makeWorkspace(wire)
    const items = await wire.items(`${workspace}/chunking-services`)
    expect(items.length).toBeGreaterThan(2)
    exactly(items.slice(-2), [chunkingService(recursiveSeed), chunkingService(lineSeed)])
    for (const item of items.slice(0, -2)) {
      expect(item.description).toMatch(/\S/)
      expect(Object.keys(item).sort()).toEqual(Object.keys(chunkingService()).sort())
    }
    const embedders = await wire.items(`${workspace}/embedding-services`)
    expect(embedders).toHaveLength(1)
    expect(embedders[0]).toMatchObject({
      provider: 'workbase',
      modelName: 'workbase-lsa',
      embeddingDimension: 128,
      distanceMetric: 'cosine',
      status: 'active',
      authType: 'none',
      credentialRef: null,
    })
    expect(Object.keys(embedders[0]!).sort()).toEqual(Object.keys(embeddingService()).sort())
  })

  test.each(['astra', 'hcd', 'openrag'])('an %s workspace has the remote embedder', async kind => {
    const workspace = await makeWorkspace(wire, { kind })
    await wire.exchange(`GET ${workspace}/chunking-services`, undefined, 200, {
      items: [chunkingService(recursiveSeed), chunkingService(lineSeed)],
      nextCursor: null,
    })
    await wire.exchange(`GET ${workspace}/embedding-services`, undefined, 200, {
      items: [embeddingService(remoteSeed)],
      nextCursor: null,
    })
  })
})

/** The two families differ in fields, not in behaviour. */
const families = [
  {
    kind: 'chunking',
    id: 'chunkingServiceId',
    shape: chunkingService,
    least: { name: 'least', engine: 'langchain_ts' },
    whole: {
      name: 'whole',
      description: 'all fields',
      status: 'experimental',
      engine: 'fixed',
      engineVersion: '2',
      strategy: 'by-tokens',
      maxChunkSize: 512,
      minChunkSize: 0,
      chunkUnit: 'tokens',
      overlapSize: 64,
      overlapUnit: 'tokens',
      preserveStructure: false,
      language: 'en',
      readingOrder: 'ltr',
      maxPayloadSizeKb: 8,
      enableOcr: true,
      extractTables: false,
      extractFigures: true,
      endpointBaseUrl: 'https://chunks.example.com/v1',
      endpointPath: '/chunk',
      requestTimeoutMs: 1500,
      authType: 'api_key',
      credentialRef: 'env:CHUNK_KEY',
    },
    cleared: ['strategy', 'maxChunkSize', 'preserveStructure', 'language'],
    wrong: [
      ['engine', ''],
      ['maxChunkSize', 0],
      ['minChunkSize', -1],
      ['overlapSize', 1.5],
      ['maxPayloadSizeKb', 0],
      ['preserveStructure', 'yes'],
      ['enableOcr', 1],
      ['language', 5],
    ],
  },
  {
    kind: 'embedding',
    id: 'embeddingServiceId',
    shape: embeddingService,
    least: { name: 'least', provider: 'mock', modelName: 'm', embeddingDimension: 8 },
    whole: {
      name: 'whole',
      description: 'all fields',
      status: 'deprecated',
      provider: 'openai',
      modelName: 'text-embedding-3-small',
      embeddingDimension: 1536,
      distanceMetric: 'dot',
      maxBatchSize: 512,
      maxInputTokens: 8191,
      supportedLanguages: ['de', 'en'],
      supportedContent: ['text'],
      endpointBaseUrl: 'https://api.example.com/v1',
      endpointPath: '/embeddings',
      requestTimeoutMs: 30000,
      authType: 'oauth2',
      credentialRef: 'file:/run/secrets/openai',
    },
    cleared: ['maxBatchSize', 'maxInputTokens'],
    wrong: [
      ['provider', ''],
      ['modelName', null],
      ['embeddingDimension', 0],
      ['embeddingDimension', 1.5],
      ['embeddingDimension', '8'],
      ['distanceMetric', 'manhattan'],
      ['maxBatchSize', 0],
      ['supportedLanguages', 'en'],
      ['supportedContent', [1]],
    ],
  },
] as const

const sharedWrong = [
  ['name', ''],
  ['name', 7],
  ['status', 'retired'],
  ['authType', 'basic'],
  ['requestTimeoutMs', 0],
  ['endpointBaseUrl', 'ftp://files.example.com'],
  ['endpointBaseUrl', 'no address'],
  ['endpointBaseUrl', 'http://user:pass@host.example.com'],
  ['endpointBaseUrl', 'http://169.254.169.254/latest'],
  ['endpointBaseUrl', 'http://169.254.7.7'],
  ['endpointBaseUrl', 'http://metadata.google.internal'],
  ['endpointBaseUrl', 'http://metadata.azure.com'],
  ['endpointBaseUrl', 'http://[fd00:ec2::254]'],
  ['endpointBaseUrl', 'http://[fe80::1]'],
  ['endpointBaseUrl', 'http://[::ffff:169.254.169.254]'],
  ['endpointPath', 'embeddings'],
  ['endpointPath', '/../admin'],
  ['endpointPath', '/line\nbreak'],
  ['credentialRef', 'sk-plain-key'],
] as const

describe.each(families)('$kind services', ({ kind, id, shape, least, whole, cleared, wrong }) => {
  const segment = `${kind}-services`
  const notFound = `${kind}_service_not_found`

  test('POST with the least that is asked takes every default', async () => {
    const list = `${await makeWorkspace(wire)}/${segment}`
    await wire.exchange(`POST ${list}`, least, 201, shape(least))
  })

  test('sequence 10: POST with every field stores it as given, GET shows it', async () => {
    const list = `${await makeWorkspace(wire)}/${segment}`
    const chosen: Row = { [id]: '2d1c1a52-6f0e-4c0e-9d53-2f3a4b5c6d72', ...whole }
    const created = await wire.exchange(`POST ${list}`, chosen, 201, shape(chosen))
    await wire.exchange(`GET ${list}/${chosen[id]}`, undefined, 200, created)
  })

  test('names are not unique; the list keeps the order of creation', async () => {
    const list = `${await makeWorkspace(wire)}/${segment}`
    const first = await wire.make(list, { ...least, name: 'twin' }, id)
    const second = await wire.make(list, { ...least, name: 'twin' }, id)
    expect((await wire.items(list)).map(item => item[id]).slice(-2)).toEqual([first, second])
  })

  test(`S7.3-conflict: an id that is taken is 409`, async () => {
    const list = `${await makeWorkspace(wire)}/${segment}`
    const taken = await wire.make(list, least, id)
    await wire.refused(`POST ${list}`, { json: { ...least, [id]: taken } }, 409, 'conflict')
  })

  test('PATCH changes what is sent, null clears, an empty one changes updatedAt alone', async () => {
    const list = `${await makeWorkspace(wire)}/${segment}`
    const path = `${list}/${await wire.make(list, whole, id)}`
    const before = await wire.get(path)
    const patch = {
      name: 'changed',
      description: null,
      ...Object.fromEntries(cleared.map(field => [field, null])),
    }
    const after = await wire.exchange(
      `PATCH ${path}`,
      patch,
      200,
      shape({ ...before, ...patch, updatedAt: shape().updatedAt }),
    )
    await past(after.updatedAt)
    const touched = await wire.exchange(`PATCH ${path}`, {}, 200, { ...after, updatedAt: shape().updatedAt })
    expect(String(touched.updatedAt) > String(after.updatedAt)).toBe(true)
  })

  test('PATCH is lenient: the id and unknown fields are ignored, and named', async () => {
    const list = `${await makeWorkspace(wire)}/${segment}`
    const own = await wire.make(list, least, id)
    const reply = await wire.send(`PATCH ${list}/${own}`, { json: { [id]: unknownId, colour: 'red' } })
    expect(reply.status).toBe(200)
    expect((reply.body as Row)[id]).toBe(own)
    expect(reply.headers['x-workbase-ignored']).toContain('colour')
  })

  test('sequence 9: DELETE is 204, then everything about it is 404', async () => {
    const list = `${await makeWorkspace(wire)}/${segment}`
    const path = `${list}/${await wire.make(list, least, id)}`
    await wire.exchange(`DELETE ${path}`, undefined, 204, undefined)
    await wire.refused(`GET ${path}`, {}, 404, notFound)
  })

  test(`S7.3-${notFound}: an unknown id is 404 for every verb`, async () => {
    const path = `${await makeWorkspace(wire)}/${segment}/${unknownId}`
    const words = new RegExp(`^${kind} service '${unknownId}' not found$`)
    await wire.refused(`GET ${path}`, {}, 404, notFound, words)
    await wire.refused(`PATCH ${path}`, { json: { name: 'x' } }, 404, notFound)
    await wire.refused(`DELETE ${path}`, {}, 404, notFound)
  })

  test('S7.3-workspace_not_found: an unknown workspace is named first', async () => {
    const list = `/api/v1/workspaces/${unknownId}/${segment}`
    await wire.refused(`GET ${list}`, {}, 404, 'workspace_not_found')
    await wire.refused(`POST ${list}`, { json: least }, 404, 'workspace_not_found')
  })

  test('ids are UUIDs', async () => {
    const list = `${await makeWorkspace(wire)}/${segment}`
    await wire.refused(`GET ${list}/${notUuid}`, {}, 400, 'validation_error', new RegExp(`^${id}: `))
    const json = { ...least, [id]: notUuid }
    await wire.refused(`POST ${list}`, { json }, 400, 'validation_error', new RegExp(`^${id}: `))
  })

  test.each([...sharedWrong, ...wrong])(
    'S7.3-13: %s = %j is refused by name, at POST and PATCH',
    async (field, value) => {
      const list = `${await makeWorkspace(wire)}/${segment}`
      const path = `${list}/${await wire.make(list, { ...least, name: freshName('kept') }, id)}`
      const before = await wire.get(path)
      const names = new RegExp(`^${field}(\\.\\d+)?: `)
      await wire.refused(
        `POST ${list}`,
        { json: { ...least, [field]: value } },
        400,
        'validation_error',
        names,
      )
      await wire.refused(`PATCH ${path}`, { json: { [field]: value } }, 400, 'validation_error', names)
      await wire.exchange(`GET ${path}`, undefined, 200, before)
    },
  )

  test(`a service that a knowledge base binds cannot be deleted`, async () => {
    const workspace = await makeWorkspace(wire)
    const bound = await wire.make(`${workspace}/${segment}`, least, id)
    const kb = await makeKnowledgeBase(wire, workspace, { [id]: bound })
    const path = `${workspace}/${segment}/${bound}`
    await wire.refused(`DELETE ${path}`, {}, 409, `${kind}_service_in_use`)
    await wire.get(path)
    await wire.exchange(`DELETE ${kb}`, undefined, 204, undefined)
    await wire.exchange(`DELETE ${path}`, undefined, 204, undefined)
  })
})

describe('embedding services', () => {
  test('languages and content are sorted sets', async () => {
    const list = `${await makeWorkspace(wire)}/embedding-services`
    const body = {
      ...families[1].least,
      supportedLanguages: ['multi', 'en', 'multi'],
      supportedContent: ['text', 'code'],
    }
    const sets = { supportedLanguages: ['en', 'multi'], supportedContent: ['code', 'text'] }
    await wire.exchange(`POST ${list}`, body, 201, embeddingService({ ...body, ...sets }))
  })

  test('what stored vectors depend on is fixed while a knowledge base binds the service', async () => {
    const workspace = await makeWorkspace(wire)
    const list = `${workspace}/embedding-services`
    const embeddingServiceId = await wire.make(list, families[1].least, 'embeddingServiceId')
    await makeKnowledgeBase(wire, workspace, { embeddingServiceId })
    const path = `${list}/${embeddingServiceId}`
    const before = await wire.get(path)
    for (const json of [
      { provider: 'ollama' },
      { modelName: 'other' },
      { embeddingDimension: 16 },
      { distanceMetric: 'euclidean' },
    ])
      await wire.refused(`PATCH ${path}`, { json }, 409, 'embedding_service_in_use')
    await wire.exchange(`GET ${path}`, undefined, 200, before)
    await wire.exchange(
      `PATCH ${path}`,
      { name: 'free to change' },
      200,
      embeddingService({
        ...before,
        name: 'free to change',
        updatedAt: anyText,
      }),
    )
  })
})

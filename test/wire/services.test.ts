import { describe, expect, test } from 'vitest'
import { anyText, arrayOf, exactly } from './exactly.ts'
import { freshName, ingest, makeKnowledgeBase, makeWorkspace } from './fixtures.ts'
import { past, type Row, useServer } from './harness.ts'
import {
  chunkingService,
  embeddingService,
  lineSeed,
  llmSeed,
  llmService,
  mockSeed,
  notUuid,
  recursiveSeed,
  remoteSeed,
  rerankingService,
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
    'structure:1 is workbase/structure',
  ])
})

test('S4.2-32: each listed chunker can be used by its engine and strategy', async () => {
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

describe('services of a new workspace', () => {
  test('a mock workspace has its services in order', async () => {
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

  test('a local workspace has its own chunking services, then those of every kind, and one built-in embedder', async () => {
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

test.each(['local', 'mock', 'astra'])('a %s workspace has one LLM and no reranker', async kind => {
  const workspace = await makeWorkspace(wire, { kind })
  await wire.exchange(`GET ${workspace}/llm-services`, undefined, 200, {
    items: [llmService(llmSeed)],
    nextCursor: null,
  })
  await wire.exchange(`GET ${workspace}/reranking-services`, undefined, 200, {
    items: [],
    nextCursor: null,
  })
})

/** Creates a knowledge base or an agent that uses a service, and returns its path. */
const byBase = (id: string) => (workspace: string, service: string) =>
  makeKnowledgeBase(wire, workspace, { [id]: service })
const byAgent = (id: string) => async (workspace: string, service: string) => {
  const agents = `${workspace}/agents`
  return `${agents}/${await wire.make(agents, { name: 'binds it', [id]: service }, 'agentId')}`
}

/** Service families, which differ only in their fields. */
const families = [
  {
    kind: 'chunking',
    id: 'chunkingServiceId',
    noun: 'chunking service',
    echo: '',
    binders: { 'a knowledge base': byBase('chunkingServiceId') },
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
    noun: 'embedding service',
    echo: 'S4.2-24 ',
    binders: { 'a knowledge base': byBase('embeddingServiceId') },
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
  {
    kind: 'reranking',
    id: 'rerankingServiceId',
    noun: 'reranking service',
    echo: 'S4.2-25 ',
    binders: {
      'a knowledge base': byBase('rerankingServiceId'),
      'an agent': byAgent('rerankingServiceId'),
    },
    shape: rerankingService,
    least: { name: 'least', provider: 'cohere', modelName: 'm' },
    whole: {
      name: 'whole',
      description: 'all fields',
      status: 'experimental',
      provider: 'cohere',
      engine: 'hosted',
      modelName: 'rerank-v3.5',
      modelVersion: '3.5',
      maxCandidates: 100,
      scoringStrategy: 'pointwise',
      scoreNormalized: true,
      returnScores: false,
      maxBatchSize: 32,
      supportedLanguages: ['multi'],
      supportedContent: ['text'],
      endpointBaseUrl: 'https://rerank.example.com/v1',
      endpointPath: '/rerank',
      requestTimeoutMs: 5000,
      authType: 'api_key',
      credentialRef: 'env:RERANK_KEY',
    },
    cleared: ['engine', 'maxCandidates', 'scoreNormalized', 'credentialRef'],
    wrong: [
      ['provider', ''],
      ['modelName', null],
      ['maxCandidates', 0],
      ['maxBatchSize', 1.5],
      ['scoreNormalized', 'yes'],
      ['returnScores', 1],
      ['supportedLanguages', 'en'],
    ],
  },
  {
    kind: 'llm',
    id: 'llmServiceId',
    noun: 'LLM service',
    echo: 'S4.2-23 ',
    binders: { 'an agent': byAgent('llmServiceId') },
    shape: llmService,
    least: { name: 'least', provider: 'ollama', modelName: 'm' },
    whole: {
      name: 'whole',
      description: 'all fields',
      status: 'deprecated',
      provider: 'ollama',
      engine: 'hosted',
      modelName: 'llama3.1',
      modelVersion: '3.1',
      contextWindowTokens: 8192,
      maxOutputTokens: 512,
      temperatureMin: 1.5,
      temperatureMax: -1,
      supportsStreaming: true,
      supportsTools: false,
      maxBatchSize: 1,
      supportedLanguages: ['de', 'en'],
      supportedContent: ['text'],
      endpointBaseUrl: 'http://ollama.example.com:11434/v1',
      endpointPath: '/chat',
      requestTimeoutMs: 60000,
      authType: 'mTLS',
      credentialRef: 'file:/run/secrets/llm',
    },
    cleared: ['temperatureMin', 'maxOutputTokens', 'supportsTools', 'engine'],
    wrong: [
      ['provider', ''],
      ['modelName', null],
      ['contextWindowTokens', 0],
      ['maxOutputTokens', 1.5],
      ['temperatureMin', 'warm'],
      ['supportsStreaming', 'yes'],
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
  ['requestTimeoutMs', 600_001],
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

describe.each(families)('$kind services', family => {
  const { kind, id, noun, echo, binders, shape, least, whole, cleared, wrong } = family
  const segment = `${kind}-services`
  const notFound = `${kind}_service_not_found`

  test('POST with only the required fields applies every default', async () => {
    const list = `${await makeWorkspace(wire)}/${segment}`
    await wire.exchange(`POST ${list}`, least, 201, shape(least))
  })

  test('POST stores every field unchanged, and GET returns it', async () => {
    const list = `${await makeWorkspace(wire)}/${segment}`
    const chosen: Row = { [id]: '2d1c1a52-6f0e-4c0e-9d53-2f3a4b5c6d72', ...whole }
    const created = await wire.exchange(`POST ${list}`, chosen, 201, shape(chosen))
    await wire.exchange(`GET ${list}/${chosen[id]}`, undefined, 200, created)
  })

  test('names are not unique, and the list is in order of creation', async () => {
    const list = `${await makeWorkspace(wire)}/${segment}`
    const first = await wire.make(list, { ...least, name: 'twin' }, id)
    const second = await wire.make(list, { ...least, name: 'twin' }, id)
    expect((await wire.items(list)).map(item => item[id]).slice(-2)).toEqual([first, second])
  })

  test(`S7.3-conflict: an existing ID is 409`, async () => {
    const list = `${await makeWorkspace(wire)}/${segment}`
    const taken = await wire.make(list, least, id)
    await wire.refused(`POST ${list}`, { json: { ...least, [id]: taken } }, 409, 'conflict')
  })

  test('PATCH changes the given fields, null clears a field, and an empty body changes only updatedAt', async () => {
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

  test('PATCH ignores the ID and unknown fields and names them in a header', async () => {
    const list = `${await makeWorkspace(wire)}/${segment}`
    const own = await wire.make(list, least, id)
    const reply = await wire.send(`PATCH ${list}/${own}`, { json: { [id]: unknownId, colour: 'red' } })
    expect(reply.status).toBe(200)
    expect((reply.body as Row)[id]).toBe(own)
    expect(reply.headers['x-workbase-ignored']).toContain('colour')
  })

  test('DELETE returns 204, and later requests get 404', async () => {
    const list = `${await makeWorkspace(wire)}/${segment}`
    const path = `${list}/${await wire.make(list, least, id)}`
    await wire.exchange(`DELETE ${path}`, undefined, 204, undefined)
    await wire.refused(`GET ${path}`, {}, 404, notFound)
  })

  test(`S7.3-${notFound}: an unknown ID is 404 for every method`, async () => {
    const path = `${await makeWorkspace(wire)}/${segment}/${unknownId}`
    const words = new RegExp(`^${noun} '${unknownId}' not found$`)
    await wire.refused(`GET ${path}`, {}, 404, notFound, words)
    await wire.refused(`PATCH ${path}`, { json: { name: 'x' } }, 404, notFound)
    await wire.refused(`DELETE ${path}`, {}, 404, notFound)
  })

  test('S7.3-workspace_not_found: reports an unknown workspace before an unknown service', async () => {
    const list = `/api/v1/workspaces/${unknownId}/${segment}`
    await wire.refused(`GET ${list}`, {}, 404, 'workspace_not_found')
    await wire.refused(`POST ${list}`, { json: least }, 404, 'workspace_not_found')
  })

  test('rejects IDs that are not UUIDs', async () => {
    const list = `${await makeWorkspace(wire)}/${segment}`
    await wire.refused(`GET ${list}/${notUuid}`, {}, 400, 'validation_error', new RegExp(`^${id}: `))
    const json = { ...least, [id]: notUuid }
    await wire.refused(`POST ${list}`, { json }, 400, 'validation_error', new RegExp(`^${id}: `))
  })

  test.each([...sharedWrong, ...wrong])(
    'S7.3-13: POST and PATCH reject %s = %j by name',
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

  test(`${echo}S2.7-01 S5.9-06: a credential reference can be set, replaced and cleared, and only the reference is shown`, async () => {
    const list = `${await makeWorkspace(wire)}/${segment}`
    const first = { ...least, credentialRef: 'env:PATH' }
    const created = await wire.exchange(`POST ${list}`, first, 201, shape(first))
    const path = `${list}/${created[id]}`
    await wire.exchange(`GET ${path}`, undefined, 200, created)
    for (const credentialRef of ['file:/etc/hostname', 'astra-cli:team:db:token', null]) {
      const changed = shape({ ...created, credentialRef, updatedAt: shape().updatedAt })
      await wire.exchange(`PATCH ${path}`, { credentialRef }, 200, changed)
      await wire.exchange(`GET ${path}`, undefined, 200, changed)
      exactly((await wire.items(list)).at(-1), changed)
    }
    await wire.refused(`PATCH ${path}`, { json: { credentialRef: 'sk-raw' } }, 400, 'validation_error')
  })

  test.each(Object.entries(binders))(
    `S7.3-${kind}_service_in_use: a service that %s uses cannot be deleted`,
    async (words, bind) => {
      const workspace = await makeWorkspace(wire)
      const bound = await wire.make(`${workspace}/${segment}`, least, id)
      const binder = await bind(workspace, bound)
      const path = `${workspace}/${segment}/${bound}`
      const code = `${kind}_service_in_use`
      await wire.refused(`DELETE ${path}`, {}, 409, code, new RegExp(`^${words} uses this ${noun}$`))
      await wire.get(path)
      await wire.exchange(`DELETE ${binder}`, undefined, 204, undefined)
      await wire.exchange(`DELETE ${path}`, undefined, 204, undefined)
    },
  )
})

test.each(families.slice(1))(
  'languages and content of $kind services are sorted sets',
  async ({ kind, least, shape }) => {
    const list = `${await makeWorkspace(wire)}/${kind}-services`
    const body = {
      ...least,
      supportedLanguages: ['multi', 'en', 'multi'],
      supportedContent: ['text', 'code'],
    }
    const sets = { supportedLanguages: ['en', 'multi'], supportedContent: ['code', 'text'] }
    await wire.exchange(`POST ${list}`, body, 201, shape({ ...body, ...sets }))
  },
)

test('S7.3-reranking_service_not_found S7.3-llm_service_not_found: rejects an unknown reranking service and an unknown LLM service', async () => {
  const workspace = await makeWorkspace(wire)
  const kb = await makeKnowledgeBase(wire, workspace)
  const agents = `${workspace}/agents`
  const agent = `${agents}/${await wire.make(agents, { name: 'binds' }, 'agentId')}`
  for (const [line, json, code] of [
    [`POST ${workspace}/knowledge-bases`, { name: 'x', rerankingServiceId: unknownId }, 'reranking'],
    [`PATCH ${kb}`, { rerankingServiceId: unknownId }, 'reranking'],
    [`POST ${agents}`, { name: 'x', rerankingServiceId: unknownId }, 'reranking'],
    [`PATCH ${agent}`, { rerankingServiceId: unknownId }, 'reranking'],
    [`POST ${agents}`, { name: 'x', llmServiceId: unknownId }, 'llm'],
    [`PATCH ${agent}`, { llmServiceId: unknownId }, 'llm'],
  ] as const)
    await wire.refused(line, { json }, 404, `${code}_service_not_found`)
})

test('chunking settings can change while a knowledge base uses the service, and its chunks stay unchanged', async () => {
  const workspace = await makeWorkspace(wire)
  const list = `${workspace}/chunking-services`
  const chunkingServiceId = await wire.make(
    list,
    { ...families[0].least, maxChunkSize: 20 },
    'chunkingServiceId',
  )
  const kb = await makeKnowledgeBase(wire, workspace, { chunkingServiceId })
  const documentId = await ingest(wire, kb, { text: 'One two three four. Five six seven eight.' })
  const chunks = async () => (await wire.send(`GET ${kb}/documents/${documentId}/chunks`)).body as Row[]
  const before = await chunks()
  expect(before.length).toBeGreaterThan(1)
  expect(
    (await wire.send(`PATCH ${list}/${chunkingServiceId}`, { json: { maxChunkSize: 900 } })).status,
  ).toBe(200)
  expect(await chunks()).toEqual(before)
})

describe('embedding services', () => {
  test('settings that stored vectors depend on cannot change while a knowledge base uses the service', async () => {
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

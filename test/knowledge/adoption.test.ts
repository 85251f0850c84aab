import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { chunkingServices, embeddingServices } from '../../src/contract/services.ts'
import type { Collection, ContentStore } from '../../src/storage/content.ts'
import { openEmbeddedStore } from '../../src/storage/open.ts'
import { makeBase, makeMockService, makeWorkspace } from '../harness/resources.ts'
import { open, type TestResponse, type TestRuntime } from '../harness/runtime.ts'

const unknownId = '9b1c1a52-6f0e-4c0e-9d53-2f3a4b5c6d7e'

/** Collections of other programs, as in a remote store; some have no vectors. */
function alsoHolding(...others: Partial<Collection>[]) {
  return (store: ContentStore): ContentStore => {
    if (!store.collections) return store
    const held = (workspaceId: string) =>
      others.map((fields, at) => ({ ...plain, id: 1_000 + at, workspaceId, ...fields }) as Collection)
    return {
      ...store,
      collection: async key =>
        held(key.workspaceId).find(({ name }) => name === key.name) ?? store.collection(key),
      collections: async workspaceId => [...(await store.collections!(workspaceId)), ...held(workspaceId)],
    }
  }
}

const plain = {
  dimension: 3,
  metric: 'cosine',
  lexical: false,
  fitted: false,
  generation: 0,
  version: 0,
  records: 0,
  vectors: 0,
  fittedRecords: 0,
} as const

interface Stage {
  readonly wb: TestRuntime
  readonly workspaceId: string
  /** A service of the offline provider with three dimensions. */
  readonly embeddingServiceId: string
  readonly chunkingServiceId: string
  /** A service of the built-in embedder. */
  readonly builtIn: string
  create(body: object): Promise<TestResponse>
}

async function stage(...others: Partial<Collection>[]): Promise<Stage> {
  const wb = await open({ content: alsoHolding(...others) })
  const { workspaceId } = await makeWorkspace(wb)
  const { embeddingServiceId } = await makeMockService(wb, workspaceId)
  const params = { workspaceId }
  const [chunking] = (await wb.call(chunkingServices.list, { params, query: {} })).items
  const [builtIn] = (await wb.call(embeddingServices.list, { params, query: {} })).items
  return {
    wb,
    workspaceId,
    embeddingServiceId,
    chunkingServiceId: chunking!.chunkingServiceId,
    builtIn: builtIn!.embeddingServiceId,
    create: body => wb.send(`POST /api/v1/workspaces/${workspaceId}/knowledge-bases`, body),
  }
}

function refused(code: string, status: number) {
  return { status, body: { error: { code, docs: `docs/errors.md#${code.replaceAll('_', '-')}` } } }
}

describe('adoptable collections', () => {
  test('S1-08: lists collections with vectors by name, with details for a choice', async () => {
    const { wb, workspaceId } = await stage(
      { name: 'served', vectorService: { provider: 'nvidia', modelName: 'nv-embedqa' }, reranks: true },
      { name: 'wordsOnly', dimension: 0, lexical: true },
    )
    await makeBase(wb, { workspaceId, name: 'ours' })
    expect(await wb.send(`GET /api/v1/workspaces/${workspaceId}/adoptable-collections`)).toMatchObject({
      status: 200,
      body: {
        items: [
          {
            name: 'ours',
            vectorDimension: 128,
            vectorSimilarity: 'cosine',
            vectorService: { provider: 'workbase', modelName: 'workbase-lsa' },
            lexicalEnabled: true,
            rerankEnabled: false,
            attached: true,
          },
          {
            name: 'served',
            vectorDimension: 3,
            vectorSimilarity: 'cosine',
            vectorService: { provider: 'nvidia', modelName: 'nv-embedqa' },
            lexicalEnabled: false,
            rerankEnabled: true,
            attached: false,
          },
        ],
      },
    })
  })

  test('lists none in a mock workspace, and none of another workspace', async () => {
    const wb = await open()
    const { workspaceId } = await makeWorkspace(wb, { kind: 'mock' })
    await makeBase(wb, { workspaceId })
    await makeBase(wb)
    const other = await makeWorkspace(wb)
    for (const id of [workspaceId, other.workspaceId])
      expect(await wb.send(`GET /api/v1/workspaces/${id}/adoptable-collections`)).toMatchObject({
        status: 200,
        body: { items: [] },
      })
  })

  test('S7.3-workspace_not_found S7.3-driver_unavailable: fails in an unknown workspace and in one without a driver', async () => {
    const wb = await open()
    const nowhere = await wb.send(`GET /api/v1/workspaces/${unknownId}/adoptable-collections`)
    expect(nowhere).toMatchObject(refused('workspace_not_found', 404))
    const { workspaceId } = await makeWorkspace(wb, { kind: 'openrag' })
    const answer = await wb.send(`GET /api/v1/workspaces/${workspaceId}/adoptable-collections`)
    expect(answer).toMatchObject(refused('driver_unavailable', 503))
  })
})

describe('order of the checks when attaching a collection', () => {
  const services = { provider: 'nvidia', modelName: 'nv-embedqa' }
  const attach = (name: string, fields: object) => ({ name, vectorCollection: name, attach: true, ...fields })

  test('S7.3-vector_collection_required: requires a collection first, then a matching name, then the workspace', async () => {
    const { create, wb } = await stage()
    expect(await create({ name: 'a', attach: true })).toMatchObject(
      refused('vector_collection_required', 400),
    )
    const other = { name: 'a', attach: true, vectorCollection: 'b', embeddingServiceId: unknownId }
    expect(await create(other)).toMatchObject(refused('kb_name_must_match_collection', 400))
    const nowhere = `POST /api/v1/workspaces/${unknownId}/knowledge-bases`
    expect(await wb.send(nowhere, other)).toMatchObject(refused('kb_name_must_match_collection', 400))
    expect(await wb.send(nowhere, attach('a', {}))).toMatchObject(refused('workspace_not_found', 404))
  })

  test('S7.3-collection_not_found: looks up the collection after the embedding service and before its other checks', async () => {
    const { create, embeddingServiceId } = await stage()
    const unknown = { embeddingServiceId: unknownId, chunkingServiceId: unknownId }
    expect(await create(attach('absent', unknown))).toMatchObject(refused('embedding_service_not_found', 404))
    const known = { ...unknown, embeddingServiceId }
    expect(await create(attach('absent', known))).toMatchObject(refused('collection_not_found', 404))
  })

  test('S7.3-vector_collection_required: rejects a collection without vectors before a wrong dimension', async () => {
    const { create, embeddingServiceId } = await stage({ name: 'words', dimension: 0 })
    const body = attach('words', { embeddingServiceId, chunkingServiceId: unknownId })
    expect(await create(body)).toMatchObject(refused('vector_collection_required', 400))
  })

  test('S7.3-dimension_mismatch: rejects a wrong dimension before a wrong service of the collection', async () => {
    const { create, embeddingServiceId } = await stage({
      name: 'wide',
      dimension: 5,
      vectorService: services,
    })
    const body = attach('wide', { embeddingServiceId, chunkingServiceId: unknownId })
    expect(await create(body)).toMatchObject(refused('dimension_mismatch', 400))
  })

  test.each([
    ['another provider', { provider: 'nvidia', modelName: 'mock-embedder' }],
    ['another model', { provider: 'mock', modelName: 'other' }],
  ])(
    'S7.3-vectorize_service_mismatch: rejects %s before unknown other services',
    async (_what, vectorService) => {
      const { create, embeddingServiceId } = await stage({ name: 'served', vectorService })
      const body = attach('served', { embeddingServiceId, chunkingServiceId: unknownId })
      expect(await create(body)).toMatchObject(refused('vectorize_service_mismatch', 400))
    },
  )

  test('S7.3-vectorize_service_mismatch: rejects vectors of another embedder for the built-in embedder', async () => {
    const { create, builtIn } = await stage({ name: 'theirs', dimension: 128 })
    expect(await create(attach('theirs', { embeddingServiceId: builtIn }))).toMatchObject(
      refused('vectorize_service_mismatch', 400),
    )
  })

  test('checks chunking, reranking, the ID, and last if the collection is in use', async () => {
    const { create, embeddingServiceId, chunkingServiceId } = await stage(
      { name: 'served', vectorService: { provider: 'mock', modelName: 'mock-embedder' } },
      { name: 'free' },
    )
    const body = { embeddingServiceId, chunkingServiceId: unknownId, rerankingServiceId: unknownId }
    expect(await create(attach('served', body))).toMatchObject(refused('chunking_service_not_found', 404))
    const reranked = { ...body, chunkingServiceId }
    expect(await create(attach('served', reranked))).toMatchObject(
      refused('reranking_service_not_found', 404),
    )
    const plainBody = { ...reranked, rerankingServiceId: null }
    const made = await create(attach('served', plainBody))
    expect(made).toMatchObject({ status: 201, body: { owned: false, vectorCollection: 'served' } })
    const { knowledgeBaseId } = made.body
    expect(await create(attach('served', { ...plainBody, knowledgeBaseId }))).toMatchObject(
      refused('conflict', 409),
    )
    expect(await create(attach('served', plainBody))).toMatchObject(refused('collection_name_taken', 409))
    expect(await create({ name: 'served', ...plainBody })).toMatchObject(refused('kb_name_taken', 409))
    expect(await create({ name: 'free', embeddingServiceId: unknownId })).toMatchObject(
      refused('collection_name_taken', 409),
    )
  })

  test('only one of several concurrent requests attaches a collection', async () => {
    const { create, embeddingServiceId } = await stage({ name: 'raced' })
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => create(attach('raced', { embeddingServiceId }))),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409, 409])
    for (const answer of answers.filter(({ status }) => status === 409))
      expect(answer).toMatchObject(refused('collection_name_taken', 409))
  })
})

describe('order of the checks when creating a collection', () => {
  test('rejects an existing ID before a dimension that the built-in embedder does not have', async () => {
    const { wb, create, workspaceId } = await stage()
    const { knowledgeBaseId } = (await makeBase(wb, { workspaceId })).params
    const { embeddingServiceId } = await makeMockService(wb, workspaceId, {
      provider: 'workbase',
      modelName: 'workbase-lsa',
      embeddingDimension: 64,
    })
    const body = { name: 'narrow', embeddingServiceId }
    expect(await create({ ...body, knowledgeBaseId })).toMatchObject(refused('conflict', 409))
    expect(await create(body)).toMatchObject(refused('dimension_mismatch', 400))
  })
})

test('deleting a knowledge base removes its documents from an attached collection', async () => {
  const { wb, workspaceId, embeddingServiceId } = await stage()
  const store = await openEmbeddedStore({ path: join(wb.dataDir, 'workbase.db') })
  onTestFinished(() => store.close())
  const key = { workspaceId, name: 'theirs' }
  const record = { documentId: 'before', chunkIndex: 0, title: null, text: 'kept', payload: {} }
  await store.content.write(
    [
      {
        op: 'createCollection',
        ...key,
        dimension: 3,
        metric: 'cosine',
        lexical: true,
        language: null,
        fitted: false,
      },
      {
        op: 'upsert',
        ...key,
        generation: 0,
        records: [{ id: 'r', ...record, vector: Float32Array.of(1, 0, 0) }],
      },
    ],
    [],
  )
  const adopt = () =>
    makeBase(wb, {
      workspaceId,
      embeddingServiceId,
      name: 'theirs',
      attach: true,
      vectorCollection: 'theirs',
    })
  const base = await adopt()
  await base.ingest('Only as long as the knowledge base.')
  expect(await base.search('kept knowledge')).toHaveLength(2)
  await base.delete()
  expect(await store.content.collection(key)).toMatchObject({ records: 1 })
  expect((await (await adopt()).search('kept knowledge')).map(({ id }) => id)).toEqual(['r'])
})

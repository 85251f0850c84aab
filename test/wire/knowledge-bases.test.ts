import { describe, expect, test } from 'vitest'
import { anyNumber, anyText, count, exactly, isoMs, oneOf, uuid } from './exactly.ts'
import { freshName, idOf, makeKnowledgeBase, makeWorkspace } from './fixtures.ts'
import { expectRefusal, past, type Row, useServer } from './harness.ts'
import { knowledgeBase, notUuid, unknownId } from './shapes.ts'

const wire = useServer()
const off = { enabled: false, analyzer: null, options: {} }

async function firstServices(
  workspace: string,
): Promise<{ embeddingServiceId: string; chunkingServiceId: string }> {
  const [embedding] = await wire.items(`${workspace}/embedding-services`)
  const [chunking] = await wire.items(`${workspace}/chunking-services`)
  return {
    embeddingServiceId: String(embedding!.embeddingServiceId),
    chunkingServiceId: String(chunking!.chunkingServiceId),
  }
}

describe('creating knowledge bases', () => {
  test('requires a name and two services in a mock workspace', async () => {
    const workspace = await makeWorkspace(wire, { kind: 'mock' })
    const services = await firstServices(workspace)
    await wire.exchange(`POST ${workspace}/knowledge-bases`, { name: 'handbook', ...services }, 201, {
      ...knowledgeBase({
        workspaceId: idOf(workspace),
        name: 'handbook',
        vectorCollection: 'handbook',
        owned: true,
        lexical: off,
        ...services,
      }),
      astraQueries: [],
    })
  })

  test('uses the first service of each kind and lexical search by default in a local workspace', async () => {
    const workspace = await makeWorkspace(wire)
    const services = await firstServices(workspace)
    await wire.exchange(`POST ${workspace}/knowledge-bases`, { name: 'short' }, 201, {
      ...knowledgeBase({
        name: 'short',
        vectorCollection: 'short',
        lexical: { enabled: true, analyzer: null, options: {} },
        ...services,
      }),
      astraQueries: [],
    })
  })

  test('stores every field that callers can set, and ignores policy fields', async () => {
    const workspace = await makeWorkspace(wire)
    const chosen = {
      knowledgeBaseId: '3e1c1a52-6f0e-4c0e-9d53-2f3a4b5c6d73',
      name: 'Chosen_1',
      description: 'all fields',
      status: 'draft',
      ...(await firstServices(workspace)),
      rerankingServiceId: null,
      language: 'en',
      lexical: { enabled: false, analyzer: 'standard', options: { stopwords: 'none' } },
    }
    const sent = {
      ...chosen,
      vectorCollection: '',
      attach: false,
      policyDsl: 'allow all',
      policyEnabled: true,
    }
    const { astraQueries: _, ...created } = await wire.exchange(
      `POST ${workspace}/knowledge-bases`,
      sent,
      201,
      {
        ...knowledgeBase({ ...chosen, vectorCollection: 'Chosen_1', policyDsl: null, policyEnabled: false }),
        astraQueries: [],
      },
    )
    await wire.exchange(`GET ${workspace}/knowledge-bases`, undefined, 200, {
      items: [{ ...created, size: { documents: 0, bytes: 0 } }],
      nextCursor: null,
    })
  })

  test('treats vectorCollection null like an omitted field', async () => {
    const workspace = await makeWorkspace(wire)
    await wire.exchange(
      `POST ${workspace}/knowledge-bases`,
      { name: 'nulled', vectorCollection: null },
      201,
      {
        ...knowledgeBase({ vectorCollection: 'nulled' }),
        astraQueries: [],
      },
    )
  })

  test.each(['', '1abc', '_abc', 'a-b', 'a b', 'ä', `a${'b'.repeat(48)}`, 5, null])(
    'S7.3-validation_error: rejects the name %j',
    async name => {
      const workspace = await makeWorkspace(wire)
      await wire.refused(
        `POST ${workspace}/knowledge-bases`,
        { json: { name } },
        400,
        'validation_error',
        /^name: /,
      )
    },
  )

  test('accepts a name of 48 characters', async () => {
    const workspace = await makeWorkspace(wire)
    await makeKnowledgeBase(wire, workspace, { name: `a${'b'.repeat(47)}` })
  })

  test('requires all three fields of lexical', async () => {
    const workspace = await makeWorkspace(wire)
    for (const lexical of [
      { enabled: true },
      { enabled: true, analyzer: null },
      { analyzer: null, options: {} },
      null,
    ]) {
      const json = { name: freshName('kb'), lexical }
      await wire.refused(`POST ${workspace}/knowledge-bases`, { json }, 400, 'validation_error', /^lexical/)
    }
  })

  test('S7.3-kb_name_taken S7.3-05: a name is unique within a workspace and can be reused in another', async () => {
    const workspace = await makeWorkspace(wire)
    await makeKnowledgeBase(wire, workspace, { name: 'taken' })
    await wire.refused(`POST ${workspace}/knowledge-bases`, { json: { name: 'taken' } }, 409, 'kb_name_taken')
    expect(await wire.items(`${workspace}/knowledge-bases`)).toHaveLength(1)
    await makeKnowledgeBase(wire, await makeWorkspace(wire), { name: 'taken' })
  })

  test('S7.3-kb_name_taken: only one of several concurrent requests with one name succeeds', async () => {
    const workspace = await makeWorkspace(wire)
    const replies = await Promise.all(
      Array.from({ length: 6 }, () =>
        wire.send(`POST ${workspace}/knowledge-bases`, { json: { name: 'raced' } }),
      ),
    )
    for (const reply of replies.filter(({ status }) => status !== 201))
      expectRefusal(reply, 409, 'kb_name_taken', 'the loser of a race')
    expect(replies.filter(({ status }) => status === 201)).toHaveLength(1)
    expect(await wire.items(`${workspace}/knowledge-bases`)).toHaveLength(1)
  })

  test('S7.3-conflict: an existing ID is 409', async () => {
    const workspace = await makeWorkspace(wire)
    const knowledgeBaseId = idOf(await makeKnowledgeBase(wire, workspace))
    const json = { name: freshName('kb'), knowledgeBaseId }
    await wire.refused(`POST ${workspace}/knowledge-bases`, { json }, 409, 'conflict')
  })

  test('S7.3-embedding_service_not_found S7.3-chunking_service_not_found: rejects unknown services', async () => {
    const list = `${await makeWorkspace(wire)}/knowledge-bases`
    const name = 'unbound'
    const cases = [
      [{ embeddingServiceId: unknownId }, 'embedding_service_not_found'],
      [{ chunkingServiceId: unknownId }, 'chunking_service_not_found'],
      [{ rerankingServiceId: unknownId }, 'reranking_service_not_found'],
    ] as const
    for (const [ids, code] of cases) await wire.refused(`POST ${list}`, { json: { name, ...ids } }, 404, code)
    expect(await wire.items(list)).toEqual([])
  })

  test('S1-07: does not find services of another workspace', async () => {
    const foreign = await firstServices(await makeWorkspace(wire))
    const list = `${await makeWorkspace(wire)}/knowledge-bases`
    const { embeddingServiceId, chunkingServiceId } = foreign
    await wire.refused(
      `POST ${list}`,
      { json: { name: 'a', embeddingServiceId } },
      404,
      'embedding_service_not_found',
    )
    await wire.refused(
      `POST ${list}`,
      { json: { name: 'a', chunkingServiceId } },
      404,
      'chunking_service_not_found',
    )
  })

  test.each(['hcd', 'openrag'])(
    'S7.3-driver_unavailable: fails without a driver in an %s workspace and stores no row',
    async kind => {
      const bound = {
        url: `https://${freshName(kind).replace('_', '')}.example`,
        keyspace: 'ks',
        credentials: { token: 'env:TOKEN' },
      }
      const workspace = await makeWorkspace(wire, { kind, ...bound })
      const list = `${workspace}/knowledge-bases`
      await wire.refused(
        `POST ${list}`,
        { json: { name: 'a', ...(await firstServices(workspace)) } },
        503,
        'driver_unavailable',
      )
      expect(await wire.items(list)).toEqual([])
    },
  )
})

describe('order of the checks', () => {
  const nowhere = `/api/v1/workspaces/${unknownId}/knowledge-bases`
  const unknown = {
    embeddingServiceId: unknownId,
    chunkingServiceId: unknownId,
    rerankingServiceId: unknownId,
  }

  test('S7.3-vector_collection_not_allowed: first rejects a collection for an owned knowledge base, before an unknown workspace', async () => {
    const list = `${await makeWorkspace(wire)}/knowledge-bases`
    const json = { name: 'a', vectorCollection: 'a' }
    await wire.refused(`POST ${list}`, { json }, 400, 'vector_collection_not_allowed')
    await wire.refused(`POST ${nowhere}`, { json }, 400, 'vector_collection_not_allowed')
    expect(await wire.items(list)).toEqual([])
  })

  test('S7.3-workspace_not_found: then rejects an unknown workspace', async () => {
    await wire.refused(`POST ${nowhere}`, { json: { name: 'a', ...unknown } }, 404, 'workspace_not_found')
  })

  test('then checks the name, the services in order, and the ID', async () => {
    const workspace = await makeWorkspace(wire)
    const list = `${workspace}/knowledge-bases`
    const knowledgeBaseId = idOf(await makeKnowledgeBase(wire, workspace, { name: 'held' }))
    const services = await firstServices(workspace)
    const body = { name: 'free', knowledgeBaseId, ...unknown }
    await wire.refused(`POST ${list}`, { json: { ...body, name: 'held' } }, 409, 'kb_name_taken')
    await wire.refused(`POST ${list}`, { json: body }, 404, 'embedding_service_not_found')
    const { embeddingServiceId } = services
    await wire.refused(
      `POST ${list}`,
      { json: { ...body, embeddingServiceId } },
      404,
      'chunking_service_not_found',
    )
    await wire.refused(`POST ${list}`, { json: { ...body, ...services } }, 404, 'reranking_service_not_found')
    await wire.refused(
      `POST ${list}`,
      { json: { ...body, ...services, rerankingServiceId: null } },
      409,
      'conflict',
    )
    expect(await wire.items(list)).toHaveLength(1)
  })

  test('when attaching, first requires a collection, then a matching name, then the workspace', async () => {
    for (const vectorCollection of [undefined, null, ''])
      await wire.refused(
        `POST ${nowhere}`,
        { json: { name: 'a', attach: true, vectorCollection } },
        400,
        'vector_collection_required',
      )
    const other = { name: 'a', attach: true, vectorCollection: 'b' }
    await wire.refused(`POST ${nowhere}`, { json: other }, 400, 'kb_name_must_match_collection')
    const same = { name: 'a', attach: true, vectorCollection: 'a', ...unknown }
    await wire.refused(`POST ${nowhere}`, { json: same }, 404, 'workspace_not_found')
  })

  test.each(['local', 'mock'])(
    'when attaching in a %s workspace, checks the embedder, then the collection',
    async kind => {
      const workspace = await makeWorkspace(wire, { kind })
      const list = `${workspace}/knowledge-bases`
      const services = await firstServices(workspace)
      const body = { name: 'absent', attach: true, vectorCollection: 'absent', ...unknown }
      await wire.refused(`POST ${list}`, { json: body }, 404, 'embedding_service_not_found')
      const { embeddingServiceId } = services
      await wire.refused(
        `POST ${list}`,
        { json: { ...body, embeddingServiceId } },
        404,
        'collection_not_found',
      )
      expect(await wire.items(list)).toEqual([])
    },
  )

  test('S7.3-collection_name_taken: rejects a collection that another knowledge base uses', async () => {
    const workspace = await makeWorkspace(wire)
    const list = `${workspace}/knowledge-bases`
    await makeKnowledgeBase(wire, workspace, { name: 'held' })
    const json = { name: 'held', attach: true, vectorCollection: 'held', ...(await firstServices(workspace)) }
    const reply = await wire.send(`POST ${list}`, { json })
    expect(reply.status, reply.text).toBe(409)
    expect((reply.body as { error: Row }).error.code).toMatch(/^(collection_name_taken|conflict)$/)
    expect(await wire.items(list)).toHaveLength(1)
  })
})

describe('showing, listing, changing and deleting knowledge bases', () => {
  test('GET adds the state of the built-in embedder, and the list omits it', async () => {
    const workspace = await makeWorkspace(wire)
    const kb = await makeKnowledgeBase(wire, workspace)
    await wire.exchange(`GET ${kb}`, undefined, 200, {
      ...knowledgeBase({ knowledgeBaseId: idOf(kb) }),
      embedder: { version: anyText, state: 'placeholder', fittedChunks: 0, chunks: 0 },
    })
    await wire.exchange(`GET ${workspace}/knowledge-bases`, undefined, 200, {
      items: [knowledgeBase({ knowledgeBaseId: idOf(kb), size: { documents: 0, bytes: 0 } })],
      nextCursor: null,
    })
  })

  test('GET omits the state with another embedding service', async () => {
    const workspace = await makeWorkspace(wire, { kind: 'mock' })
    const kb = await makeKnowledgeBase(wire, workspace, await firstServices(workspace))
    await wire.exchange(`GET ${kb}`, undefined, 200, knowledgeBase({ lexical: off }))
  })

  test('PATCH changes the fields that can change, and null clears a field', async () => {
    const kb = await makeKnowledgeBase(wire, await makeWorkspace(wire), {
      description: 'before',
      language: 'en',
    })
    const { embedder: _, ...before } = await wire.get(kb)
    await past(before.updatedAt)
    const patch = {
      description: null,
      status: 'deprecated',
      rerankingServiceId: null,
      language: null,
      lexical: { enabled: false, analyzer: null, options: { a: 'b' } },
      policyDsl: "status = 'open'",
      policyEnabled: true,
    }
    const updatedAt = knowledgeBase().updatedAt
    const after = await wire.exchange(`PATCH ${kb}`, patch, 200, { ...before, ...patch, updatedAt })
    expect(String(after.updatedAt) > String(before.updatedAt)).toBe(true)
    await past(after.updatedAt)
    const touched = await wire.exchange(`PATCH ${kb}`, {}, 200, { ...after, updatedAt })
    expect(String(touched.updatedAt) > String(after.updatedAt)).toBe(true)
  })

  test.each([
    ['name', 'other'],
    ['embeddingServiceId', unknownId],
    ['chunkingServiceId', unknownId],
    ['vectorCollection', 'other'],
    ['owned', false],
    ['knowledgeBaseId', unknownId],
    ['colour', 'red'],
  ])('S7.3-13: PATCH rejects %s by name, which is unknown or cannot change', async (field, value) => {
    const kb = await makeKnowledgeBase(wire, await makeWorkspace(wire))
    const before = await wire.get(kb)
    const json = { description: 'never', [field]: value }
    await wire.refused(`PATCH ${kb}`, { json }, 400, 'validation_error', new RegExp(field))
    await wire.exchange(`GET ${kb}`, undefined, 200, before)
  })

  test('renames a knowledge base, which keeps its collection, and frees the old name', async () => {
    const workspace = await makeWorkspace(wire)
    const kb = await makeKnowledgeBase(wire, workspace, { name: 'before' })
    await wire.send(`POST ${kb}/ingest`, { json: { text: 'One short passage about gliders.' } })
    const renamed = { ...knowledgeBase({ name: 'after', vectorCollection: 'before' }) }
    await wire.exchange(`POST ${kb}/rename`, { name: 'after' }, 200, renamed)
    await wire.exchange(`POST ${kb}/rename`, { name: 'after' }, 200, renamed)
    const found = await wire.send(`POST ${kb}/search`, { json: { text: 'gliders' } })
    expect(found.body).toHaveLength(1)
    const next = await makeKnowledgeBase(wire, workspace, { name: 'before' })
    expect(await wire.get(next)).toMatchObject({
      name: 'before',
      vectorCollection: expect.stringMatching(/^before_[0-9a-f]{8}$/),
    })
    expect((await wire.send(`POST ${next}/search`, { json: { text: 'gliders' } })).body).toEqual([])
    await wire.refused(`POST ${kb}/rename`, { json: { name: 'before' } }, 409, 'kb_name_taken')
    await wire.refused(`POST ${workspace}/knowledge-bases`, { json: { name: 'after' } }, 409, 'kb_name_taken')
    await wire.exchange(`DELETE ${kb}`, undefined, 204, undefined)
    await makeKnowledgeBase(wire, workspace, { name: 'after' })
    await wire.refused(`POST ${kb}/rename`, { json: { name: 'more' } }, 404, 'knowledge_base_not_found')
  })

  test('S7.3-kb_name_taken: only one of several requests that rename to one name succeeds', async () => {
    const workspace = await makeWorkspace(wire)
    const bases = await Promise.all(
      ['one', 'two', 'three'].map(name => makeKnowledgeBase(wire, workspace, { name })),
    )
    const replies = await Promise.all(
      bases.map(kb => wire.send(`POST ${kb}/rename`, { json: { name: 'wanted' } })),
    )
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 409, 409])
  })

  test('PATCH with an unknown reranking service is 404', async () => {
    const kb = await makeKnowledgeBase(wire, await makeWorkspace(wire))
    await wire.refused(
      `PATCH ${kb}`,
      { json: { rerankingServiceId: unknownId } },
      404,
      'reranking_service_not_found',
    )
  })

  test('DELETE returns 204 with an empty body, deletes the documents and frees the name', async () => {
    const workspace = await makeWorkspace(wire)
    const kb = await makeKnowledgeBase(wire, workspace, { name: 'ended' })
    const documentId = await wire.make(`${kb}/documents`, {}, 'documentId')
    await wire.exchange(`DELETE ${kb}`, undefined, 204, undefined)
    await wire.refused(`GET ${kb}`, {}, 404, 'knowledge_base_not_found')
    await wire.refused(`GET ${kb}/documents/${documentId}`, {}, 404, 'knowledge_base_not_found')
    const again = await makeKnowledgeBase(wire, workspace, { name: 'ended' })
    expect(await wire.items(`${again}/documents`)).toEqual([])
    await wire.exchange(`POST ${again}/search`, { text: 'anything' }, 200, [])
  })

  test('S7.3-knowledge_base_not_found: an unknown ID is 404 on every route below it', async () => {
    const kb = `${await makeWorkspace(wire)}/knowledge-bases/${unknownId}`
    const words = new RegExp(`^knowledge base '${unknownId}' not found$`)
    await wire.refused(`GET ${kb}`, {}, 404, 'knowledge_base_not_found', words)
    const lines: [string, unknown?][] = [
      [`PATCH ${kb}`, {}],
      [`DELETE ${kb}`],
      [`POST ${kb}/search`, { text: 'x' }],
      [`GET ${kb}/documents`],
      [`POST ${kb}/documents`, {}],
      [`GET ${kb}/documents/${unknownId}`],
      [`PATCH ${kb}/documents/${unknownId}`, {}],
      [`DELETE ${kb}/documents/${unknownId}`],
      [`POST ${kb}/documents/bulk-delete`, { documentIds: [unknownId] }],
      [`GET ${kb}/documents/${unknownId}/chunks`],
      [`POST ${kb}/ingest`, { text: 'x' }],
      [`POST ${kb}/records`, { records: [{ id: 'a', text: 'x' }] }],
      [`DELETE ${kb}/records/a`],
    ]
    for (const [line, json] of lines)
      await wire.refused(line, json === undefined ? {} : { json }, 404, 'knowledge_base_not_found')
    const raw = '{"text":"x"}\n'
    const headers = { 'content-type': 'application/x-ndjson' }
    await wire.refused(`POST ${kb}/ingest/batch`, { raw, headers }, 404, 'knowledge_base_not_found')
  })

  test('S7.3-workspace_not_found: reports an unknown workspace before an unknown knowledge base', async () => {
    const kb = `/api/v1/workspaces/${unknownId}/knowledge-bases/${unknownId}`
    for (const line of [`GET ${kb}`, `DELETE ${kb}`, `GET ${kb}/documents`])
      await wire.refused(line, {}, 404, 'workspace_not_found')
    await wire.refused(`POST ${kb}/search`, { json: { text: 'x' } }, 404, 'workspace_not_found')
  })

  test('rejects IDs that are not UUIDs', async () => {
    const path = `${await makeWorkspace(wire)}/knowledge-bases/${notUuid}`
    await wire.refused(`GET ${path}`, {}, 400, 'validation_error', /^knowledgeBaseId: /)
  })

  test('reports the progress of the built-in embedder', async () => {
    const kb = await makeKnowledgeBase(wire, await makeWorkspace(wire))
    await wire.send(`POST ${kb}/ingest`, { json: { text: 'One short passage about gliders.' } })
    await wire.exchange(`GET ${kb}`, undefined, 200, {
      ...knowledgeBase(),
      embedder: {
        version: anyText,
        state: oneOf('placeholder', 'fitting', 'ready'),
        fittedChunks: oneOf(0, 1),
        chunks: 1,
      },
    })
  })

  test('reports counts, sizes, the state of the index, and the times of searches', async () => {
    const kb = await makeKnowledgeBase(wire, await makeWorkspace(wire))
    const empty = { ...knowledgeBaseStats, documents: 0, chunks: 0, lastWriteAt: null, searches: [] }
    await wire.exchange(`GET ${kb}/stats`, undefined, 200, empty)
    await wire.send(`POST ${kb}/ingest`, { json: { text: 'One short passage about gliders.' } })
    await wire.send(`POST ${kb}/search`, { json: { text: 'gliders' } })
    await wire.exchange(`GET ${kb}/stats`, undefined, 200, {
      ...knowledgeBaseStats,
      documents: 1,
      chunks: 1,
      lastWriteAt: isoMs,
      searches: [{ mode: 'hybrid', count: 1, p50Ms: anyNumber, p95Ms: anyNumber }],
    })
  })

  test('lists each knowledge base with the size that its statistics have', async () => {
    const workspace = await makeWorkspace(wire)
    const kb = await makeKnowledgeBase(wire, workspace)
    await makeKnowledgeBase(wire, workspace)
    for (const text of ['One short passage about gliders.', 'Another one about kites.'])
      await wire.send(`POST ${kb}/ingest`, { json: { text } })
    const { bytes } = (await wire.get(`${kb}/stats`)) as { bytes: { total: number } }
    const items = await wire.items(`${workspace}/knowledge-bases`)
    expect(items.map(({ size }) => size)).toEqual([
      { documents: 2, bytes: bytes.total },
      { documents: 0, bytes: 0 },
    ])
    const documents = await wire.items(`${kb}/documents`)
    await wire.send(`DELETE ${kb}/documents/${documents[0]!.documentId}`)
    const [left] = await wire.items(`${workspace}/knowledge-bases`)
    expect(left!.size).toMatchObject({ documents: 1 })
  })
})

describe('compacting knowledge bases', () => {
  const size = {
    index: { segments: count, bytes: count },
    file: { bytes: count, freeBytes: count, canShrink: true },
  }
  const compaction = { workspaceId: uuid, knowledgeBaseId: uuid, before: size, after: size }

  test('returns the sizes before and after, and leaves one segment', async () => {
    const kb = await makeKnowledgeBase(wire, await makeWorkspace(wire))
    for (const text of ['One short passage about gliders.', 'Another one about kites.'])
      await wire.send(`POST ${kb}/ingest`, { json: { text } })
    await wire.exchange(`POST ${kb}/compact`, undefined, 200, {
      ...compaction,
      after: { ...size, index: { segments: 1, bytes: count } },
    })
    expect(await wire.get(`${kb}/stats`)).toMatchObject({ index: { segments: 1, deletedShare: 0 } })
    const found = await wire.send(`POST ${kb}/search`, { json: { text: 'kites', lexicalWeight: 1 } })
    expect(found.body).toHaveLength(1)
  })

  test('streams the result as the last event to a client that accepts events', async () => {
    const kb = await makeKnowledgeBase(wire, await makeWorkspace(wire))
    const reply = await wire.send(`POST ${kb}/compact`, { headers: { accept: 'text/event-stream' } })
    expect(reply).toMatchObject({ status: 200, headers: { 'content-type': 'text/event-stream' } })
    const last = reply.text.trimEnd().split('\n\n').at(-1)!
    const [event, data] = last.split('\n')
    expect(event).toBe('event: done')
    exactly(JSON.parse(data!.replace('data: ', '')), compaction)
  })

  test('returns empty sizes for a store in which deleted chunks leave nothing', async () => {
    const workspace = await makeWorkspace(wire, { kind: 'mock' })
    const kb = await makeKnowledgeBase(wire, workspace, await firstServices(workspace))
    const none = { index: null, file: null }
    await wire.exchange(`POST ${kb}/compact`, undefined, 200, { ...compaction, before: none, after: none })
  })

  test('S7.3-knowledge_base_not_found: rejects an unknown knowledge base, also as an event stream', async () => {
    const line = `POST ${await makeWorkspace(wire)}/knowledge-bases/${unknownId}/compact`
    await wire.refused(line, {}, 404, 'knowledge_base_not_found')
    const headers = { accept: 'text/event-stream' }
    await wire.refused(line, { headers }, 404, 'knowledge_base_not_found')
  })
})

const knowledgeBaseStats = {
  workspaceId: uuid,
  knowledgeBaseId: uuid,
  bytes: { total: count, text: count, metadata: count, vectors: count, index: count },
  vectors: { count, dimension: count, metric: 'cosine', memoryBytes: count },
  index: {
    state: 'ready',
    language: 'auto',
    generation: 1,
    segments: count,
    terms: count,
    deletedShare: 0,
    mergePending: oneOf(true, false),
    building: null,
    failure: null,
  },
}

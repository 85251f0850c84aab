import { describe, expect, test } from 'vitest'
import { near } from './exactly.ts'
import { makePlace, makeVectorPlace } from './fixtures.ts'
import { useServer } from './harness.ts'
import { unknownId } from './shapes.ts'

const wire = useServer()

/** Returns all stored records, best first for this direction. */
const everything = { vector: [1, 0, 0], topK: 1000 }

async function storedIds(kb: string): Promise<unknown[]> {
  const reply = await wire.send(`POST ${kb}/search`, { json: everything })
  expect(reply.status, reply.text).toBe(200)
  return (reply.body as { id: string }[]).map(hit => hit.id)
}

describe('upserting records', () => {
  test('returns 200 with the count, accepts vector and text records together, and returns payloads in hits', async () => {
    const { kb } = await makeVectorPlace(wire)
    const records = [
      { id: 'red', vector: [1, 0, 0], payload: { colour: 'red', deep: { list: [1, null, 'a'] }, big: 1e15 } },
      { id: 'with spaces/and:marks', vector: [0, 1, 0], payload: {} },
      { id: 'words', text: 'a record of words', payload: { colour: 'none' } },
    ]
    await wire.exchange(`POST ${kb}/records`, { records }, 200, { upserted: 3 })
    await wire.exchange(`POST ${kb}/search`, { vector: [1, 0, 0], topK: 1 }, 200, [
      { id: 'red', score: near(1), payload: records[0]!.payload },
    ])
    expect((await storedIds(kb)).sort()).toEqual(['red', 'with spaces/and:marks', 'words'])
  })

  test('replaces a record with the same ID completely', async () => {
    const { kb } = await makeVectorPlace(wire)
    const put = (record: object) =>
      wire.exchange(`POST ${kb}/records`, { records: [record] }, 200, { upserted: 1 })
    await put({ id: 'a', vector: [0, 1, 0], payload: { first: true } })
    await put({ id: 'a', vector: [1, 0, 0], payload: { second: true } })
    await wire.exchange(`POST ${kb}/search`, everything, 200, [
      { id: 'a', score: near(1), payload: { second: true } },
    ])
  })

  test.each([
    ['records', {}],
    ['records', { records: [] }],
    ['records', { records: 'all' }],
    ['records.0.id', { records: [{ vector: [1, 0, 0] }] }],
    ['records.0.id', { records: [{ id: '', vector: [1, 0, 0] }] }],
    [
      'records.1.id',
      {
        records: [
          { id: 'a', vector: [1, 0, 0] },
          { id: 5, vector: [1, 0, 0] },
        ],
      },
    ],
    ['records.0.vector', { records: [{ id: 'a', vector: [] }] }],
    ['records.0.vector', { records: [{ id: 'a', vector: [1, 'a', 0] }] }],
    ['records.0.vector', { records: [{ id: 'a', vector: [1, null, 0] }] }],
    ['records.0.text', { records: [{ id: 'a', text: '' }] }],
    ['records.0.payload', { records: [{ id: 'a', vector: [1, 0, 0], payload: ['x'] }] }],
    ['records.0', { records: [{ id: 'a' }] }],
    ['records.0', { records: [{ id: 'a', vector: [1, 0, 0], text: 'both' }] }],
  ])('S7.3-13 S7.3-validation_error: rejects %s by name and stores nothing', async (field, json) => {
    const { kb } = await makeVectorPlace(wire)
    const words = new RegExp(`^${field.replaceAll('.', '\\.')}(\\.\\d+)?: `)
    await wire.refused(`POST ${kb}/records`, { json }, 400, 'validation_error', words)
    expect(await storedIds(kb)).toEqual([])
  })

  test('S7.3-dimension_mismatch: rejects the whole batch if one vector has another dimension', async () => {
    const { kb } = await makeVectorPlace(wire)
    for (const vector of [
      [1, 0],
      [1, 0, 0, 0],
    ]) {
      const records = [
        { id: 'fine', vector: [1, 0, 0] },
        { id: 'off', vector },
      ]
      const words = /^records\.1\.vector: /
      await wire.refused(`POST ${kb}/records`, { json: { records } }, 400, 'dimension_mismatch', words)
    }
    expect(await storedIds(kb)).toEqual([])
  })

  test('S7.3-dimension_mismatch: expects 1,024 dimensions with the default embedder of a mock workspace', async () => {
    const { kb } = await makePlace(wire, { kind: 'mock' })
    const records = [{ id: 'short', vector: [1, 0, 0] }]
    await wire.refused(`POST ${kb}/records`, { json: { records } }, 400, 'dimension_mismatch')
    const whole = [{ id: 'whole', vector: [1, ...Array(1023).fill(0)] }]
    await wire.exchange(`POST ${kb}/records`, { records: whole }, 200, { upserted: 1 })
  })

  test.each(['knowledgeBaseId', 'documentId', 'chunkIndex', 'chunkText', 'visible_to', 'chunker.id'])(
    'S7.3-invalid_metadata: rejects the reserved key %s',
    async key => {
      const { kb } = await makeVectorPlace(wire)
      const records = [
        { id: 'fine', vector: [0, 1, 0] },
        { id: 'forged', vector: [1, 0, 0], payload: { [key]: '*' } },
      ]
      await wire.refused(
        `POST ${kb}/records`,
        { json: { records } },
        400,
        'invalid_metadata',
        /records\.1\.payload/,
      )
      expect(await storedIds(kb)).toEqual([])
    },
  )

  test('S7.3-vector_collection_not_allowed: rejects a vector in the space of the built-in embedder, and accepts text', async () => {
    const { kb } = await makePlace(wire)
    const raw = [{ id: 'raw', vector: [1, ...Array(127).fill(0)] }]
    await wire.refused(`POST ${kb}/records`, { json: { records: raw } }, 400, 'vector_collection_not_allowed')
    const mixed = [{ id: 'text', text: 'fine alone' }, ...raw]
    await wire.refused(
      `POST ${kb}/records`,
      { json: { records: mixed } },
      400,
      'vector_collection_not_allowed',
    )
    await wire.exchange(`POST ${kb}/search`, { text: 'fine', lexicalWeight: 1 }, 200, [])
    const records = [{ id: 'text', text: 'fine alone' }]
    await wire.exchange(`POST ${kb}/records`, { records }, 200, { upserted: 1 })
    const reply = await wire.send(`POST ${kb}/search`, { json: { text: 'fine', lexicalWeight: 1 } })
    expect(reply.body).toMatchObject([{ id: 'text' }])
  })
})

describe('deleting records', () => {
  test('reports if the record existed, and accepts any text as ID', async () => {
    const { kb } = await makeVectorPlace(wire)
    const id = 'a b/c:ä'
    await wire.exchange(`POST ${kb}/records`, { records: [{ id, vector: [1, 0, 0] }] }, 200, { upserted: 1 })
    const path = `${kb}/records/${encodeURIComponent(id)}`
    await wire.exchange(`DELETE ${path}`, undefined, 200, { deleted: true })
    await wire.exchange(`DELETE ${path}`, undefined, 200, { deleted: false })
    expect(await storedIds(kb)).toEqual([])
  })

  test('an unknown knowledge base or workspace is 404', async () => {
    const { workspace } = await makeVectorPlace(wire)
    await wire.refused(
      `DELETE ${workspace}/knowledge-bases/${unknownId}/records/a`,
      {},
      404,
      'knowledge_base_not_found',
    )
    const elsewhere = `/api/v1/workspaces/${unknownId}/knowledge-bases/${unknownId}`
    await wire.refused(`DELETE ${elsewhere}/records/a`, {}, 404, 'workspace_not_found')
  })
})

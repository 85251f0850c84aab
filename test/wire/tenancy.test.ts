import { beforeAll, expect, test } from 'vitest'
import { freshName, idOf, ingest, makeMockSpace, makePlace, type Place } from './fixtures.ts'
import { useServer } from './harness.ts'

const wire = useServer()
let mine: Place & { documentId: string; embeddingServiceId: string; chunkingServiceId: string }
let theirs: Place

beforeAll(async () => {
  const place = await makePlace(wire)
  const documentId = await ingest(wire, place.kb, { text: 'Only for this workspace: ornithopter.' })
  const embeddingServiceId = await makeMockSpace(wire, place.workspace, 3)
  const service = { name: freshName('chunking'), engine: 'langchain_ts' }
  const chunkingServiceId = await wire.make(
    `${place.workspace}/chunking-services`,
    service,
    'chunkingServiceId',
  )
  mine = { ...place, documentId, embeddingServiceId, chunkingServiceId }
  theirs = await makePlace(wire)
})

/** Reads all resources of workspace A. */
async function shown(): Promise<string> {
  const paths = [
    mine.workspace,
    mine.kb,
    `${mine.workspace}/knowledge-bases`,
    `${mine.workspace}/chunking-services`,
    `${mine.workspace}/embedding-services`,
    `${mine.kb}/documents`,
    `${mine.kb}/documents/${mine.documentId}/chunks`,
  ]
  const replies = await Promise.all(paths.map(path => wire.send(`GET ${path}`)))
  return replies.map(reply => reply.text).join('\n')
}

test('S1-07 S7.3-knowledge_base_not_found: a path of another workspace cannot read or change resources', async () => {
  const before = await shown()
  const kb = `${theirs.workspace}/knowledge-bases/${mine.knowledgeBaseId}`
  const embedding = `${theirs.workspace}/embedding-services/${mine.embeddingServiceId}`
  const chunking = `${theirs.workspace}/chunking-services/${mine.chunkingServiceId}`
  const attempts: [line: string, json: unknown, code: string][] = [
    [`GET ${kb}`, undefined, 'knowledge_base_not_found'],
    [`PATCH ${kb}`, { description: 'taken over' }, 'knowledge_base_not_found'],
    [`DELETE ${kb}`, undefined, 'knowledge_base_not_found'],
    [`POST ${kb}/search`, { text: 'ornithopter' }, 'knowledge_base_not_found'],
    [`GET ${kb}/documents`, undefined, 'knowledge_base_not_found'],
    [`POST ${kb}/documents`, {}, 'knowledge_base_not_found'],
    [`GET ${kb}/documents/${mine.documentId}`, undefined, 'knowledge_base_not_found'],
    [`PATCH ${kb}/documents/${mine.documentId}`, { sourceDocId: 'x' }, 'knowledge_base_not_found'],
    [`DELETE ${kb}/documents/${mine.documentId}`, undefined, 'knowledge_base_not_found'],
    [`POST ${kb}/documents/bulk-delete`, { documentIds: [mine.documentId] }, 'knowledge_base_not_found'],
    [`GET ${kb}/documents/${mine.documentId}/chunks`, undefined, 'knowledge_base_not_found'],
    [`GET ${kb}/documents/${mine.documentId}/explain`, undefined, 'knowledge_base_not_found'],
    [`POST ${kb}/ingest`, { text: 'planted' }, 'knowledge_base_not_found'],
    [`POST ${kb}/records`, { records: [{ id: 'planted', text: 'x' }] }, 'knowledge_base_not_found'],
    [`DELETE ${kb}/records/${mine.documentId}:0`, undefined, 'knowledge_base_not_found'],
    [`GET ${theirs.kb}/documents/${mine.documentId}`, undefined, 'document_not_found'],
    [`PATCH ${theirs.kb}/documents/${mine.documentId}`, {}, 'document_not_found'],
    [`DELETE ${theirs.kb}/documents/${mine.documentId}`, undefined, 'document_not_found'],
    [`GET ${theirs.kb}/documents/${mine.documentId}/chunks`, undefined, 'document_not_found'],
    [`GET ${embedding}`, undefined, 'embedding_service_not_found'],
    [`PATCH ${embedding}`, { name: 'x' }, 'embedding_service_not_found'],
    [`DELETE ${embedding}`, undefined, 'embedding_service_not_found'],
    [`GET ${chunking}`, undefined, 'chunking_service_not_found'],
    [`PATCH ${chunking}`, { name: 'x' }, 'chunking_service_not_found'],
    [`DELETE ${chunking}`, undefined, 'chunking_service_not_found'],
  ]
  for (const [line, json, code] of attempts)
    await wire.refused(line, json === undefined ? {} : { json }, 404, code)
  const lines = { raw: '{"text":"planted"}\n', headers: { 'content-type': 'application/x-ndjson' } }
  await wire.refused(`POST ${kb}/ingest/batch`, lines, 404, 'knowledge_base_not_found')
  expect(await shown()).toBe(before)
})

test('S1-07: lists and searches of a workspace contain nothing of another', async () => {
  const replies = await Promise.all([
    wire.send(`GET ${theirs.workspace}/knowledge-bases?limit=200`),
    wire.send(`GET ${theirs.workspace}/embedding-services?limit=200`),
    wire.send(`GET ${theirs.workspace}/chunking-services?limit=200`),
    wire.send(`GET ${theirs.kb}/documents?limit=200`),
    wire.send(`POST ${theirs.kb}/search`, { json: { text: 'ornithopter', topK: 1000 } }),
  ])
  for (const { status, text } of replies) {
    expect(status).toBe(200)
    for (const id of [mine.workspaceId, mine.knowledgeBaseId, mine.documentId, mine.embeddingServiceId])
      expect(text).not.toContain(id)
  }
})

test('S1-07: bulk delete and record delete do not affect resources of another workspace with the same IDs', async () => {
  const before = await shown()
  const reply = await wire.send(`POST ${theirs.kb}/documents/bulk-delete`, {
    json: { documentIds: [mine.documentId] },
  })
  expect(reply.body).toMatchObject({
    deleted: [],
    failed: [{ documentId: mine.documentId, code: 'not_found' }],
  })
  await wire.exchange(`DELETE ${theirs.kb}/records/${mine.documentId}:0`, undefined, 200, { deleted: false })
  expect(await shown()).toBe(before)
})

test('S1-07: identical texts, file names and IDs in two workspaces are independent', async () => {
  const text = { text: 'Known to both: theodolite.', sourceFilename: 'known.txt' }
  await ingest(wire, mine.kb, { ...text, metadata: { note: 'for us alone' } })
  const body = { name: freshName('kb'), knowledgeBaseId: mine.knowledgeBaseId }
  await wire.send(`POST ${theirs.workspace}/knowledge-bases`, { json: body })
  const twin = `${theirs.workspace}/knowledge-bases/${mine.knowledgeBaseId}`
  for (const json of [text, { ...text, text: 'Another text of that name.', overwriteOnNameConflict: true }]) {
    const reply = await wire.send(`POST ${twin}/ingest`, { json })
    expect(reply.status, reply.text).toBe(201)
    expect(reply.text).not.toContain('for us alone')
  }
  await wire.exchange(`DELETE ${twin}`, undefined, 204, undefined)
})

test('S1-07: an ID can be used in another workspace', async () => {
  const body = { name: freshName('kb'), knowledgeBaseId: mine.knowledgeBaseId }
  const reply = await wire.send(`POST ${theirs.workspace}/knowledge-bases`, { json: body })
  expect(reply.status, reply.text).toBe(201)
  expect((await wire.items(`${mine.workspace}/knowledge-bases`)).map(item => item.knowledgeBaseId)).toEqual([
    mine.knowledgeBaseId,
  ])
  await wire.exchange(
    `DELETE ${theirs.workspace}/knowledge-bases/${idOf(mine.kb)}`,
    undefined,
    204,
    undefined,
  )
  await wire.get(mine.kb)
})

import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { documents } from '../../src/contract/documents.ts'
import { kb } from '../../src/contract/knowledge.ts'
import { trash } from '../../src/contract/trash.ts'
import { checkStore } from '../../src/storage/open.ts'
import { startEmbeddingServer } from '../fakes/embedding-server.ts'
import { type Base, makeBase, makeMockService, makeWorkspace } from '../harness/resources.ts'
import { open, TestClock, type TestRuntime, waitUntil } from '../harness/runtime.ts'
import { storeFile } from '../harness/store-file.ts'

const chunker = { maxChars: 40, minChars: 0, overlapChars: 0 }
const text = 'The heron waits in the reeds. It strikes once. Then it waits again, for hours if it must.'

async function entriesOf(wb: TestRuntime, { params }: Base) {
  return (await wb.call(trash.list, { params })).items
}

async function chunksOf(wb: TestRuntime, { params }: Base, documentId: string) {
  return wb.call(documents.chunks, { params: { ...params, documentId } })
}

async function restoreAll(wb: TestRuntime, base: Base) {
  const entryIds = (await entriesOf(wb, base)).map(({ entryId }) => entryId)
  return wb.call(trash.bulkRestore, { params: base.params, body: { entryIds } })
}

test.each(['the built-in embedder', 'a provider'])(
  'a deleted document comes back with its ID, fields and chunks, with vectors of %s',
  async provider => {
    const wb = await open()
    const { workspaceId } = await makeWorkspace(wb)
    const service = provider === 'a provider' && (await makeMockService(wb, workspaceId))
    const base = await makeBase(wb, {
      workspaceId,
      ...(service && { embeddingServiceId: service.embeddingServiceId }),
    })
    const fields = {
      sourceFilename: 'birds/heron.txt',
      metadata: { title: 'Heron', team: 'birds' },
      visibleTo: ['ada'],
      chunker,
    }
    const { documentId } = (await base.ingest(text, fields)).document
    await base.ingest('The kingfisher dives for fish.')
    const [before, chunks, hits] = await Promise.all([
      wb.call(documents.show, { params: { ...base.params, documentId } }),
      chunksOf(wb, base, documentId),
      base.search('heron reeds'),
    ])
    expect(chunks.length).toBeGreaterThan(1)

    await wb.call(documents.delete, { params: { ...base.params, documentId } })
    expect((await base.search('heron reeds')).map(hit => hit.payload?.documentId)).not.toContain(documentId)
    expect(await base.documents()).toHaveLength(1)
    expect(await wb.call(kb.stats, { params: base.params })).toMatchObject({ documents: 1, chunks: 1 })
    expect(await entriesOf(wb, base)).toMatchObject([{ document: before }])

    expect(await restoreAll(wb, base)).toMatchObject({ restored: [{ documentId }], failed: [] })
    const { updatedAt: _, ...unchanged } = before
    expect(await wb.call(documents.show, { params: { ...base.params, documentId } })).toMatchObject(unchanged)
    expect(await chunksOf(wb, base, documentId)).toEqual(chunks)
    const idsOf = (found: typeof hits) => found.map(({ id }) => id)
    expect(idsOf(await base.search('heron reeds'))).toEqual(idsOf(hits))
    expect(await entriesOf(wb, base)).toEqual([])
    expect(await base.ingest(text)).toMatchObject({ outcome: 'duplicate', document: { documentId } })
  },
)

test('vectors of a provider are kept, so a restore does not need the provider', async () => {
  const wb = await open()
  const { workspaceId } = await makeWorkspace(wb)
  const provider = await startEmbeddingServer(3)
  onTestFinished(() => provider.close())
  const fields = { provider: 'ollama', endpointBaseUrl: provider.url } as const
  const { embeddingServiceId } = await makeMockService(wb, workspaceId, fields)
  const base = await makeBase(wb, { workspaceId, embeddingServiceId })
  const vectorOf = async () => (await base.search('heron', { includeEmbeddings: true }))[0]!.vector
  const { documentId } = (await base.ingest('The heron waits.')).document
  const vector = await vectorOf()
  await wb.call(documents.delete, { params: { ...base.params, documentId } })
  const requests = provider.received.length
  expect(await restoreAll(wb, base)).toMatchObject({ restored: [{ documentId }] })
  expect(provider.received).toHaveLength(requests)
  expect(await vectorOf()).toEqual(vector)
})

test.each([
  ['file name', 'Another text.', { sourceFilename: 'a.txt' }],
  ['text', 'First.', { sourceFilename: 'b.txt' }],
])('a restore does not replace a newer document with the same %s', async (_, newText, fields) => {
  const wb = await open()
  const base = await makeBase(wb)
  const { documentId } = (await base.ingest('First.', { sourceFilename: 'a.txt' })).document
  await wb.call(documents.delete, { params: { ...base.params, documentId } })
  const newer = (await base.ingest(newText, fields)).document
  const { failed } = await restoreAll(wb, base)
  expect(failed).toMatchObject([{ code: 'restore_conflict' }])
  expect(await base.documents()).toEqual([newer])

  await wb.call(documents.delete, { params: { ...base.params, documentId: newer.documentId } })
  const entries = await entriesOf(wb, base)
  const first = entries.find(({ document }) => document.contentHash !== newer.contentHash) ?? entries[0]!
  await wb.call(trash.restore, { params: { ...base.params, entryId: first.entryId } })
  expect(await base.documents()).toMatchObject([{ documentId, sourceFilename: 'a.txt' }])
})

test('documents that were deleted together have one deletion ID', async () => {
  const wb = await open()
  const base = await makeBase(wb)
  const ids: string[] = []
  for (const each of ['One.', 'Two.', 'Three.']) ids.push((await base.ingest(each)).document.documentId)
  const [first, ...others] = ids as [string, ...string[]]
  await wb.call(documents.delete, { params: { ...base.params, documentId: first } })
  await wb.call(documents.bulkDelete, { params: base.params, body: { documentIds: others } })
  const entries = await entriesOf(wb, base)
  expect(entries.map(({ document }) => document.documentId)).toEqual(ids)
  const [alone, second, third] = entries.map(({ deletionId }) => deletionId)
  expect(second).toBe(third)
  expect(alone).not.toBe(second)
})

test('a permanent deletion leaves nothing to restore, and an entry can be deleted permanently', async () => {
  const wb = await open()
  const base = await makeBase(wb)
  const [one, two, three] = await Promise.all(
    ['One.', 'Two.', 'Three.'].map(async each => (await base.ingest(each)).document.documentId),
  )
  const params = { ...base.params, documentId: one! }
  await wb.call(documents.delete, { params, query: { permanently: 'true' } })
  const body = { documentIds: [two!], permanently: true }
  await wb.call(documents.bulkDelete, { params: base.params, body })
  expect(await entriesOf(wb, base)).toEqual([])
  await wb.call(documents.delete, { params: { ...base.params, documentId: three! } })
  const [entry] = await entriesOf(wb, base)
  const { entryId } = entry!
  const purged = await wb.call(trash.bulkDelete, { params: base.params, body: { entryIds: [entryId, one!] } })
  expect(purged).toMatchObject({ deleted: [entryId], failed: [{ entryId: one, code: 'document_not_found' }] })
  expect(await entriesOf(wb, base)).toEqual([])
  expect(await restoreAll(wb, base).catch(error => error.code)).toBe('validation_error')
})

test('a document whose ingest has not finished is deleted permanently', async () => {
  const wb = await open({ server: false })
  const base = await makeBase(wb)
  const { body } = await wb.send(`POST ${base.path}/ingest?async=true`, { text: 'Later.' })
  const { documentId } = body.document as { documentId: string }
  await wb.call(documents.delete, { params: { ...base.params, documentId } })
  expect(await entriesOf(wb, base)).toEqual([])
})

test('entries expire after the retention time, and are then deleted from the store', async () => {
  const clock = new TestClock()
  const wb = await open({ clock, server: true })
  const base = await makeBase(wb)
  const { documentId } = (await base.ingest('Soon gone.')).document
  await wb.call(documents.delete, { params: { ...base.params, documentId } })
  const [entry] = await entriesOf(wb, base)
  expect(Date.parse(entry!.expiresAt) - Date.parse(entry!.deletedAt)).toBe(24 * 3_600_000)
  clock.advance(24 * 3_600_000)
  expect(await entriesOf(wb, base)).toEqual([])
  const line = `POST ${base.path}/documents/trash/${entry!.entryId}/restore`
  expect(await wb.send(line)).toMatchObject({ status: 404, body: { error: { code: 'document_not_found' } } })
  clock.advance(3_600_000)
  await waitUntil(() => storedRows(wb) === 0)
})

test('with a retention of 0 hours, documents are deleted permanently', async () => {
  const wb = await open({ config: { runtime: { trash: { retentionHours: 0 } } } })
  const base = await makeBase(wb)
  const { documentId } = (await base.ingest('Gone.')).document
  await wb.call(documents.delete, { params: { ...base.params, documentId } })
  expect(storedRows(wb)).toBe(0)
})

test('the trash of a knowledge base is deleted with it', async () => {
  const wb = await open()
  const base = await makeBase(wb)
  const fields = { visibleTo: ['ada'], metadata: { team: 'birds' } }
  const { documentId } = (await base.ingest(text, fields)).document
  await wb.call(documents.delete, { params: { ...base.params, documentId } })
  expect(storedRows(wb)).toBeGreaterThan(1)
  await base.delete()
  expect(storedRows(wb)).toBe(0)
})

test('a store with a full trash is sound, also after a restore', async () => {
  const wb = await open()
  const base = await makeBase(wb)
  const fields = { visibleTo: ['ada'], metadata: { team: 'birds' }, chunker }
  const { documentId } = (await base.ingest(text, fields)).document
  const problems = async () =>
    (await checkStore({ driver: 'sqlite', path: join(wb.dataDir, 'workbase.db') }))!.checks.filter(
      ({ count }) => count > 0,
    )
  await wb.call(documents.delete, { params: { ...base.params, documentId } })
  expect(await problems()).toEqual([])
  await restoreAll(wb, base)
  expect(await problems()).toEqual([])
})

/** Returns the number of rows about deleted documents. */
function storedRows({ dataDir }: TestRuntime): number {
  const tables = ['deleted_documents', 'deleted_documents_tags', 'deleted_chunks']
  const counts = tables.map(name => `(SELECT count(*) FROM ${name})`).join(' + ')
  const file = storeFile(dataDir)
  const { rows } = file.one(`SELECT ${counts} AS rows`)
  return Number(rows)
}

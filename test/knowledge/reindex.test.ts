import { describe, expect, onTestFinished, test } from 'vitest'
import { documents } from '../../src/contract/documents.ts'
import type { Job } from '../../src/contract/jobs.ts'
import { kb, type ReindexRequest } from '../../src/contract/knowledge.ts'
import { limits } from '../../src/contract/limits.ts'
import { chunkingServices, embeddingServices } from '../../src/contract/services.ts'
import { trash } from '../../src/contract/trash.ts'
import { startEmbeddingServer, vectorFor } from '../fakes/embedding-server.ts'
import { pdf } from '../formats/files.ts'
import { type Base, baseIn, makeBase, makeMockService, makeWorkspace } from '../harness/resources.ts'
import { open, type TestRuntime, waitUntil } from '../harness/runtime.ts'
import { failedStoreChecks } from '../harness/store-check.ts'
import { storeFile } from '../harness/store-file.ts'
import {
  cancel,
  createHostedBase,
  embeddedTexts,
  enqueue,
  jobOf,
  textOf,
  waitForEnd,
} from '../jobs/ingest-jobs.ts'

/** Returns a step that waits until `open` is called. */
function createGate() {
  let open = () => {}
  const opened = new Promise<void>(resolve => {
    open = resolve
  })
  return { step: { before: () => opened }, open: () => open() }
}

function makeChunking({ call }: Pick<TestRuntime, 'call'>, workspaceId: string, maxChunkSize: number) {
  const sizes = { maxChunkSize, minChunkSize: 0, overlapSize: 0 }
  const body = { name: `chunks of ${maxChunkSize}`, engine: 'langchain_ts', strategy: 'line', ...sizes }
  return call(chunkingServices.create, { params: { workspaceId }, body })
}

async function start({ call }: Pick<TestRuntime, 'call'>, { params }: Base, body: ReindexRequest = {}) {
  return (await call(kb.reindex, { params, body })).job
}

async function reindex(wb: TestRuntime, base: Base, body: ReindexRequest = {}): Promise<Job> {
  const job = await waitForEnd(wb, await start(wb, base, body))
  expect(job).toMatchObject({ status: 'succeeded', errorMessage: null })
  return job
}

function figures({ call }: Pick<TestRuntime, 'call'>, { params }: Base) {
  return call(kb.reindexing, { params })
}

async function chunksOf({ call }: Pick<TestRuntime, 'call'>, { params }: Base, documentId: string) {
  const chunks = await call(documents.chunks, { params: { ...params, documentId } })
  return chunks.map(({ text }) => text)
}

/** Runs a server with a knowledge base that has a chunk for each paragraph of `textOf`. */
async function openSplit() {
  const wb = await open({ server: true })
  const { workspaceId } = await makeWorkspace(wb)
  const service = await makeChunking(wb, workspaceId, 100)
  const base = await makeBase(wb, { workspaceId, chunkingServiceId: service.chunkingServiceId })
  const setSize = (maxChunkSize: number) =>
    wb.call(chunkingServices.update, { params: service, body: { maxChunkSize } })
  return { wb, base, workspaceId, service, setSize }
}

describe('reindexing after a change of the chunker', () => {
  test('splits all documents again, keeps everything else, and can be repeated', async () => {
    const { wb, base, setSize } = await openSplit()
    const fields = { sourceFilename: 'a.txt', metadata: { title: 'Wings' }, visibleTo: ['alice'] }
    const { document } = await base.ingest(textOf(6), fields)
    const short = (await base.ingest('One line.')).document
    expect(document.chunkTotal).toBe(6)
    await setSize(200)
    expect(await chunksOf(wb, base, document.documentId)).toHaveLength(6)
    const job = await reindex(wb, base)
    expect(job).toMatchObject({
      kind: 'reindex',
      documentId: null,
      result: { chunks: 4 },
      processed: 4,
      total: 4,
    })
    const chunks = await chunksOf(wb, base, document.documentId)
    expect(chunks.join('')).toBe(textOf(6))
    expect(chunks).toHaveLength(3)
    const [after] = await base.documents()
    expect(after).toEqual({ ...document, chunkTotal: 3, updatedAt: after!.updatedAt })
    const [hit] = await base.search('wing 5')
    expect(hit!.payload).toMatchObject({
      title: 'Wings',
      visible_to: ['alice'],
      documentId: document.documentId,
    })
    expect(await figures(wb, base)).toMatchObject({
      job: { jobId: job.jobId },
      documents: { rechunked: 1, unchanged: 1, kept: 0 },
    })
    await reindex(wb, base)
    expect((await figures(wb, base)).documents).toEqual({ rechunked: 0, unchanged: 2, kept: 0 })
    expect(await chunksOf(wb, base, short.documentId)).toEqual(['One line.'])
    expect(await failedStoreChecks(wb.dataDir)).toEqual([])
  })

  test('changes the chunking service, and a new document uses it', async () => {
    const { wb, base, workspaceId } = await openSplit()
    const { document } = await base.ingest(textOf(4))
    const { chunkingServiceId } = await makeChunking(wb, workspaceId, 400)
    await reindex(wb, base, { chunkingServiceId })
    expect(await base.show()).toMatchObject({ chunkingServiceId })
    expect(await chunksOf(wb, base, document.documentId)).toHaveLength(1)
    expect((await base.ingest(textOf(4, 'tail'))).chunks).toBe(1)
  })

  test('restores the white space that no chunk contains', async () => {
    const wb = await open({ server: true })
    const base = await makeBase(wb)
    const text = `\n# Wings\n\n${'They flutter. '.repeat(120)}\n\n\nThe end.\n\n`
    const { document } = await base.ingest(text, { sourceFilename: 'wings.md' })
    expect((await chunksOf(wb, base, document.documentId)).join('')).not.toBe(text)
    const { workspaceId } = base.params
    const lines = await makeChunking(wb, workspaceId, 400)
    await reindex(wb, base, { chunkingServiceId: lines.chunkingServiceId })
    expect((await figures(wb, base)).documents).toEqual({ rechunked: 1, unchanged: 0, kept: 0 })
    expect((await chunksOf(wb, base, document.documentId)).join('')).toBe(text)
  })

  test('keeps the sizes that an ingest requested', async () => {
    const { wb, base, setSize } = await openSplit()
    const chunker = { maxChars: 100, minChars: 0, overlapChars: 0 }
    const { document } = await base.ingest(textOf(6), { chunker })
    await setSize(200)
    await reindex(wb, base)
    expect(await chunksOf(wb, base, document.documentId)).toHaveLength(6)
  })

  test('embeds only chunks that changed, if a provider embeds them', async () => {
    const { wb, base, provider } = await createHostedBase()
    const { workspaceId } = base.params
    const first = await makeChunking(wb, workspaceId, 100)
    await reindex(wb, base, { chunkingServiceId: first.chunkingServiceId })
    const text = `${textOf(2)}\n\n${'A longer paragraph. '.repeat(4)}\n\n${textOf(1, 'tail')}`
    await base.ingest(text)
    const before = embeddedTexts(provider).length
    await wb.call(chunkingServices.update, { params: first, body: { maxChunkSize: 95 } })
    await reindex(wb, base)
    expect((await figures(wb, base)).documents).toEqual({ rechunked: 0, unchanged: 1, kept: 0 })
    expect(embeddedTexts(provider)).toHaveLength(before)
    await wb.call(chunkingServices.update, { params: first, body: { maxChunkSize: 91 } })
    await reindex(wb, base)
    const stored = await chunksOf(wb, base, (await base.documents())[0]!.documentId)
    expect(stored.join('')).toBe(text)
    expect(embeddedTexts(provider).length - before).toBeLessThan(stored.length)
  })

  test('keeps the pages and sections of a file', async () => {
    const { wb, base, setSize } = await openSplit()
    await setSize(2_000)
    const bytes = await pdf([
      [
        [20, 'Security'],
        [11, 'Keys are revoked by an administrator of the workspace, who can also create new ones.'],
      ],
      [[11, 'Backups are kept for thirty days. They are encrypted with the key of the team.']],
      [[11, 'The third page has another long sentence about the retention of the audit trail.']],
    ])
    const body = new FormData()
    body.set('file', new File([bytes as never], 'handbook.pdf'))
    const { document } = await wb.call(documents.ingestFile, { params: base.params, body })
    const params = { ...base.params, documentId: document.documentId }
    const read = async () =>
      (await wb.call(documents.chunks, { params })).map(({ payload }) => [
        payload['chunk.page'],
        payload['chunk.section'],
      ])
    expect(await read()).toEqual([[1, 'Security']])
    await setSize(120)
    await reindex(wb, base)
    const pages = (await read()).map(([page]) => page)
    expect(new Set(pages)).toEqual(new Set([1, 2, 3]))
    const split = await read()
    const [hit] = await base.search('retention of the audit trail')
    expect(hit!.payload).toMatchObject({ 'chunk.page': 3, 'chunk.section': 'Security' })
    expect(hit!.payload).not.toHaveProperty('$places')
    await wb.call(documents.delete, { params })
    const again = await wb.call(documents.ingestFile, { params: base.params, body })
    params.documentId = again.document.documentId
    expect(await read()).toEqual(split)
  })

  test('keeps the start of a page that several chunks contain', async () => {
    const { wb, base, service } = await openSplit()
    const overlap = { maxChunkSize: 150, overlapSize: 100 }
    await wb.call(chunkingServices.update, { params: service, body: overlap })
    const words = ['Keys', 'Backups', 'Audits']
    const bytes = await pdf(
      words.map(word =>
        ['expire soon.', 'are kept safe.', 'need an owner.'].map(rest => [11, `${word} ${rest}`]),
      ),
    )
    const body = new FormData()
    body.set('file', new File([bytes as never], 'handbook.pdf'))
    const { document } = await wb.call(documents.ingestFile, { params: base.params, body })
    const params = { ...base.params, documentId: document.documentId }
    const read = async () =>
      (await wb.call(documents.chunks, { params })).map(({ text, payload }) => [text, payload['chunk.page']])
    expect((await read()).map(([, page]) => page)).toEqual([1, 3, 3])
    await wb.call(chunkingServices.update, { params: service, body: { overlapSize: 0, maxChunkSize: 40 } })
    await reindex(wb, base)
    for (const [text, page] of await read()) expect(text).toContain(words[(page as number) - 1])
  })

  test('keeps documents whose text cannot be read from their chunks', async () => {
    const { wb, base, setSize } = await openSplit()
    const { document } = await base.ingest(textOf(6))
    const params = { ...base.params, documentId: document.documentId }
    await wb.call(documents.update, { params, body: { contentHash: 'of another text' } })
    await setSize(200)
    await reindex(wb, base)
    expect((await figures(wb, base)).documents).toEqual({ rechunked: 0, unchanged: 0, kept: 1 })
    expect(await chunksOf(wb, base, document.documentId)).toHaveLength(6)
  })

  test('an ingest that was running uses the new settings, too', async () => {
    const { wb, base, provider } = await createHostedBase()
    const small = await makeChunking(wb, base.params.workspaceId, 100)
    const large = await makeChunking(wb, base.params.workspaceId, 2_000)
    await reindex(wb, base, { chunkingServiceId: small.chunkingServiceId })
    const gate = createGate()
    provider.script(gate.step)
    const ingest = base.ingest(textOf(2))
    await waitUntil(() => provider.received.length === 1)
    const done = waitForEnd(wb, await start(wb, base, { chunkingServiceId: large.chunkingServiceId }))
    expect(await done).toMatchObject({ status: 'succeeded' })
    gate.open()
    expect((await ingest).chunks).toBe(1)
  })
})

/** Creates an embedding service of a server that sends vectors of another length. */
async function makeHosted(wb: TestRuntime, workspaceId: string, maxBatchSize = 1) {
  const provider = await startEmbeddingServer(5)
  onTestFinished(() => provider.close())
  const fields = {
    provider: 'ollama',
    modelName: 'm5',
    endpointBaseUrl: provider.url,
    embeddingDimension: 5,
    maxBatchSize,
  }
  const { embeddingServiceId } = await makeMockService(wb, workspaceId, fields)
  return { provider, embeddingServiceId }
}

/** Expects a number of chunks, and that each has the vector of its text. */
async function expectVectors(base: Base, count: number) {
  const hits = await base.search('wing', { hybrid: false, includeEmbeddings: true, topK: 100 })
  expect(hits).toHaveLength(count)
  for (const { payload, vector } of hits)
    for (const [at, value] of vectorFor(String(payload!.chunkText), 5).entries())
      expect(vector![at]).toBeCloseTo(value, 4)
}

/** Opens a base whose reindex with another embedding service waits at the gate, after two of its requests. */
async function openHalfway() {
  const { wb, base, workspaceId } = await openSplit()
  for (let n = 0; n < 4; n++) await base.ingest(`Document ${n} about wings.`)
  const { provider, embeddingServiceId } = await makeHosted(wb, workspaceId)
  const gate = createGate()
  provider.script({}, {}, gate.step)
  const job = await start(wb, base, { embeddingServiceId })
  await waitUntil(() => provider.received.length >= 3)
  return { wb, base, workspaceId, provider, embeddingServiceId, gate, job }
}

describe('reindexing with another embedding service', () => {
  test('searches use the previous vectors until the new ones are complete, and then the new ones', async () => {
    const { wb, base, provider, embeddingServiceId, gate, job } = await openHalfway()
    expect(await base.search('wings', { hybrid: false })).toHaveLength(4)
    expect(await base.show()).not.toMatchObject({ embeddingServiceId })
    expect(await jobOf(wb, job)).toMatchObject({ status: 'running', total: 8 })
    gate.open()
    expect(await waitForEnd(wb, job)).toMatchObject({ status: 'succeeded', result: { chunks: 4 } })
    expect(await base.show()).toMatchObject({ embeddingServiceId })
    const before = embeddedTexts(provider).length
    expect(before).toBe(4)
    expect(await base.search('wings', { hybrid: false })).toHaveLength(4)
    expect(embeddedTexts(provider)).toHaveLength(before + 1)
    expect(await failedStoreChecks(wb.dataDir)).toEqual([])
  })

  test('documents that are ingested, replaced, changed and deleted meanwhile are right afterwards', async () => {
    const { wb, base, workspaceId, setSize } = await openSplit()
    const ids: string[] = []
    for (let n = 0; n < 4; n++)
      ids.push(
        (await base.ingest(`${textOf(2)}\n\nDocument ${n}.`, { sourceFilename: `${n}` })).document.documentId,
      )
    await setSize(200)
    const { provider, embeddingServiceId } = await makeHosted(wb, workspaceId)
    const gate = createGate()
    provider.script({}, {}, gate.step)
    const job = await start(wb, base, { embeddingServiceId })
    await waitUntil(() => provider.received.length >= 3)
    const { params } = base
    await wb.call(documents.delete, { params: { ...params, documentId: ids[0]! } })
    await wb.call(documents.update, {
      params: { ...params, documentId: ids[1]! },
      body: { visibleTo: ['alice'], metadata: { team: 'red' } },
    })
    await base.ingest('Another text.', { sourceFilename: '2', overwriteOnNameConflict: true })
    await base.ingest(textOf(5, 'new'))
    gate.open()
    expect(await waitForEnd(wb, job)).toMatchObject({ status: 'succeeded' })
    const rows = await base.documents()
    expect(rows.map(row => [row.sourceFilename, row.chunkTotal])).toEqual([
      ['1', 1],
      ['3', 1],
      ['2', 1],
      [null, 3],
    ])
    const hits = await base.search('wing', { hybrid: false, includeEmbeddings: true })
    expect(hits).toHaveLength(6)
    for (const { payload, vector } of hits) {
      const text = String(payload!.chunkText)
      for (const [at, value] of vectorFor(text, 5).entries()) expect(vector![at]).toBeCloseTo(value, 4)
      const isChanged = payload!.documentId === ids[1]
      expect([payload!.visible_to, payload!.team]).toEqual(
        isChanged ? [['alice'], 'red'] : [undefined, undefined],
      )
    }
    expect(await failedStoreChecks(wb.dataDir)).toEqual([])
  })

  test('an ingest that was running when the service changed is embedded with the new one', async () => {
    const first = await createHostedBase()
    const { wb, base } = first
    await base.ingest('The first text.')
    const { provider, embeddingServiceId } = await makeHosted(wb, base.params.workspaceId)
    const gates = [createGate(), createGate()]
    first.provider.script(...gates.map(({ step }) => step))
    const direct = base.ingest('A second text.')
    const queued = await enqueue(wb, base, 'A third text.')
    await waitUntil(() => first.provider.received.length === 3)
    await reindex(wb, base, { embeddingServiceId })
    for (const gate of gates) gate.open()
    await direct
    expect(await waitForEnd(wb, queued.job)).toMatchObject({ status: 'succeeded' })
    expect(embeddedTexts(provider).toSorted()).toEqual(['A second text.', 'A third text.', 'The first text.'])
    expect(await base.search('text', { hybrid: false })).toHaveLength(3)
    expect(await failedStoreChecks(wb.dataDir)).toEqual([])
  })

  test('continues after a failure without embedding anything again', async () => {
    const { wb, base, workspaceId } = await openSplit()
    for (let n = 0; n < 6; n++) await base.ingest(`Document ${n} about wings.`)
    const { provider, embeddingServiceId } = await makeHosted(wb, workspaceId)
    provider.script({}, {}, {}, {}, { status: 400 }, { status: 400 })
    const failed = await waitForEnd(wb, await start(wb, base, { embeddingServiceId }))
    expect(failed).toMatchObject({ status: 'failed', errorMessage: expect.stringContaining('status 400') })
    expect(await base.search('wings', { hybrid: false })).toHaveLength(6)
    expect(await base.show()).not.toMatchObject({ embeddingServiceId })
    const before = embeddedTexts(provider).length
    await reindex(wb, base, { embeddingServiceId })
    expect(embeddedTexts(provider).slice(before)).toHaveLength(2)
    expect(await failedStoreChecks(wb.dataDir)).toEqual([])
  })

  test('a cancelled job leaves no vectors, and the previous service stays', async () => {
    const { wb, base, workspaceId } = await openSplit()
    for (let n = 0; n < 4; n++) await base.ingest(`Document ${n} about wings.`)
    const { provider, embeddingServiceId } = await makeHosted(wb, workspaceId)
    provider.script({}, {}, { hang: 'before headers' })
    const job = await start(wb, base, { embeddingServiceId })
    await waitUntil(() => provider.received.length >= 3)
    expect(await cancel(wb, job)).toMatchObject({ status: 'failed', errorMessage: 'cancelled' })
    const spaces = () => {
      const store = storeFile(wb.dataDir)
      const { n } = store.one(`SELECT count(*) AS n FROM vector_space WHERE name LIKE 'reindex%'`)
      store.close()
      return n
    }
    await waitUntil(() => spaces() === 0)
    expect(await base.search('wings', { hybrid: false })).toHaveLength(4)
    await reindex(wb, base, { embeddingServiceId })
    expect(await base.show()).toMatchObject({ embeddingServiceId })
  })

  test('starts again if the model of the service changed in the meantime', async () => {
    const { wb, workspaceId, provider, embeddingServiceId, gate, job } = await openHalfway()
    await wb.call(embeddingServices.update, {
      params: { workspaceId, embeddingServiceId },
      body: { modelName: 'another' },
    })
    gate.open()
    await waitForEnd(wb, job)
    const texts = provider.received.filter(({ body }) => body.model === 'another')
    expect(texts).toHaveLength(4)
    expect(await failedStoreChecks(wb.dataDir)).toEqual([])
  })
})

describe('a reindex and deleted documents', () => {
  test('a restored document has vectors of the new service, and a running job splits it', async () => {
    const { wb, base, workspaceId, setSize } = await openSplit()
    const old = (await base.ingest(textOf(2, 'old'))).document.documentId
    for (let n = 0; n < 4; n++) await base.ingest(`Document ${n} about wings.`)
    const late = (await base.ingest(textOf(2, 'late'))).document.documentId
    const remove = (documentId: string) =>
      wb.call(documents.delete, { params: { ...base.params, documentId } })
    const restoreAll = async () => {
      const { items } = await wb.call(trash.list, { params: base.params })
      const body = { entryIds: items.map(({ entryId }) => entryId) }
      expect((await wb.call(trash.bulkRestore, { params: base.params, body })).failed).toEqual([])
    }
    await remove(old)
    await remove(late)
    await setSize(200)
    const { provider, embeddingServiceId } = await makeHosted(wb, workspaceId)
    const gate = createGate()
    provider.script({}, {}, gate.step)
    const job = await start(wb, base, { embeddingServiceId })
    await waitUntil(() => provider.received.length >= 3)
    await restoreAll()
    await remove(late)
    gate.open()
    expect(await waitForEnd(wb, job)).toMatchObject({ status: 'succeeded' })
    await restoreAll()
    expect(await chunksOf(wb, base, old)).toHaveLength(1)
    expect(await chunksOf(wb, base, late)).toHaveLength(2)
    await expectVectors(base, 7)
    await remove(late)
    const second = await makeHosted(wb, workspaceId)
    await reindex(wb, base, { embeddingServiceId: second.embeddingServiceId })
    await restoreAll()
    await expectVectors(base, 7)
    await reindex(wb, base)
    expect(await chunksOf(wb, base, late)).toHaveLength(1)
    await expectVectors(base, 6)
    expect(await failedStoreChecks(wb.dataDir)).toEqual([])
  })
})

describe('a reindex and exported files', () => {
  test('an export never mixes vectors of two services', async () => {
    const { wb, base } = await createHostedBase()
    const { workspaceId } = base.params
    for (let n = 0; n < 3; n++)
      await base.ingest(`Document ${n}. ${'wing '.repeat(limits.archivePageChars / 10)}`)
    const { embeddingServiceId } = await makeHosted(wb, workspaceId, 100)
    const readPage = (cursor?: string) => wb.call(kb.export, { params: base.params, query: { cursor } })
    const { nextCursor } = await readPage()
    expect(nextCursor).not.toBeNull()
    await readPage(nextCursor!)
    await reindex(wb, base, { embeddingServiceId })
    await expect(readPage(nextCursor!)).rejects.toMatchObject({ code: 'invalid_cursor' })
    expect(JSON.parse((await readPage()).lines[0]!).embedding).toMatchObject({ modelName: 'm5' })
  })

  test('an imported file keeps its pages, and can be reindexed when its import is complete', async () => {
    const { wb, base, workspaceId, setSize } = await openSplit()
    await setSize(2_000)
    const bytes = await pdf([
      [
        [20, 'Security'],
        [11, 'Keys are revoked by an administrator of the workspace, who can also create new ones.'],
      ],
      [[11, 'Backups are kept for thirty days. They are encrypted with the key of the team.']],
    ])
    const body = new FormData()
    body.set('file', new File([bytes as never], 'handbook.pdf'))
    const { document } = await wb.call(documents.ingestFile, { params: base.params, body })
    const { lines } = await wb.call(kb.export, { params: base.params, query: {} })
    const begin = { header: lines[0]!, name: 'copy' }
    const { knowledgeBase } = await wb.call(kb.beginImport, { params: { workspaceId }, body: begin })
    const copy = baseIn(wb, knowledgeBase)
    expect(await wb.send(`POST ${copy.path}/reindex`, {})).toMatchObject({
      status: 409,
      body: { error: { code: 'conflict', message: expect.stringContaining('imported completely') } },
    })
    await wb.call(kb.importLines, { params: copy.params, body: { from: 1, lines: lines.slice(1) } })
    await setSize(120)
    await reindex(wb, copy)
    expect((await figures(wb, copy)).documents).toEqual({ rechunked: 1, unchanged: 0, kept: 0 })
    const params = { ...copy.params, documentId: document.documentId }
    const chunks = await wb.call(documents.chunks, { params })
    const places = chunks.map(({ payload }) => [payload['chunk.page'], payload['chunk.section']])
    expect(places[0]).toEqual([1, 'Security'])
    expect(places.at(-1)).toEqual([2, 'Security'])
  })
})

describe('a reindex is refused', () => {
  test('while another one is running, with an unknown service, and for the built-in embedder', async () => {
    const { wb, base, provider } = await createHostedBase()
    await base.ingest('A text.')
    const { embeddingServiceId } = await makeHosted(wb, base.params.workspaceId)
    const send = (body: object) => wb.send(`POST ${base.path}/reindex`, body)
    const unknown = '9b1c1a52-6f0e-4c0e-9d53-2f3a4b5c6d7e'
    expect(await send({ embeddingServiceId: unknown })).toMatchObject({
      status: 404,
      body: { error: { code: 'embedding_service_not_found' } },
    })
    expect(await send({ chunkingServiceId: unknown })).toMatchObject({
      status: 404,
      body: { error: { code: 'chunking_service_not_found' } },
    })
    const { items } = await wb.call(embeddingServices.list, { params: base.params, query: {} })
    const builtIn = items.find(service => service.provider === 'workbase')!
    expect(await send({ embeddingServiceId: builtIn.embeddingServiceId })).toMatchObject({
      status: 400,
      body: { error: { code: 'validation_error', message: expect.stringContaining('built-in') } },
    })
    expect(await send({ chunker: 'x' })).toMatchObject({ status: 400 })
    const gate = createGate()
    provider.script(gate.step)
    const large = await makeChunking(wb, base.params.workspaceId, 4)
    const { jobId } = await start(wb, base, { chunkingServiceId: large.chunkingServiceId })
    expect(await send({ embeddingServiceId })).toMatchObject({
      status: 409,
      body: { error: { code: 'conflict', message: expect.stringContaining(jobId) } },
    })
    gate.open()
  })
})

test('with row-level access, every search during reindexes finds exactly the documents that its caller may see', async () => {
  const wb = await open({ server: true })
  const { workspaceId } = await makeWorkspace(wb, { rlacEnabled: true })
  const service = await makeChunking(wb, workspaceId, 100)
  const base = await makeBase(wb, { workspaceId, chunkingServiceId: service.chunkingServiceId })
  await wb.send(`POST /api/v1/workspaces/${workspaceId}/principals`, { principalId: 'root', role: 'admin' })
  const as = (principal: string) => (line: string, body?: unknown) =>
    wb.send(line, body, { 'x-view-as-principal': principal })
  const hosted = [await makeHosted(wb, workspaceId, 2), await makeHosted(wb, workspaceId, 2)]
  for (const { provider } of hosted) provider.script(...Array.from({ length: 500 }, () => ({ delayMs: 2 })))
  let seed = 5
  const draw = (below: number) => {
    seed = (seed * 16_807) % 2_147_483_647
    return seed % below
  }
  /** Principals that may see each document. */
  const visible = new Map<string, string[]>()
  const audiences = [['alice'], ['bob'], ['alice', 'bob']]
  const rounds = 4
  let round = 0
  const reindexes = (async () => {
    for (; round < rounds; round++) {
      const size = [100, 250, 60][round % 3]!
      await wb.call(chunkingServices.update, { params: service, body: { maxChunkSize: size } })
      const { embeddingServiceId } = hosted[round % 2]!
      const started = await as('root')(`POST ${base.path}/reindex`, { embeddingServiceId })
      expect(started.status).toBe(202)
      const { jobId } = (started.body as { job: Job }).job
      const line = `GET /api/v1/workspaces/${workspaceId}/jobs/${jobId}`
      await waitUntil(async () => (await as('root')(line)).body.status === 'succeeded')
    }
  })()
  for (let n = 0; round < rounds; n++) {
    const ids = [...visible.keys()]
    const id = ids[draw(Math.max(1, ids.length))]
    const visibleTo = audiences[draw(3)]!
    const step = ids.length < 6 ? 0 : draw(3)
    if (step === 0) {
      const text = textOf(1 + draw(5), `wing${n}`)
      const { body, status } = await as('root')(`POST ${base.path}/ingest`, { text, visibleTo })
      expect(status).toBe(201)
      visible.set((body.document as { documentId: string }).documentId, visibleTo)
    } else if (step === 1) {
      const answer = await as('root')(`PATCH ${base.path}/documents/${id}`, { visibleTo })
      expect(answer.status).toBe(200)
      visible.set(id!, visibleTo)
    } else {
      expect((await as('root')(`DELETE ${base.path}/documents/${id}`)).status).toBe(204)
      visible.delete(id!)
    }
    for (const principal of ['alice', 'bob']) {
      const query = {
        text: 'wing',
        topK: 1_000,
        hybrid: n % 2 === 0,
        lexicalWeight: n % 4 === 0 ? 1 : undefined,
      }
      const answer = await as(principal)(`POST ${base.path}/search`, query)
      expect(answer.status, JSON.stringify(answer.body)).toBe(200)
      const found = new Set(
        (answer.body as unknown as { payload: Record<string, unknown> }[]).map(hit => hit.payload.documentId),
      )
      const expected = [...visible].filter(([, names]) => names.includes(principal)).map(([one]) => one)
      if (query.lexicalWeight === undefined) expect(found).toEqual(new Set(expected))
      else for (const one of found) expect(expected).toContain(one)
    }
  }
  await reindexes
  expect(await failedStoreChecks(wb.dataDir)).toEqual([])
}, 60_000)

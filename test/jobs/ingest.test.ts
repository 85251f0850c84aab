import { describe, expect, test } from 'vitest'
import { documents } from '../../src/contract/documents.ts'
import { workspaces } from '../../src/contract/workspaces.ts'
import type { ContentStore } from '../../src/storage/content.ts'
import { makeBase, makeWorkspace } from '../harness/resources.ts'
import { open, waitUntil } from '../harness/runtime.ts'
import {
  chunkPerParagraph,
  createHostedBase,
  documentOf,
  embeddedTexts,
  enqueue,
  expectNothingLeft,
  jobOf,
  sendForJob,
  textOf,
  waitForEnd,
} from './ingest-jobs.ts'

const hang = { hang: 'before headers' } as const

describe('a text that a job ingests', () => {
  test('is stored with all its chunks when the job has succeeded', async () => {
    const wb = await open({ server: true })
    const base = await makeBase(wb)
    const { job, document } = await enqueue(wb, base, textOf(7), {
      ...chunkPerParagraph,
      sourceFilename: 'wings.md',
    })
    expect(document).toMatchObject({ status: 'writing', sourceFilename: 'wings.md', chunkTotal: null })
    expect(job).toMatchObject({ status: 'pending', processed: 0, total: null, result: null })
    expect(await waitForEnd(wb, job)).toMatchObject({
      status: 'succeeded',
      processed: 7,
      total: 7,
      result: { chunks: 7 },
      errorMessage: null,
    })
    const stored = await documentOf(wb, base, document.documentId)
    expect(stored).toMatchObject({ status: 'ready', chunkTotal: 7, errorMessage: null })
    expect(stored.ingestedAt).not.toBeNull()
    const hits = await base.search('wing')
    expect(hits.map(({ id }) => id).sort()).toEqual(
      Array.from({ length: 7 }, (_, at) => `${document.documentId}:${at}`),
    )
    await expectNothingLeft(wb.dataDir)
  })

  test('reports each stage and batch, and is not searchable until complete', async () => {
    const { wb, base, provider } = await createHostedBase()
    provider.script({}, {}, hang)
    const { job, document } = await enqueue(wb, base, textOf(7), chunkPerParagraph)
    await waitUntil(() => provider.received.length >= 3)
    await waitUntil(async () => (await jobOf(wb, job)).processed === 4)
    expect(await jobOf(wb, job)).toMatchObject({ status: 'running', total: 7, processed: 4 })
    expect(await documentOf(wb, base, document.documentId)).toMatchObject({
      status: 'embedding',
      chunkTotal: 7,
      ingestedAt: null,
    })
    expect(await base.search('wing', { hybrid: true, lexicalWeight: 1 })).toEqual([])
  })

  test('is stored only in memory in an in-memory workspace', async () => {
    const wb = await open({ server: true })
    const { workspaceId } = await makeWorkspace(wb, { kind: 'mock' })
    const base = await makeBase(wb, { workspaceId })
    const { job } = await enqueue(wb, base, 'The wing flutters.')
    expect(await waitForEnd(wb, job)).toMatchObject({ status: 'succeeded', result: { chunks: 1 } })
    expect(await base.search('wing')).toHaveLength(1)
  })

  test('without chunks becomes ready', async () => {
    const wb = await open({ server: true })
    const base = await makeBase(wb)
    const { job } = await enqueue(wb, base, ' \n ', chunkPerParagraph)
    const { result } = await waitForEnd(wb, job)
    expect(await base.documents()).toMatchObject([{ status: 'ready', chunkTotal: result!.chunks }])
  })

  test('that cannot be embedded fails together with its document, and can be ingested again', async () => {
    const { wb, base, provider } = await createHostedBase()
    provider.script({ status: 400 })
    const { job, document } = await enqueue(wb, base, textOf(1), {
      ...chunkPerParagraph,
      sourceFilename: 'a.txt',
    })
    const { status, errorMessage, result } = await waitForEnd(wb, job)
    expect([status, result]).toEqual(['failed', null])
    expect(errorMessage).toMatch(/responded with status 400/)
    const failed = await documentOf(wb, base, document.documentId)
    expect(failed).toMatchObject({ status: 'failed', errorMessage })
    await expectNothingLeft(wb.dataDir)
    const again = await enqueue(wb, base, textOf(1), { ...chunkPerParagraph, sourceFilename: 'a.txt' })
    expect(await waitForEnd(wb, again.job)).toMatchObject({ status: 'succeeded' })
    expect(await base.documents()).toMatchObject([{ documentId: again.document.documentId, status: 'ready' }])
  })

  test('with an invalid chunker fails', async () => {
    const wb = await open({ server: true })
    const base = await makeBase(wb)
    const { job } = await enqueue(wb, base, 'text', { chunker: { maxChars: 10, overlapChars: 10 } })
    expect(await waitForEnd(wb, job)).toMatchObject({
      status: 'failed',
      errorMessage: expect.stringMatching(/overlap/i),
    })
    expect(await base.documents()).toMatchObject([{ status: 'failed' }])
    await expectNothingLeft(wb.dataDir)
  })

  test('keeps concurrent changes to its document', async () => {
    const { wb, base, provider } = await createHostedBase()
    provider.script({ delayMs: 300 })
    const { job, document } = await enqueue(wb, base, textOf(1), chunkPerParagraph)
    await waitUntil(() => provider.received.length >= 1)
    const params = { ...base.params, documentId: document.documentId }
    await wb.call(documents.update, { params, body: { metadata: { lang: 'en' }, visibleTo: ['ann'] } })
    await waitForEnd(wb, job)
    expect(await documentOf(wb, base, document.documentId)).toMatchObject({
      status: 'ready',
      metadata: { lang: 'en' },
      visibleTo: ['ann'],
    })
    const [hit] = await base.search('wing', { hybrid: true, lexicalWeight: 1 })
    expect(hit!.payload).toMatchObject({ lang: 'en', visible_to: ['ann'] })
  })
})

/** Delays the next listing of chunks: it returns the chunks from before `meanwhile` ran. */
function delayNextListing() {
  let meanwhile: (() => Promise<unknown>) | undefined
  const content = (store: ContentStore): ContentStore => ({
    ...store,
    listing: {
      ...store.listing!,
      async listByDocument(...query) {
        const found = await store.listing!.listByDocument(...query)
        const first = meanwhile
        meanwhile = undefined
        await first?.()
        return found
      },
    },
  })
  const once = (work: () => Promise<unknown>) => {
    meanwhile = work
  }
  return { content, once }
}

describe('updates chunks together with their document', () => {
  const patch = { metadata: { lang: 'en' }, visibleTo: ['ann'] }

  test('if the job ends during the update', async () => {
    const late = delayNextListing()
    const { wb, base, provider } = await createHostedBase({ content: late.content })
    provider.script({ delayMs: 300 })
    const { job, document } = await enqueue(wb, base, textOf(3), {
      ...chunkPerParagraph,
      metadata: { lang: 'de', by: 'bo' },
    })
    const params = { ...base.params, documentId: document.documentId }
    late.once(() => waitForEnd(wb, job))
    await wb.call(documents.update, { params, body: patch })
    expect(await documentOf(wb, base, document.documentId)).toMatchObject({ ...patch, status: 'ready' })
    const chunks = await wb.call(documents.chunks, { params })
    expect(chunks.map(({ payload }) => [payload.lang, payload.by, payload.visible_to])).toEqual(
      chunks.map(() => ['en', undefined, ['ann']]),
    )
    expect(chunks).toHaveLength(3)
  })

  test('if two updates run at the same time', async () => {
    const late = delayNextListing()
    const wb = await open({ server: true, content: late.content })
    const base = await makeBase(wb)
    const { job, document } = await enqueue(wb, base, textOf(3), chunkPerParagraph)
    await waitForEnd(wb, job)
    const params = { ...base.params, documentId: document.documentId }
    late.once(() =>
      wb.call(documents.update, {
        params,
        body: { metadata: { lang: 'fr', by: 'eve' }, visibleTo: ['eve'] },
      }),
    )
    await wb.call(documents.update, { params, body: patch })
    expect(await documentOf(wb, base, document.documentId)).toMatchObject(patch)
    for (const { payload } of await wb.call(documents.chunks, { params })) {
      expect(payload).toMatchObject({ lang: 'en', visible_to: ['ann'] })
      expect(payload).not.toHaveProperty('by')
    }
  })
})

describe('one document per text and per file name', () => {
  test('20 concurrent ingests of one text, with and without jobs, create one document', async () => {
    const wb = await open({ server: true })
    const base = await makeBase(wb)
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => (n % 2 ? sendForJob(wb, base, 'same') : base.ingest('same'))),
    )
    const created = answers.filter(answer => !('outcome' in answer))
    expect(created).toHaveLength(1)
    expect(new Set(answers.map(({ document }) => document.documentId)).size).toBe(1)
    await waitUntil(async () => (await base.documents())[0]?.status === 'ready')
    expect(await base.documents()).toHaveLength(1)
    expect(await base.search('same')).toHaveLength(1)
  })

  test('one of 20 concurrent texts with the same file name is accepted, and the others report a conflict', async () => {
    const wb = await open({ server: true })
    const base = await makeBase(wb)
    const name = { sourceFilename: 'one.md' }
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        n % 2 ? sendForJob(wb, base, `text ${n}`, name) : base.ingest(`text ${n}`, name),
      ),
    )
    expect(answers.filter(answer => 'outcome' in answer && answer.outcome === 'name_conflict')).toHaveLength(
      19,
    )
    await waitUntil(async () => (await base.documents()).every(({ status }) => status === 'ready'))
    expect(await base.documents()).toHaveLength(1)
  })

  test('a duplicate of a pending text is reported without a job', async () => {
    const wb = await open()
    const base = await makeBase(wb)
    const { document } = await enqueue(wb, base, 'waits')
    const again = await sendForJob(wb, base, 'waits')
    expect(again).toEqual({ document, outcome: 'duplicate' })
  })
})

describe('an overwritten document', () => {
  const name = { sourceFilename: 'one.md', overwriteOnNameConflict: true }
  const lexical = { hybrid: true, lexicalWeight: 1 } as const

  test('is searchable until the new document is complete', async () => {
    const { wb, base, provider } = await createHostedBase()
    const before = await base.ingest('old wing', name)
    provider.script({ delayMs: 300 })
    const { job, document } = await enqueue(wb, base, 'new wing', name)
    await waitUntil(() => provider.received.length >= 2)
    expect((await base.search('wing', lexical)).map(({ payload }) => payload!.documentId)).toEqual([
      before.document.documentId,
    ])
    expect(await waitForEnd(wb, job)).toMatchObject({ status: 'succeeded' })
    expect((await base.search('wing', lexical)).map(({ payload }) => payload!.documentId)).toEqual([
      document.documentId,
    ])
    expect(await base.documents()).toMatchObject([{ documentId: document.documentId, status: 'ready' }])
    expect(await base.ingest('third', { sourceFilename: 'one.md' })).toMatchObject({
      outcome: 'name_conflict',
    })
  })

  test('remains if the new document fails', async () => {
    const { wb, base, provider } = await createHostedBase()
    const before = await base.ingest('old wing', name)
    provider.script({ status: 400 })
    const { job } = await enqueue(wb, base, 'new wing', name)
    expect(await waitForEnd(wb, job)).toMatchObject({ status: 'failed' })
    expect((await base.search('wing', lexical)).map(({ payload }) => payload!.documentId)).toEqual([
      before.document.documentId,
    ])
    expect((await base.documents()).map(({ status }) => status).sort()).toEqual(['failed', 'ready'])
  })

  test('is replaced by the latest one, regardless of which completes first', async () => {
    const { wb, base, provider } = await createHostedBase()
    await base.ingest('old wing', name)
    provider.script({ delayMs: 500 })
    const slow = await enqueue(wb, base, 'second wing', name)
    await waitUntil(() => provider.received.length >= 2)
    const quick = await enqueue(wb, base, 'third wing', name)
    expect(await waitForEnd(wb, quick.job)).toMatchObject({ status: 'succeeded' })
    expect(await waitForEnd(wb, slow.job)).toMatchObject({
      status: 'failed',
      errorMessage: expect.stringMatching(/replaced/),
    })
    expect(await base.documents()).toMatchObject([{ documentId: quick.document.documentId, status: 'ready' }])
    await expectNothingLeft(wb.dataDir)
  })
})

describe('a resource that is deleted during its job stays deleted', () => {
  test('a document', async () => {
    const { wb, base, provider } = await createHostedBase()
    provider.script({ delayMs: 300 })
    const { job, document } = await enqueue(wb, base, textOf(1), chunkPerParagraph)
    await waitUntil(() => provider.received.length >= 1)
    await wb.call(documents.delete, { params: { ...base.params, documentId: document.documentId } })
    expect(await waitForEnd(wb, job)).toMatchObject({
      status: 'failed',
      errorMessage: expect.stringMatching(/deleted/),
    })
    expect(await base.documents()).toEqual([])
    await expectNothingLeft(wb.dataDir)
  })

  test('a document whose ID is reused', async () => {
    const { wb, base, provider } = await createHostedBase()
    provider.script({ delayMs: 300 })
    const { job, document } = await enqueue(wb, base, textOf(3), chunkPerParagraph)
    await waitUntil(() => provider.received.length >= 1)
    const { documentId } = document
    await wb.call(documents.delete, { params: { ...base.params, documentId } })
    await base.ingest('another wing', { documentId })
    expect(await waitForEnd(wb, job)).toMatchObject({ status: 'failed' })
    expect(await documentOf(wb, base, documentId)).toMatchObject({ status: 'ready', chunkTotal: 1 })
    expect(await base.search('wing', { hybrid: true, lexicalWeight: 1 })).toHaveLength(1)
  })

  test.each(['knowledge base', 'workspace'])('a %s, with its jobs', async what => {
    const { wb, base, provider } = await createHostedBase()
    provider.script({}, {}, { delayMs: 300 })
    const { job } = await enqueue(wb, base, textOf(9), chunkPerParagraph)
    await waitUntil(() => provider.received.length >= 3)
    const { workspaceId } = base.params
    if (what === 'workspace') await wb.call(workspaces.delete, { params: { workspaceId } })
    else await base.delete()
    await expect(jobOf(wb, job)).rejects.toMatchObject({
      code: what === 'workspace' ? 'workspace_not_found' : 'job_not_found',
    })
    await waitUntil(
      async () => ((await wb.send('GET /readyz')).body.ingest as { active: number }).active === 0,
    )
    await expectNothingLeft(wb.dataDir)
    expect(embeddedTexts(provider).length).toBeLessThan(9)
  })
})

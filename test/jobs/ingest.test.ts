import { describe, expect, test } from 'vitest'
import { documents } from '../../src/contract/documents.ts'
import { workspaces } from '../../src/contract/workspaces.ts'
import type { ContentStore } from '../../src/storage/content.ts'
import { makeBase, makeWorkspace } from '../harness/place.ts'
import { open, until } from '../harness/runtime.ts'
import {
  cut,
  documentOf,
  ended,
  enqueue,
  expectNothingLeft,
  hosted,
  jobOf,
  paid,
  send,
  textOf,
} from './stage.ts'

const hang = { hang: 'before headers' } as const

describe('a text that a job ingests', () => {
  test('is there with all its chunks when the job has succeeded', async () => {
    const wb = await open({ server: true })
    const base = await makeBase(wb)
    const { job, document } = await enqueue(wb, base, textOf(7), { ...cut, sourceFilename: 'wings.md' })
    expect(document).toMatchObject({ status: 'writing', sourceFilename: 'wings.md', chunkTotal: null })
    expect(job).toMatchObject({ status: 'pending', processed: 0, total: null, result: null })
    expect(await ended(wb, job)).toMatchObject({
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
    expectNothingLeft(wb.dataDir)
  })

  test('tells of each stage and each batch, and is not found before it is whole', async () => {
    const { wb, base, provider } = await hosted()
    provider.script({}, {}, hang)
    const { job, document } = await enqueue(wb, base, textOf(7), cut)
    await until(() => provider.received.length >= 3)
    await until(async () => (await jobOf(wb, job)).processed === 4)
    expect(await jobOf(wb, job)).toMatchObject({ status: 'running', total: 7, processed: 4 })
    expect(await documentOf(wb, base, document.documentId)).toMatchObject({
      status: 'embedding',
      chunkTotal: 7,
      ingestedAt: null,
    })
    expect(await base.search('wing', { hybrid: true, lexicalWeight: 1 })).toEqual([])
  })

  test('is kept in memory alone where the workspace is', async () => {
    const wb = await open({ server: true })
    const { workspaceId } = await makeWorkspace(wb, { kind: 'mock' })
    const base = await makeBase(wb, { workspaceId })
    const { job } = await enqueue(wb, base, 'The wing flutters.')
    expect(await ended(wb, job)).toMatchObject({ status: 'succeeded', result: { chunks: 1 } })
    expect(await base.search('wing')).toHaveLength(1)
  })

  test('without chunks is ready with none', async () => {
    const wb = await open({ server: true })
    const base = await makeBase(wb)
    const { job } = await enqueue(wb, base, ' \n ', cut)
    const { result } = await ended(wb, job)
    expect(await base.documents()).toMatchObject([{ status: 'ready', chunkTotal: result!.chunks }])
  })

  test('that cannot be embedded fails with its document, for the same reason, and stands in nobody’s way', async () => {
    const { wb, base, provider } = await hosted()
    provider.script({ status: 400 })
    const { job, document } = await enqueue(wb, base, textOf(1), { ...cut, sourceFilename: 'a.txt' })
    const { status, errorMessage, result } = await ended(wb, job)
    expect([status, result]).toEqual(['failed', null])
    expect(errorMessage).toMatch(/responded with status 400/)
    const failed = await documentOf(wb, base, document.documentId)
    expect(failed).toMatchObject({ status: 'failed', errorMessage })
    expectNothingLeft(wb.dataDir)
    const again = await enqueue(wb, base, textOf(1), { ...cut, sourceFilename: 'a.txt' })
    expect(await ended(wb, again.job)).toMatchObject({ status: 'succeeded' })
    expect(await base.documents()).toMatchObject([{ documentId: again.document.documentId, status: 'ready' }])
  })

  test('with a chunker that is none fails', async () => {
    const wb = await open({ server: true })
    const base = await makeBase(wb)
    const { job } = await enqueue(wb, base, 'text', { chunker: { maxChars: 10, overlapChars: 10 } })
    expect(await ended(wb, job)).toMatchObject({
      status: 'failed',
      errorMessage: expect.stringMatching(/overlap/i),
    })
    expect(await base.documents()).toMatchObject([{ status: 'failed' }])
    expectNothingLeft(wb.dataDir)
  })

  test('keeps what was changed about its document meanwhile', async () => {
    const { wb, base, provider } = await hosted()
    provider.script({ delayMs: 300 })
    const { job, document } = await enqueue(wb, base, textOf(1), cut)
    await until(() => provider.received.length >= 1)
    const params = { ...base.params, documentId: document.documentId }
    await wb.call(documents.update, { params, body: { metadata: { lang: 'en' }, visibleTo: ['ann'] } })
    await ended(wb, job)
    expect(await documentOf(wb, base, document.documentId)).toMatchObject({
      status: 'ready',
      metadata: { lang: 'en' },
      visibleTo: ['ann'],
    })
    const [hit] = await base.search('wing', { hybrid: true, lexicalWeight: 1 })
    expect(hit!.payload).toMatchObject({ lang: 'en', visible_to: ['ann'] })
  })
})

/** The next listing of chunks answers with what was there before `meanwhile`. */
function lateListing() {
  let meanwhile: (() => Promise<unknown>) | undefined
  const content = (store: ContentStore): ContentStore => ({
    ...store,
    listing: {
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

describe('a changed document says what its chunks say', () => {
  const patch = { metadata: { lang: 'en' }, visibleTo: ['ann'] }

  test('where its job ends while it is changed', async () => {
    const late = lateListing()
    const { wb, base, provider } = await hosted({ content: late.content })
    provider.script({ delayMs: 300 })
    const { job, document } = await enqueue(wb, base, textOf(3), {
      ...cut,
      metadata: { lang: 'de', by: 'bo' },
    })
    const params = { ...base.params, documentId: document.documentId }
    late.once(() => ended(wb, job))
    await wb.call(documents.update, { params, body: patch })
    expect(await documentOf(wb, base, document.documentId)).toMatchObject({ ...patch, status: 'ready' })
    const chunks = await wb.call(documents.chunks, { params })
    expect(chunks.map(({ payload }) => [payload.lang, payload.by, payload.visible_to])).toEqual(
      chunks.map(() => ['en', undefined, ['ann']]),
    )
    expect(chunks).toHaveLength(3)
  })

  test('where two change it at once', async () => {
    const late = lateListing()
    const wb = await open({ server: true, content: late.content })
    const base = await makeBase(wb)
    const { job, document } = await enqueue(wb, base, textOf(3), cut)
    await ended(wb, job)
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
  test('20 ingests of one text at once, at once and by jobs, make one document', async () => {
    const wb = await open({ server: true })
    const base = await makeBase(wb)
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => (n % 2 ? send(wb, base, 'same') : base.ingest('same'))),
    )
    const made = answers.filter(answer => !('outcome' in answer))
    expect(made).toHaveLength(1)
    expect(new Set(answers.map(({ document }) => document.documentId)).size).toBe(1)
    await until(async () => (await base.documents())[0]?.status === 'ready')
    expect(await base.documents()).toHaveLength(1)
    expect(await base.search('same')).toHaveLength(1)
  })

  test('of 20 texts of one file name sent at once, one is taken and the others are told of it', async () => {
    const wb = await open({ server: true })
    const base = await makeBase(wb)
    const name = { sourceFilename: 'one.md' }
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        n % 2 ? send(wb, base, `text ${n}`, name) : base.ingest(`text ${n}`, name),
      ),
    )
    expect(answers.filter(answer => 'outcome' in answer && answer.outcome === 'name_conflict')).toHaveLength(
      19,
    )
    await until(async () => (await base.documents()).every(({ status }) => status === 'ready'))
    expect(await base.documents()).toHaveLength(1)
  })

  test('a duplicate of what is on its way is told without a job', async () => {
    const wb = await open()
    const base = await makeBase(wb)
    const { document } = await enqueue(wb, base, 'waits')
    const again = await send(wb, base, 'waits')
    expect(again).toEqual({ document, outcome: 'duplicate' })
  })
})

describe('a document that is overwritten', () => {
  const name = { sourceFilename: 'one.md', overwriteOnNameConflict: true }
  const lexical = { hybrid: true, lexicalWeight: 1 } as const

  test('answers until the new one is whole, and then no more', async () => {
    const { wb, base, provider } = await hosted()
    const before = await base.ingest('old wing', name)
    provider.script({ delayMs: 300 })
    const { job, document } = await enqueue(wb, base, 'new wing', name)
    await until(() => provider.received.length >= 2)
    expect((await base.search('wing', lexical)).map(({ payload }) => payload!.documentId)).toEqual([
      before.document.documentId,
    ])
    expect(await ended(wb, job)).toMatchObject({ status: 'succeeded' })
    expect((await base.search('wing', lexical)).map(({ payload }) => payload!.documentId)).toEqual([
      document.documentId,
    ])
    expect(await base.documents()).toMatchObject([{ documentId: document.documentId, status: 'ready' }])
    expect(await base.ingest('third', { sourceFilename: 'one.md' })).toMatchObject({
      outcome: 'name_conflict',
    })
  })

  test('stays when the new one fails', async () => {
    const { wb, base, provider } = await hosted()
    const before = await base.ingest('old wing', name)
    provider.script({ status: 400 })
    const { job } = await enqueue(wb, base, 'new wing', name)
    expect(await ended(wb, job)).toMatchObject({ status: 'failed' })
    expect((await base.search('wing', lexical)).map(({ payload }) => payload!.documentId)).toEqual([
      before.document.documentId,
    ])
    expect((await base.documents()).map(({ status }) => status).sort()).toEqual(['failed', 'ready'])
  })

  test('gives way to the one that was taken in last, whichever is whole first', async () => {
    const { wb, base, provider } = await hosted()
    await base.ingest('old wing', name)
    provider.script({ delayMs: 500 })
    const slow = await enqueue(wb, base, 'second wing', name)
    await until(() => provider.received.length >= 2)
    const quick = await enqueue(wb, base, 'third wing', name)
    expect(await ended(wb, quick.job)).toMatchObject({ status: 'succeeded' })
    expect(await ended(wb, slow.job)).toMatchObject({
      status: 'failed',
      errorMessage: expect.stringMatching(/replaced/),
    })
    expect(await base.documents()).toMatchObject([{ documentId: quick.document.documentId, status: 'ready' }])
    expectNothingLeft(wb.dataDir)
  })
})

describe('what is deleted while a job works on it stays deleted', () => {
  test('a document', async () => {
    const { wb, base, provider } = await hosted()
    provider.script({ delayMs: 300 })
    const { job, document } = await enqueue(wb, base, textOf(1), cut)
    await until(() => provider.received.length >= 1)
    await wb.call(documents.delete, { params: { ...base.params, documentId: document.documentId } })
    expect(await ended(wb, job)).toMatchObject({
      status: 'failed',
      errorMessage: expect.stringMatching(/deleted/),
    })
    expect(await base.documents()).toEqual([])
    expectNothingLeft(wb.dataDir)
  })

  test('a document whose id another one has since', async () => {
    const { wb, base, provider } = await hosted()
    provider.script({ delayMs: 300 })
    const { job, document } = await enqueue(wb, base, textOf(3), cut)
    await until(() => provider.received.length >= 1)
    const { documentId } = document
    await wb.call(documents.delete, { params: { ...base.params, documentId } })
    await base.ingest('another wing', { documentId })
    expect(await ended(wb, job)).toMatchObject({ status: 'failed' })
    expect(await documentOf(wb, base, documentId)).toMatchObject({ status: 'ready', chunkTotal: 1 })
    expect(await base.search('wing', { hybrid: true, lexicalWeight: 1 })).toHaveLength(1)
  })

  test.each(['knowledge base', 'workspace'])('a %s, with its jobs', async what => {
    const { wb, base, provider } = await hosted()
    provider.script({}, {}, { delayMs: 300 })
    const { job } = await enqueue(wb, base, textOf(9), cut)
    await until(() => provider.received.length >= 3)
    const { workspaceId } = base.params
    if (what === 'workspace') await wb.call(workspaces.delete, { params: { workspaceId } })
    else await base.delete()
    await expect(jobOf(wb, job)).rejects.toMatchObject({
      code: what === 'workspace' ? 'workspace_not_found' : 'job_not_found',
    })
    await until(async () => ((await wb.send('GET /readyz')).body.ingest as { active: number }).active === 0)
    expectNothingLeft(wb.dataDir)
    expect(paid(provider).length).toBeLessThan(9)
  })
})

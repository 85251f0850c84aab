import { describe, expect, onTestFinished, test } from 'vitest'
import { documents } from '../../src/contract/documents.ts'
import type { DocumentExplanation } from '../../src/contract/ingest-report.ts'
import { startEmbeddingServer } from '../fakes/embedding-server.ts'
import { type Base, makeBase, makeMockService, makeWorkspace } from '../harness/resources.ts'
import { open, type TestRuntime, waitUntil } from '../harness/runtime.ts'
import {
  cancel,
  chunkPerParagraph,
  createHostedBase,
  enqueue,
  jobOf,
  textOf,
  waitForEnd,
} from '../jobs/ingest-jobs.ts'

function explain(wb: Pick<TestRuntime, 'call'>, { params }: Base, documentId: string) {
  return wb.call(documents.explain, { params: { ...params, documentId } })
}

/** Returns the names of the stages that have ended. */
function endedStages({ report }: DocumentExplanation): string[] {
  return report!.stages.filter(({ ms }) => ms !== null && ms >= 0).map(({ name }) => name)
}

describe('the explanation of an ingest', () => {
  test('has the stages, the chunker and the sizes of a text', async () => {
    const wb = await open()
    const base = await makeBase(wb)
    const { document } = await base.ingest(textOf(3), chunkPerParagraph)
    const explanation = await explain(wb, base, document.documentId)
    expect(explanation).toMatchObject({
      documentId: document.documentId,
      status: 'ready',
      job: null,
      report: {
        attempts: 1,
        parser: null,
        textBytes: textOf(3).length,
        chunker: { maxChars: 100, minChars: 0, overlapChars: 0 },
        chunks: 3,
        embedding: { provider: 'workbase', requests: 0, reused: 0 },
        failure: null,
      },
    })
    expect(explanation.report!.embedding!.tokens).toBe(Math.ceil((3 * 90 + 4) / 4))
    expect(endedStages(explanation)).toEqual(['chunking', 'embedding'])
    expect(document).not.toHaveProperty('ingestReport')
    expect((await base.documents())[0]).not.toHaveProperty('ingestReport')
  })

  test('has the parser of a file, and how long it took', async () => {
    const wb = await open()
    const base = await makeBase(wb)
    const body = new FormData()
    body.set('file', new File(['A note.'], 'note.md', { type: 'text/markdown' }))
    const answer = await wb.call(documents.ingestFile, { params: base.params, body })
    const explanation = await explain(wb, base, answer.document.documentId)
    expect(explanation.report).toMatchObject({ parser: { name: 'native', version: null }, textBytes: 7 })
    expect(endedStages(explanation)).toEqual(['extracting', 'chunking', 'embedding'])
    expect(explanation.report!.startedAt).toBe(explanation.report!.stages[0]!.startedAt)
  })

  test('of a job counts requests, and shows the running stage with the job', async () => {
    const { wb, base, provider } = await createHostedBase()
    provider.script({}, {}, { hang: 'before headers' })
    const { job, document } = await enqueue(wb, base, textOf(7), chunkPerParagraph)
    await waitUntil(() => provider.received.length >= 3)
    await waitUntil(async () => (await jobOf(wb, job)).processed === 4)
    const running = await explain(wb, base, document.documentId)
    expect(running).toMatchObject({
      status: 'embedding',
      job: { jobId: job.jobId, processed: 4, total: 7 },
      report: { endedAt: null, chunks: 7 },
    })
    expect(running.report!.stages.at(-1)).toMatchObject({ name: 'embedding', ms: null })
    await cancel(wb, job)
    const cancelled = await explain(wb, base, document.documentId)
    expect(cancelled).toMatchObject({
      status: 'failed',
      job: null,
      report: { failure: { stage: 'embedding', code: null, message: 'cancelled', hint: null } },
    })
    const again = await enqueue(wb, base, textOf(7, 'tail'), chunkPerParagraph)
    await waitForEnd(wb, again.job)
    const ready = await explain(wb, base, again.document.documentId)
    expect(ready.report!.embedding).toMatchObject({
      provider: 'ollama',
      dimension: 3,
      requests: 4,
      reused: 0,
    })
    expect(endedStages(ready)).toEqual(['queued', 'chunking', 'embedding', 'writing'])
  })

  test.each(['text', 'job'])('of a failed %s has the stage, the code, a hint and the requests', async way => {
    const { wb, base, provider } = await createHostedBase()
    provider.script({}, {}, { status: 400 }, { status: 400 })
    if (way === 'job') {
      const { job } = await enqueue(wb, base, textOf(7), chunkPerParagraph)
      await waitForEnd(wb, job)
    } else await expect(base.ingest(textOf(7), chunkPerParagraph)).rejects.toThrow('status 400')
    const [document] = await base.documents()
    const { status, report } = await explain(wb, base, document!.documentId)
    expect([status, report!.failure]).toEqual([
      'failed',
      {
        stage: 'embedding',
        code: 'embedding_unavailable',
        message: document!.errorMessage,
        hint: expect.stringMatching(/\w/),
      },
    ])
    expect(report!.endedAt).not.toBeNull()
    expect(report!.embedding!.requests).toBeGreaterThanOrEqual(3)
  })

  test('of a chunker that fails names the stage', async () => {
    const wb = await open()
    const base = await makeBase(wb)
    const chunker = { maxChars: 10, overlapChars: 10 }
    await expect(base.ingest('text', { chunker })).rejects.toMatchObject({ code: 'invalid_chunker' })
    const [document] = await base.documents()
    expect((await explain(wb, base, document!.documentId)).report).toMatchObject({
      chunks: null,
      failure: { stage: 'chunking', code: 'invalid_chunker' },
    })
  })

  test('counts the attempts of a job that another process continues, and the vectors that it reuses', async () => {
    const provider = await startEmbeddingServer(3)
    onTestFinished(() => provider.close())
    const first = await open({ server: true })
    const { workspaceId } = await makeWorkspace(first)
    const fields = { provider: 'ollama', endpointBaseUrl: provider.url, maxBatchSize: 2 }
    const { embeddingServiceId } = await makeMockService(first, workspaceId, fields)
    const base = await makeBase(first, { workspaceId, embeddingServiceId })
    provider.script({}, {}, { hang: 'before headers' })
    const { job, document } = await enqueue(first, base, textOf(7), chunkPerParagraph)
    await waitUntil(() => provider.received.length >= 3)
    await waitUntil(async () => (await jobOf(first, job)).processed === 4)
    await first.close()
    const next = await open({ server: true, dataDir: first.dataDir })
    await waitForEnd(next, job)
    expect((await explain(next, base, document.documentId)).report).toMatchObject({
      attempts: 2,
      embedding: { requests: 2, reused: 4 },
      failure: null,
    })
  })

  test('is empty for a document without text', async () => {
    const wb = await open()
    const base = await makeBase(wb)
    const { documentId } = await wb.call(documents.create, { params: base.params, body: {} })
    expect(await explain(wb, base, documentId)).toEqual({
      documentId,
      status: 'pending',
      report: null,
      job: null,
    })
  })
})

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { audit } from '../../src/contract/audit.ts'
import { documents } from '../../src/contract/documents.ts'
import { jobs } from '../../src/contract/jobs.ts'
import { kb } from '../../src/contract/knowledge.ts'
import { chunkingServices } from '../../src/contract/services.ts'
import { startEmbeddingServer, vectorFor } from '../fakes/embedding-server.ts'
import { programPath } from '../harness/program.ts'
import { baseIn, makeMockService } from '../harness/resources.ts'
import { open } from '../harness/runtime.ts'
import { createHostedBase, embeddedTexts, expectNothingLeft, textOf } from '../jobs/ingest-jobs.ts'

/** About two seconds each; `WB_TEST_KILLS=100` runs a longer test. */
const kills = Number(process.env.WB_TEST_KILLS ?? 5)
const documentsCount = 20
const chunksPerDocument = 4
const question = 'wing'
/** Two requests of `maxBatchSize` texts. */
const batch = 2

/** A server in a child process that runs jobs until it is killed. */
async function start(dataDir: string) {
  const child = fork(programPath('runtime/process'), [dataDir, 'server'])
  const ended = once(child, 'exit')
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child, 'message')
  return async () => {
    child.kill('SIGKILL')
    await ended
  }
}

test('a server killed while it reindexes continues, and every search finds all documents', {
  timeout: 60_000 + kills * 10_000,
}, async () => {
  const { wb, base } = await createHostedBase({ server: false })
  const { workspaceId } = base.params
  for (let n = 0; n < documentsCount; n++) await base.ingest(textOf(chunksPerDocument, `wing${n}`))
  const provider = await startEmbeddingServer(5)
  onTestFinished(() => provider.close())
  const fields = {
    provider: 'ollama',
    modelName: 'm5',
    endpointBaseUrl: provider.url,
    embeddingDimension: 5,
    maxBatchSize: batch / 2,
  }
  const { embeddingServiceId } = await makeMockService(wb, workspaceId, fields)
  const sizes = { maxChunkSize: 100, minChunkSize: 0, overlapSize: 0 }
  const { chunkingServiceId } = await wb.call(chunkingServices.create, {
    params: { workspaceId },
    body: { name: 'paragraphs', engine: 'langchain_ts', strategy: 'line', ...sizes },
  })
  const body = { chunkingServiceId, embeddingServiceId }
  const { job } = await wb.call(kb.reindex, { params: base.params, body })
  const findAll = async () => {
    const hits = await base.search(question, { hybrid: false })
    return new Set(hits.map(({ payload }) => payload!.documentId)).size
  }
  let seed = 11
  for (let round = 0; round < kills; round++) {
    provider.script(...Array.from({ length: 100 }, () => ({ delayMs: 60 })))
    const kill = await start(wb.dataDir)
    seed = (seed * 16_807) % 2_147_483_647
    await new Promise(resolve => setTimeout(resolve, 200 + (seed / 2_147_483_647) * 600))
    await kill()
    expect(await findAll()).toBe(documentsCount)
  }
  const next = await open({ dataDir: wb.dataDir, server: true })
  const params = { workspaceId, jobId: job.jobId }
  await expect
    .poll(async () => (await next.call(jobs.show, { params })).status, { timeout: 30_000, interval: 50 })
    .toBe('succeeded')
  const found = baseIn(next, { ...base.params, name: base.name })
  expect(await found.show()).toMatchObject(body)
  for (const { documentId } of await found.documents()) {
    const chunks = await next.call(documents.chunks, { params: { ...base.params, documentId } })
    expect(chunks).toHaveLength(chunksPerDocument)
  }
  const hits = await found.search(question, { hybrid: false, includeEmbeddings: true })
  expect(hits).toHaveLength(chunksPerDocument * documentsCount)
  for (const { payload, vector } of hits)
    for (const [at, value] of vectorFor(String(payload!.chunkText), 5).entries())
      expect(vector![at]).toBeCloseTo(value, 4)
  await expectNothingLeft(wb.dataDir)
  const query = { action: 'job.claim', limit: 200 } as const
  const claims = await next.call(audit.list, { params: { workspaceId }, query })
  expect(claims.items.length, 'the job was taken up in the middle').toBeGreaterThan(1)
  // A kill loses the requests in progress, or the new chunks of one document. Searches are not counted.
  const all = embeddedTexts(provider).filter(text => text !== question)
  expect(all.length - new Set(all).size).toBeLessThanOrEqual(kills * Math.max(batch, chunksPerDocument))
})

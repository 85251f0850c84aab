import { expect, test } from 'vitest'
import { audit } from '../../src/contract/audit.ts'
import { documents } from '../../src/contract/documents.ts'
import { jobs } from '../../src/contract/jobs.ts'
import { baseIn } from '../harness/resources.ts'
import { open } from '../harness/runtime.ts'
import {
  chunkPerParagraph,
  createHostedBase,
  embeddedTexts,
  expectNothingLeft,
  textOf,
} from '../jobs/ingest-jobs.ts'
import { everyPage, startKillableServer } from './killable-server.ts'

/** About three seconds each; `WB_TEST_KILLS=100` runs a longer test. */
const kills = Number(process.env.WB_TEST_KILLS ?? 5)
const jobsAtOnce = 4
const chunksEach = 24
/** Two requests of `maxBatchSize` texts. */
const batch = 4

test('a server killed during ingest loses no jobs, leaves no partial documents, and does not embed stored batches again', {
  timeout: 60_000 + kills * 15_000,
}, async () => {
  const { wb, base, provider } = await createHostedBase({ server: false })
  const { workspaceId } = base.params
  const { dataDir } = wb
  let seed = 7
  const random = () => {
    seed = (seed * 16_807) % 2_147_483_647
    return seed / 2_147_483_647
  }
  for (let round = 0; round < kills; round++) {
    provider.script(...Array.from({ length: 400 }, () => ({ delayMs: 5 })))
    const server = await startKillableServer(dataDir)
    for (let n = 0; n < 6; n++)
      void server.send(`POST ${base.path}/ingest?async=true`, {
        text: textOf(chunksEach, `wing${n % 5} of round ${round}`),
        sourceFilename: `${n % 4}.md`,
        overwriteOnNameConflict: true,
        ...chunkPerParagraph,
      })
    await server.nextAnswer()
    await new Promise(resolve => setTimeout(resolve, random() * 400))
    await server.kill()
  }
  const next = await open({ dataDir, server: true })
  const params = { workspaceId }
  const unfinished = async () => {
    const all = await everyPage(cursor => next.call(jobs.list, { params, query: { limit: 200, cursor } }))
    return all.filter(({ status }) => status === 'pending' || status === 'running')
  }
  await expect.poll(unfinished, { timeout: 30_000 + kills * 2_000, interval: 100 }).toEqual([])
  await expectNothingLeft(dataDir)
  const found = baseIn(next, { ...base.params, name: base.name })
  const rows = await found.documents()
  const ready = rows.filter(({ status }) => status === 'ready')
  expect(ready.map(({ sourceFilename }) => sourceFilename).sort()).toEqual(['0.md', '1.md', '2.md', '3.md'])
  for (const { documentId } of ready) {
    const chunks = await next.call(documents.chunks, { params: { ...base.params, documentId } })
    expect(chunks).toHaveLength(chunksEach)
  }
  const hits = await found.search('round', { hybrid: true, lexicalWeight: 1 })
  expect(new Set(hits.map(({ payload }) => payload!.documentId)).size).toBe(ready.length)
  const claims = await everyPage(cursor =>
    next.call(audit.list, { params, query: { action: 'job.claim', limit: 200, cursor } }),
  )
  const claimed = claims.map(({ details }) => details!.jobId)
  expect(claimed.length, 'some were taken up in the middle').toBeGreaterThan(new Set(claimed).size)
  const all = embeddedTexts(provider)
  expect(all.length - new Set(all).size).toBeLessThanOrEqual(kills * jobsAtOnce * batch)
})

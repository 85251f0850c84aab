import { fork } from 'node:child_process'
import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { audit } from '../../src/contract/audit.ts'
import { documents } from '../../src/contract/documents.ts'
import { jobs } from '../../src/contract/jobs.ts'
import { programPath } from '../harness/program.ts'
import { baseIn } from '../harness/resources.ts'
import { open } from '../harness/runtime.ts'
import {
  chunkPerParagraph,
  createHostedBase,
  embeddedTexts,
  expectNothingLeft,
  textOf,
} from '../jobs/ingest-jobs.ts'

/** About three seconds each; `WB_TEST_KILLS=100` runs a longer test. */
const kills = Number(process.env.WB_TEST_KILLS ?? 5)
const jobsAtOnce = 4
const chunksEach = 24
/** Two requests of `maxBatchSize` texts. */
const batch = 4

/** A server in a child process that receives texts until it is killed. */
async function start(dataDir: string) {
  const child = fork(programPath('runtime/process'), [dataDir, 'server'])
  const ended = once(child, 'exit')
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child, 'message')
  let asked = 0
  return {
    send: (line: string, json: unknown) => child.send({ id: asked++, line, json }),
    accepted: () => once(child, 'message'),
    async kill() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

interface Page<T> {
  readonly items: T[]
  readonly nextCursor: string | null
}

async function everyPage<T>(read: (cursor: string | undefined) => Promise<Page<T>>): Promise<T[]> {
  const all: T[] = []
  for (let cursor: string | undefined; ; ) {
    const { items, nextCursor } = await read(cursor)
    all.push(...items)
    if (nextCursor === null) return all
    cursor = nextCursor
  }
}

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
    const server = await start(dataDir)
    for (let n = 0; n < 6; n++)
      server.send(`POST ${base.path}/ingest?async=true`, {
        text: textOf(chunksEach, `wing${n % 5} of round ${round}`),
        sourceFilename: `${n % 4}.md`,
        overwriteOnNameConflict: true,
        ...chunkPerParagraph,
      })
    await server.accepted()
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

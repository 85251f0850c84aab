import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { type Document, documents, type IngestInput } from '../../src/contract/documents.ts'
import { type Job, jobs } from '../../src/contract/jobs.ts'
import { checkStore } from '../../src/storage/sqlite/check.ts'
import { type EmbeddingServer, startEmbeddingServer } from '../fakes/embedding-server.ts'
import { type Base, makeBase, makeMockService, makeWorkspace } from '../harness/place.ts'
import { type Opened, type Options, open, until } from '../harness/runtime.ts'
import { storeFile } from '../harness/store.ts'

type Call = Pick<Opened, 'call'>

export interface Enqueued {
  readonly job: Job
  readonly document: Document
}

/** What a runtime says to a text that it is to take in by a job. */
export function send({ call }: Call, { params }: Base, text: string, fields: Partial<IngestInput> = {}) {
  return call(documents.ingest, { params, query: { async: 'true' }, body: { text, ...fields } })
}

/** Send a text for a job to ingest; it is new. */
export async function enqueue(
  opened: Call,
  base: Base,
  text: string,
  fields: Partial<IngestInput> = {},
): Promise<Enqueued> {
  const answer = await send(opened, base, text, fields)
  if (!('job' in answer)) throw new Error(`it was there: ${JSON.stringify(answer)}`)
  return answer
}

export function jobOf({ call }: Call, { workspaceId, jobId }: Job): Promise<Job> {
  return call(jobs.show, { params: { workspaceId, jobId } })
}

export function cancel({ call }: Call, { workspaceId, jobId }: Job): Promise<Job> {
  return call(jobs.cancel, { params: { workspaceId, jobId } })
}

/** A job at its end. */
export async function ended(opened: Call, job: Job): Promise<Job> {
  let now = job
  await until(async () => {
    now = await jobOf(opened, job)
    return now.status === 'succeeded' || now.status === 'failed'
  })
  return now
}

export async function documentOf({ call }: Call, { params }: Base, documentId: string): Promise<Document> {
  return call(documents.show, { params: { ...params, documentId } })
}

/** A text that is cut into so many chunks. */
export function textOf(chunks: number, word = 'wing'): string {
  return Array.from({ length: chunks }, (_, at) => `${word} ${at} `.padEnd(90, 'x')).join('\n\n')
}

/** A chunk for each paragraph of `textOf`. */
export const cut = { chunker: { maxChars: 100, minChars: 0, overlapChars: 0 } }

export interface Hosted {
  readonly wb: Opened
  readonly base: Base
  readonly provider: EmbeddingServer
}

/** A knowledge base whose vectors a provider makes, which is asked for two times `maxBatchSize` texts at once. */
export async function hosted(options: Options = {}, maxBatchSize = 2): Promise<Hosted> {
  const provider = await startEmbeddingServer(3)
  onTestFinished(() => provider.close())
  const wb = await open({ server: true, ...options })
  const { workspaceId } = await makeWorkspace(wb)
  const fields = { provider: 'ollama', endpointBaseUrl: provider.url, maxBatchSize }
  const { embeddingServiceId } = await makeMockService(wb, workspaceId, fields)
  return { wb, provider, base: await makeBase(wb, { workspaceId, embeddingServiceId }) }
}

/** Texts that a provider was paid for. */
export function paid({ received }: EmbeddingServer): string[] {
  return received.flatMap(({ body }) => body.input ?? [])
}

/** Nothing is left of jobs but their rows, all of which have ended, and no document is on its way. */
export function expectNothingLeft(dataDir: string): void {
  const store = storeFile(dataDir)
  const count = (from: string) => store.one(`SELECT count(*) AS n FROM ${from}`).n
  expect({
    inputs: count('job_inputs'),
    batches: count('job_batches'),
    open: count(`jobs WHERE status IN ('pending', 'running') OR body ->> '$.leaseOwner' IS NOT NULL`),
    documents: count(`documents WHERE body ->> '$.status' NOT IN ('ready', 'failed')`),
    unexplained: count(
      `documents WHERE body ->> '$.status' = 'failed' AND body ->> '$.errorMessage' IS NULL`,
    ),
    held: count(`documents WHERE body ->> '$.jobId' IS NOT NULL`),
    inTheWay: count(
      `documents WHERE body ->> '$.status' = 'failed' AND coalesce(ingestKey, nameKey) IS NOT NULL`,
    ),
  }).toEqual({ inputs: 0, batches: 0, open: 0, documents: 0, unexplained: 0, held: 0, inTheWay: 0 })
  store.close()
  const { checks } = checkStore(join(dataDir, 'workbase.db'))!
  expect(checks.filter(check => check.count > 0)).toEqual([])
}

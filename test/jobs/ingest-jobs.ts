import { expect, onTestFinished } from 'vitest'
import { type Document, documents, type IngestInput } from '../../src/contract/documents.ts'
import { type Job, jobs } from '../../src/contract/jobs.ts'
import { type EmbeddingServer, startEmbeddingServer } from '../fakes/embedding-server.ts'
import { type Base, makeBase, makeMockService, makeWorkspace } from '../harness/resources.ts'
import { open, type TestRuntime, type TestRuntimeOptions, waitUntil } from '../harness/runtime.ts'
import { failedStoreChecks } from '../harness/store-check.ts'
import { storeFile } from '../harness/store-file.ts'

type Call = Pick<TestRuntime, 'call'>

export interface Enqueued {
  readonly job: Job
  readonly document: Document
}

/** Sends a text to ingest in a job, and returns the response. */
export function sendForJob(
  { call }: Call,
  { params }: Base,
  text: string,
  fields: Partial<IngestInput> = {},
) {
  return call(documents.ingest, { params, query: { async: 'true' }, body: { text, ...fields } })
}

/** Sends a new text to ingest in a job. */
export async function enqueue(
  opened: Call,
  base: Base,
  text: string,
  fields: Partial<IngestInput> = {},
): Promise<Enqueued> {
  const answer = await sendForJob(opened, base, text, fields)
  if (!('job' in answer)) throw new Error(`it was there: ${JSON.stringify(answer)}`)
  return answer
}

export function jobOf({ call }: Call, { workspaceId, jobId }: Job): Promise<Job> {
  return call(jobs.show, { params: { workspaceId, jobId } })
}

export function cancel({ call }: Call, { workspaceId, jobId }: Job): Promise<Job> {
  return call(jobs.cancel, { params: { workspaceId, jobId } })
}

/** Waits until a job has ended. */
export async function waitForEnd(opened: Call, job: Job): Promise<Job> {
  let now = job
  await waitUntil(async () => {
    now = await jobOf(opened, job)
    return now.status === 'succeeded' || now.status === 'failed'
  })
  return now
}

export async function documentOf({ call }: Call, { params }: Base, documentId: string): Promise<Document> {
  return call(documents.show, { params: { ...params, documentId } })
}

/** Creates a text with this number of chunks. */
export function textOf(chunks: number, word = 'wing'): string {
  return Array.from({ length: chunks }, (_, at) => `${word} ${at} `.padEnd(90, 'x')).join('\n\n')
}

/** Chunker settings that create a chunk for each paragraph of `textOf`. */
export const chunkPerParagraph = { chunker: { maxChars: 100, minChars: 0, overlapChars: 0 } }

export interface HostedBase {
  readonly wb: TestRuntime
  readonly base: Base
  readonly provider: EmbeddingServer
}

/**
 * Creates a knowledge base with an external embedding server, which receives two concurrent batches of up to
 * `maxBatchSize` texts.
 */
export async function createHostedBase(
  options: TestRuntimeOptions = {},
  maxBatchSize = 2,
): Promise<HostedBase> {
  const provider = await startEmbeddingServer(3)
  onTestFinished(() => provider.close())
  const wb = await open({ server: true, ...options })
  const { workspaceId } = await makeWorkspace(wb)
  const fields = { provider: 'ollama', endpointBaseUrl: provider.url, maxBatchSize }
  const { embeddingServiceId } = await makeMockService(wb, workspaceId, fields)
  return { wb, provider, base: await makeBase(wb, { workspaceId, embeddingServiceId }) }
}

/** Returns all texts that the embedding server has received. */
export function embeddedTexts({ received }: EmbeddingServer): string[] {
  return received.flatMap(({ body }) => body.input ?? [])
}

/** Checks that all jobs have ended without leftovers, and that every document is ready or failed. */
export async function expectNothingLeft(dataDir: string): Promise<void> {
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
  expect(await failedStoreChecks(dataDir)).toEqual([])
}

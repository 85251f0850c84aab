import { type Clock, timestamp } from '../base/clock.ts'
import { newId } from '../base/id.ts'
import { type RowStore, revisionOf, type Stored, type Write } from '../storage/rows.ts'
import { type DocumentRow, type JobInputRow, type JobRow, tables } from '../storage/tables.ts'
import { failReport, type IngestFailure } from './ingest-report.ts'

/** Maximum number of attempts. A write is retried if the document changed in the meantime. */
const attemptsMax = 20

/** Returns a new job for a document. The transaction that inserts the document must include the returned writes. */
export function newJob(
  document: { workspaceId: string; knowledgeBaseId: string; documentId: string },
  { body, actor }: Pick<JobInputRow, 'body' | 'actor'>,
  clock: Clock,
): { job: JobRow; writes: Write[] } {
  const { workspaceId, knowledgeBaseId, documentId } = document
  const job = pendingJob({ workspaceId, kind: 'ingest', knowledgeBaseId, documentId }, clock)
  const input = { workspaceId, knowledgeBaseId, jobId: job.jobId, body, actor }
  return {
    job,
    writes: [
      { op: 'insert', table: tables.jobs, row: job },
      { op: 'insert', table: tables.jobInputs, row: input },
    ],
  }
}

/** Returns a new job that has no input. */
export function pendingJob(
  fields: Pick<JobRow, 'workspaceId' | 'kind' | 'knowledgeBaseId' | 'documentId' | 'reindex'>,
  clock: Clock,
): JobRow {
  const now = timestamp(clock)
  return {
    ...fields,
    jobId: newId(),
    status: 'pending',
    processed: 0,
    total: null,
    result: null,
    errorMessage: null,
    createdAt: now,
    updatedAt: now,
    leaseOwner: null,
    leaseUntil: null,
    endedAt: null,
  }
}

/** Returns a job with a change that clients can see. Increases `updatedAt` by at least a millisecond. */
export function changedJob(job: JobRow, change: Partial<JobRow>, clock: Clock): JobRow {
  const updatedAt = new Date(Math.max(clock.now(), Date.parse(job.updatedAt) + 1)).toISOString()
  return { ...job, ...change, updatedAt }
}

/** Returns a job in its final state, without a lease. */
export function endedJob(job: JobRow, end: Partial<JobRow>, clock: Clock): JobRow {
  const ended = { leaseOwner: null, leaseUntil: null, endedAt: timestamp(clock) }
  return changedJob(job, { ...end, ...ended }, clock)
}

/**
 * Returns the writes that end a job and delete its input and batches. The first write fails if the job has changed.
 */
export function endingWrites(before: Stored<JobRow>, after: JobRow): Write[] {
  const prefix = [after.workspaceId, after.jobId]
  return [
    { op: 'replace', table: tables.jobs, row: after, version: before.version },
    { op: 'deleteAll', table: tables.jobInputs, index: 'byWorkspace', prefix },
    { op: 'deleteAll', table: tables.jobBatches, index: 'byJob', prefix },
  ]
}

/** Returns the document of a job; undefined if the document was deleted, even if a new document has the same ID. */
export async function documentOfJob(rows: RowStore, job: JobRow): Promise<Stored<DocumentRow> | undefined> {
  const { workspaceId, knowledgeBaseId, documentId, jobId } = job
  const document = await rows.get(tables.documents, [workspaceId, knowledgeBaseId, documentId])
  return document?.row.jobId === jobId ? document : undefined
}

/**
 * Ends a job as failed, and marks its document as failed, so that the text can be ingested again.
 *
 * @param failure  its texts must not contain secrets; at most 500 characters each
 * @returns the ended job; undefined if the job changed in the meantime
 */
export async function failJob(
  { rows, clock }: { rows: RowStore; clock: Clock },
  before: Stored<JobRow>,
  failure: IngestFailure,
): Promise<JobRow | undefined> {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const after = endedJob(before.row, { status: 'failed', errorMessage: failure.message }, clock)
    const document = await documentOfJob(rows, before.row)
    const outcome = await rows.atomic([
      ...endingWrites(before, after),
      ...(document ? [documentFailureWrite(document, failure, after.updatedAt)] : []),
    ])
    if (outcome.ok) return after
    if (outcome.at === 0) return undefined
  }
  throw new Error(`the document of job ${before.row.jobId} keeps changing`)
}

function documentFailureWrite(
  document: Stored<DocumentRow>,
  failure: IngestFailure,
  updatedAt: string,
): Write {
  const { ingestReport } = document.row
  const failed: DocumentRow = {
    ...document.row,
    status: 'failed',
    errorMessage: failure.message,
    updatedAt,
    ingestKey: null,
    nameKey: null,
    jobId: null,
    ...(ingestReport && { ingestReport: failReport(ingestReport, failure, Date.parse(updatedAt)) }),
  }
  return { op: 'replace', table: tables.documents, row: failed, ...revisionOf(document) }
}

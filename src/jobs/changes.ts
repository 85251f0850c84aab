import { type Clock, timestamp } from '../base/clock.ts'
import { newId } from '../base/id.ts'
import type { Ingest } from '../contract/documents.ts'
import type { RowStore, Stored, Write } from '../storage/rows.ts'
import { type DocumentRow, type JobRow, tables } from '../storage/tables.ts'

/** Each attempt but the last lost against another change of the document. */
const attemptsMax = 20

/** A new job on a document, and what makes it last: part of the unit that inserts the document. */
export function newJob(
  document: { workspaceId: string; knowledgeBaseId: string; documentId: string },
  body: Ingest,
  clock: Clock,
): { job: JobRow; writes: Write[] } {
  const now = timestamp(clock)
  const { workspaceId, knowledgeBaseId, documentId } = document
  const job: JobRow = {
    workspaceId,
    jobId: newId(),
    kind: 'ingest',
    knowledgeBaseId,
    documentId,
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
  const input = { workspaceId, knowledgeBaseId, jobId: job.jobId, body }
  return {
    job,
    writes: [
      { op: 'insert', table: tables.jobs, row: job },
      { op: 'insert', table: tables.jobInputs, row: input },
    ],
  }
}

/** A job with a change that is seen from outside: `updatedAt` grows by a millisecond at least. */
export function changedJob(job: JobRow, change: Partial<JobRow>, clock: Clock): JobRow {
  const updatedAt = new Date(Math.max(clock.now(), Date.parse(job.updatedAt) + 1)).toISOString()
  return { ...job, ...change, updatedAt }
}

/** A job at its end. */
export function endedJob(job: JobRow, end: Partial<JobRow>, clock: Clock): JobRow {
  const lapsed = { leaseOwner: null, leaseUntil: null, endedAt: timestamp(clock) }
  return changedJob(job, { ...end, ...lapsed }, clock)
}

/** Write the end of a job over what it was; its input and its batches go. The first one is refused when it changed. */
export function endingWrites(before: Stored<JobRow>, after: JobRow): Write[] {
  const prefix = [after.workspaceId, after.jobId]
  return [
    { op: 'replace', table: tables.jobs, row: after, version: before.version },
    { op: 'deleteAll', table: tables.jobInputs, index: 'byWorkspace', prefix },
    { op: 'deleteAll', table: tables.jobBatches, index: 'byJob', prefix },
  ]
}

/** The document that a job makes; undefined when it is gone, or another one has its id. */
export async function documentOf(rows: RowStore, job: JobRow): Promise<Stored<DocumentRow> | undefined> {
  const { workspaceId, knowledgeBaseId, documentId, jobId } = job
  const found = await rows.get(tables.documents, [workspaceId, knowledgeBaseId, documentId])
  return found?.row.jobId === jobId ? found : undefined
}

/**
 * End a job as failed, and its document with it, which then stands in nobody's way.
 *
 * @param errorMessage  without secrets, at most 500 characters
 * @returns the job as it ended; undefined when somebody changed it meanwhile
 */
export async function failJob(
  { rows, clock }: { rows: RowStore; clock: Clock },
  before: Stored<JobRow>,
  errorMessage: string,
): Promise<JobRow | undefined> {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const after = endedJob(before.row, { status: 'failed', errorMessage }, clock)
    const document = await documentOf(rows, before.row)
    const outcome = await rows.atomic([
      ...endingWrites(before, after),
      ...(document ? [failingWrite(document, errorMessage, after.updatedAt)] : []),
    ])
    if (outcome.ok) return after
    if (outcome.at === 0) return undefined
  }
  throw new Error(`the document of job ${before.row.jobId} keeps changing`)
}

function failingWrite({ row, version }: Stored<DocumentRow>, errorMessage: string, updatedAt: string): Write {
  const failed: DocumentRow = {
    ...row,
    status: 'failed',
    errorMessage,
    updatedAt,
    ingestKey: null,
    nameKey: null,
    jobId: null,
  }
  return { op: 'replace', table: tables.documents, row: failed, version }
}

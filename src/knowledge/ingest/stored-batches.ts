import { decodeVectorText, encodeVectorText } from '../../base/vector-text.ts'
import { WbError } from '../../contract/errors.ts'
import type { JobClaim } from '../../jobs/job-claim.ts'
import type { RowStore } from '../../storage/rows.ts'
import { type JobBatchRow, tables } from '../../storage/tables.ts'

/** Number of batches per read. A batch can take a few megabytes. */
const batchesPerRead = 8

/** Vectors of consecutive passages of a text, from one request to the provider. */
export interface VectorBatch {
  /** Index of the first passage in the text. */
  readonly start: number
  /** Hash of the passages and the model. */
  readonly source: string
  readonly vectors: readonly Float32Array[]
}

/** Yields the batches that earlier attempts of a job stored, in the order of their passages. */
export async function* readStoredBatches(
  rows: RowStore,
  { job: { workspaceId, jobId } }: JobClaim,
): AsyncGenerator<VectorBatch> {
  const list = { index: 'byJob', prefix: [workspaceId, jobId], limit: batchesPerRead }
  let after: [number] | undefined
  for (;;) {
    const slice = await rows.list(tables.jobBatches, { ...list, after })
    for (const { row } of slice) yield { ...row, vectors: row.vectors.map(decodeVectorText) }
    if (slice.length < batchesPerRead) return
    after = [slice.at(-1)!.row.start]
  }
}

/**
 * Stores a batch for later attempts. Fails if the input of the job no longer exists. Otherwise, a batch could remain in
 * the store after its knowledge base was deleted.
 *
 * @throws ClaimLost, document_not_found
 */
export async function storeBatch(claim: JobClaim, { start, source, vectors }: VectorBatch): Promise<void> {
  const { workspaceId, jobId, processed } = claim.job
  const knowledgeBaseId = claim.job.knowledgeBaseId!
  const prefix = [workspaceId, jobId, start]
  const row: JobBatchRow = {
    workspaceId,
    knowledgeBaseId,
    jobId,
    start,
    source,
    vectors: vectors.map(encodeVectorText),
  }
  const change = { processed: Math.max(processed, start + vectors.length) }
  const outcome = await claim.advance(change, [
    { op: 'require', table: tables.jobInputs, key: [workspaceId, jobId] },
    { op: 'deleteAll', table: tables.jobBatches, index: 'byJob', prefix },
    { op: 'insert', table: tables.jobBatches, row },
  ])
  if (!outcome.ok) throw documentNoLongerExists()
}

export function documentNoLongerExists(): WbError {
  return new WbError('document_not_found', 'the document was deleted or replaced before it was ready')
}

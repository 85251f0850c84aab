import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import type { Caller } from '../access/caller.ts'
import type { Ingest } from '../contract/documents.ts'
import type { ErrorEnvelope } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import type { NdjsonLine } from '../contract/route.ts'
import type { BaseKey } from './document-key.ts'
import type { EnqueueResult, Ingestion, IngestResult } from './ingestion.ts'

/** Logs an error, and returns the response for it. The response contains no internal details. */
export type FailureReporter = (
  thrown: unknown,
  requestId: string,
) => { readonly status: number; readonly envelope: ErrorEnvelope }

/** Ingests lines as they arrive, and yields one outcome per line, in order. */
export async function* ingestLines(
  ingestion: Ingestion,
  base: BaseKey,
  lines: AsyncIterable<NdjsonLine<Ingest>>,
  caller: Caller,
  reportFailure: FailureReporter,
): AsyncGenerator<object> {
  const waiting: { line: NdjsonLine<Ingest>; outcome: Promise<object> }[] = []
  for await (const line of lines) {
    const earlierSame = waiting.findLast(earlier => areSameDocument(earlier.line, line))
    const outcome = Promise.resolve(earlierSame?.outcome).then(() =>
      ingestLine(ingestion, base, line, caller, reportFailure),
    )
    waiting.push({ line, outcome })
    // The store reads synchronously, so without this pause many lines would block the event loop.
    await yieldToEventLoop()
    if (waiting.length >= limits.batchLinesInProgress) yield await waiting.shift()!.outcome
  }
  for (const { outcome } of waiting) yield await outcome
}

/** Returns true if two lines have the same text or file name. Such lines must be ingested in order. */
function areSameDocument(a: NdjsonLine<Ingest>, b: NdjsonLine<Ingest>): boolean {
  if ('error' in a || 'error' in b) return false
  const haveSameName = a.value.sourceFilename !== null && a.value.sourceFilename === b.value.sourceFilename
  return haveSameName || a.value.text === b.value.text
}

async function ingestLine(
  ingestion: Ingestion,
  base: BaseKey,
  line: NdjsonLine<Ingest>,
  caller: Caller,
  reportFailure: FailureReporter,
): Promise<object> {
  try {
    if ('error' in line) throw line.error
    // Until this line is ingested, no further lines are read, which slows down the client.
    const { workspaceId, knowledgeBaseId } = base
    const result = await ingestion.ingest(workspaceId, knowledgeBaseId, line.value, caller, null)
    const { status, body } = toIngestResponse(result)
    return { line: line.line, status, ...body }
  } catch (error) {
    const { status, envelope } = reportFailure(error, caller.requestId)
    return { line: line.line, status, ...envelope }
  }
}

/**
 * Returns the API response for an ingest.
 *
 * @see docs/http.md#documents-and-chunks
 */
export function toIngestResponse(result: IngestResult | EnqueueResult) {
  const { document } = result
  switch (result.kind) {
    case 'ingested':
      return { status: 201 as const, body: { document, chunks: result.chunks, astraQueries: [] } }
    case 'existing':
      return { status: 200 as const, body: { document, outcome: result.outcome } }
    case 'enqueued': {
      const { job } = result
      const location = `/api/v1/workspaces/${job.workspaceId}/jobs/${job.jobId}`
      return { status: 202 as const, body: { job, document, astraQueries: [] }, headers: { location } }
    }
  }
}

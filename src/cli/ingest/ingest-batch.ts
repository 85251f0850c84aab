import type { Client } from '../../client/client.ts'
import { Unreachable } from '../../client/unreachable.ts'
import { type Document, documents } from '../../contract/documents.ts'
import { WbError } from '../../contract/errors.ts'
import type { Job } from '../../contract/jobs.ts'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import { isLarge } from './batches.ts'
import type { Source } from './ingest-item.ts'

/** Result of ingesting a source. */
export type IngestOutcome =
  | { readonly result: 'added' | 'replaced' | 'unchanged' }
  | { readonly result: 'queued'; readonly as: 'added' | 'replaced'; readonly job: Job }
  | { readonly result: 'duplicate'; readonly sameAs: string }
  | { readonly result: 'failed'; readonly status: number; readonly code: string; readonly message: string }

export interface IngestTarget {
  readonly client: Client
  readonly base: Pick<KnowledgeBase, 'workspaceId' | 'knowledgeBaseId'>
  readonly signal: AbortSignal
  /** True to let jobs of the runtime do the work. */
  readonly usesJobs?: boolean
  /** Called with the progress of a large upload. */
  readonly onUpload?: (upload: UploadProgress) => void
}

/** Progress of a large upload. */
export interface UploadProgress {
  readonly source: Source
  readonly sentBytes: number
  /** At least `sentBytes`; equal once everything is sent, or the request has ended. */
  readonly totalBytes: number
}

/** Sends a batch and yields the answer for each source. */
export type SendBatch = (
  batch: readonly Source[],
  overwrite: boolean,
) => AsyncGenerator<[Source, SentTextResponse]>

/** Response of the runtime for one text. */
type SentTextResponse =
  | { readonly document: Document; readonly outcome?: 'duplicate' | 'name_conflict'; readonly job?: Job }
  | { readonly error: { readonly status: number; readonly code: string; readonly message: string } }

/**
 * Sends sources without overwriting, then sends those whose file name has another text again with
 * overwriting. This distinguishes replaced from new documents. If the text is already stored under this name,
 * its metadata is updated.
 */
export async function* ingestBatch(
  target: IngestTarget,
  send: SendBatch,
  batch: readonly Source[],
): AsyncGenerator<[Source, IngestOutcome]> {
  const changed: Source[] = []
  for await (const [source, answer] of send(batch, false)) {
    if ('outcome' in answer && answer.outcome === 'name_conflict') changed.push(source)
    else yield [source, await toOutcome(target, source, answer, 'added')]
  }
  if (changed.length === 0) return
  for await (const [source, answer] of send(changed, true))
    yield [source, await toOutcome(target, source, answer, 'replaced')]
}

async function toOutcome(
  target: IngestTarget,
  { body }: Source,
  answer: SentTextResponse,
  created: 'added' | 'replaced',
): Promise<IngestOutcome> {
  if ('error' in answer) return { result: 'failed', ...answer.error }
  const { document, outcome, job } = answer
  if (job) return { result: 'queued', as: created, job }
  if (outcome === undefined) return { result: created }
  if (document.sourceFilename !== body.sourceFilename)
    return { result: 'duplicate', sameAs: document.sourceFilename ?? document.documentId }
  return (await updateMetadata(target, document, body.metadata ?? {}))
    ? { result: 'replaced' }
    : { result: 'unchanged' }
}

/** Updates the metadata fields that are sent, and keeps all others. Returns false if nothing changed. */
async function updateMetadata(
  { client, base, signal }: IngestTarget,
  document: Document,
  sent: Document['metadata'],
): Promise<boolean> {
  const before = document.metadata
  if (Object.entries(sent).every(([key, value]) => before[key] === value)) return false
  const params = { ...baseParams(base), documentId: document.documentId }
  await client.call(documents.update, { params, body: { metadata: { ...before, ...sent } } }, { signal })
  return true
}

/** Reports the upload progress of a request with a single large text. */
class UploadReporter {
  readonly onSent: ((bytes: number) => void) | undefined
  readonly end: () => void = () => {}

  constructor([source, ...more]: readonly Source[], tell: IngestTarget['onUpload']) {
    if (!tell || !source || more.length > 0 || !isLarge(source)) return
    // The rest of the request is negligible.
    const totalBytes = Buffer.byteLength(JSON.stringify(source.body.text))
    this.onSent = bytes => tell({ source, sentBytes: Math.min(bytes, totalBytes), totalBytes })
    this.end = () => tell({ source, sentBytes: totalBytes, totalBytes })
  }
}

/** Returns a sender that streams a batch in one request. */
export function createBatchSender({ client, base, signal, onUpload }: IngestTarget): SendBatch {
  return async function* (batch, overwrite) {
    const body = requestLines(batch, overwrite)
    const upload = new UploadReporter(batch, onUpload)
    let answered = 0
    try {
      for await (const line of client.stream(
        documents.ingestBatch,
        { params: baseParams(base), body },
        { signal, onSent: upload.onSent },
      )) {
        const { line: number, status, ...rest } = line as { line: number; status: number } & SentTextResponse
        const answer = 'error' in rest ? { error: { ...rest.error, status } } : rest
        const source = batch[number - 1]
        if (!source) throw connectionLost()
        answered++
        yield [source, answer]
      }
    } catch (error) {
      if (isSocketError(error)) throw connectionLost(error)
      if (batch.length > 1 || answered > 0) throw error
      yield [batch[0]!, answerFromError(error)]
      return
    } finally {
      upload.end()
    }
    if (answered < batch.length) throw connectionLost()
  }
}

async function* requestLines(batch: readonly Source[], overwriteOnNameConflict: boolean) {
  for (const { body } of batch) yield { ...body, overwriteOnNameConflict }
}

function connectionLost(cause?: unknown): Unreachable {
  return new Unreachable(
    'the connection to the runtime was lost during the ingest',
    'Run the command again; documents that are already stored are skipped.',
    { cause },
  )
}

/** True for a socket error while a response is read. */
function isSocketError(error: unknown): boolean {
  return error instanceof Error && 'code' in error && !(error instanceof WbError)
}

/** Returns a sender of one request per source, for jobs and for runtimes without batches. */
export function createSingleSender({ client, base, signal, usesJobs, onUpload }: IngestTarget): SendBatch {
  const query = usesJobs ? ({ async: 'true' } as const) : {}
  return async function* (batch, overwriteOnNameConflict) {
    for (const source of batch) {
      const body = { ...source.body, overwriteOnNameConflict }
      const upload = new UploadReporter([source], onUpload)
      const answer = await client
        .call(documents.ingest, { params: baseParams(base), query, body }, { signal, onSent: upload.onSent })
        .catch(answerFromError)
        .finally(() => upload.end())
      yield [source, answer]
    }
  }
}

/** Statuses caused by the text, not by the knowledge base, the caller or the runtime. */
const statusesCausedByText = new Set([400, 409, 413, 415, 422])

/** Converts an error of one text to its answer. Throws other errors. */
function answerFromError(error: unknown): SentTextResponse {
  const status = error instanceof WbError ? Number(error.facts.wireStatus ?? error.status) : 0
  if (!(error instanceof WbError) || !statusesCausedByText.has(status)) throw error
  return { error: { status, code: error.code, message: error.message } }
}

function baseParams({ workspaceId, knowledgeBaseId }: IngestTarget['base']) {
  return { workspaceId, knowledgeBaseId }
}

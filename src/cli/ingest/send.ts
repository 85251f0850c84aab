import type { Client } from '../../client/client.ts'
import { Unreachable } from '../../client/unreachable.ts'
import { type Document, documents } from '../../contract/documents.ts'
import { WbError } from '../../contract/errors.ts'
import type { Job } from '../../contract/jobs.ts'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import { isLarge } from './batches.ts'
import type { Source } from './found.ts'

/** Result of ingesting a source. */
export type Outcome =
  | { readonly result: 'added' | 'replaced' | 'unchanged' }
  | { readonly result: 'queued'; readonly as: 'added' | 'replaced'; readonly job: Job }
  | { readonly result: 'duplicate'; readonly sameAs: string }
  | { readonly result: 'failed'; readonly status: number; readonly code: string; readonly message: string }

export interface Target {
  readonly client: Client
  readonly base: Pick<KnowledgeBase, 'workspaceId' | 'knowledgeBaseId'>
  readonly signal: AbortSignal
  /** True to let jobs of the runtime do the work. */
  readonly byJobs?: boolean
  /** Called with the progress of a large upload. */
  readonly onUpload?: (upload: Upload) => void
}

/** Progress of a large upload. */
export interface Upload {
  readonly source: Source
  readonly sentBytes: number
  /** At least `sentBytes`; equal once everything is sent, or the request has ended. */
  readonly totalBytes: number
}

/** Sends a batch and yields the answer for each source. */
export type Send = (batch: readonly Source[], overwrite: boolean) => AsyncGenerator<[Source, Answer]>

/** Response of the runtime for one text. */
type Answer =
  | { readonly document: Document; readonly outcome?: 'duplicate' | 'name_conflict'; readonly job?: Job }
  | { readonly error: { readonly status: number; readonly code: string; readonly message: string } }

/**
 * Sends sources without overwriting, then sends those whose file name has another text again with
 * overwriting. This distinguishes replaced from new documents. If the text is already stored under this name,
 * its metadata is updated.
 */
export async function* deliver(
  target: Target,
  send: Send,
  batch: readonly Source[],
): AsyncGenerator<[Source, Outcome]> {
  const changed: Source[] = []
  for await (const [source, answer] of send(batch, false)) {
    if ('outcome' in answer && answer.outcome === 'name_conflict') changed.push(source)
    else yield [source, await settled(target, source, answer, 'added')]
  }
  if (changed.length === 0) return
  for await (const [source, answer] of send(changed, true))
    yield [source, await settled(target, source, answer, 'replaced')]
}

async function settled(
  target: Target,
  { body }: Source,
  answer: Answer,
  created: 'added' | 'replaced',
): Promise<Outcome> {
  if ('error' in answer) return { result: 'failed', ...answer.error }
  const { document, outcome, job } = answer
  if (job) return { result: 'queued', as: created, job }
  if (outcome === undefined) return { result: created }
  if (document.sourceFilename !== body.sourceFilename)
    return { result: 'duplicate', sameAs: document.sourceFilename ?? document.documentId }
  return (await retitle(target, document, body.metadata ?? {}))
    ? { result: 'replaced' }
    : { result: 'unchanged' }
}

/** Updates the metadata fields that are sent, and keeps all others. Returns false if nothing changed. */
async function retitle(
  { client, base, signal }: Target,
  document: Document,
  sent: Document['metadata'],
): Promise<boolean> {
  const before = document.metadata
  if (Object.entries(sent).every(([key, value]) => before[key] === value)) return false
  const params = { ...ids(base), documentId: document.documentId }
  await client.call(documents.update, { params, body: { metadata: { ...before, ...sent } } }, { signal })
  return true
}

/** Reports the upload progress of a request with a single large text. */
class Uploading {
  readonly onSent: ((bytes: number) => void) | undefined
  readonly end: () => void = () => {}

  constructor([source, ...more]: readonly Source[], tell: Target['onUpload']) {
    if (!tell || !source || more.length > 0 || !isLarge(source)) return
    // The rest of the request is negligible.
    const totalBytes = Buffer.byteLength(JSON.stringify(source.body.text))
    this.onSent = bytes => tell({ source, sentBytes: Math.min(bytes, totalBytes), totalBytes })
    this.end = () => tell({ source, sentBytes: totalBytes, totalBytes })
  }
}

/** Returns a sender that streams a batch in one request. */
export function batchSend({ client, base, signal, onUpload }: Target): Send {
  return async function* (batch, overwrite) {
    const body = linesOf(batch, overwrite)
    const upload = new Uploading(batch, onUpload)
    let answered = 0
    try {
      for await (const line of client.stream(
        documents.ingestBatch,
        { params: ids(base), body },
        { signal, onSent: upload.onSent },
      )) {
        const { line: number, status, ...rest } = line as { line: number; status: number } & Answer
        const answer = 'error' in rest ? { error: { ...rest.error, status } } : rest
        const source = batch[number - 1]
        if (!source) throw connectionLost()
        answered++
        yield [source, answer]
      }
    } catch (error) {
      if (isBroken(error)) throw connectionLost(error)
      if (batch.length > 1 || answered > 0) throw error
      yield [batch[0]!, answerFromError(error)]
      return
    } finally {
      upload.end()
    }
    if (answered < batch.length) throw connectionLost()
  }
}

async function* linesOf(batch: readonly Source[], overwriteOnNameConflict: boolean) {
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
function isBroken(error: unknown): boolean {
  return error instanceof Error && 'code' in error && !(error instanceof WbError)
}

/** Returns a sender of one request per source, for jobs and for runtimes without batches. */
export function singleSend({ client, base, signal, byJobs, onUpload }: Target): Send {
  const query = byJobs ? ({ async: 'true' } as const) : {}
  return async function* (batch, overwriteOnNameConflict) {
    for (const source of batch) {
      const body = { ...source.body, overwriteOnNameConflict }
      const upload = new Uploading([source], onUpload)
      const answer = await client
        .call(documents.ingest, { params: ids(base), query, body }, { signal, onSent: upload.onSent })
        .catch(answerFromError)
        .finally(() => upload.end())
      yield [source, answer]
    }
  }
}

/** Statuses caused by the text, not by the knowledge base, the caller or the runtime. */
const aboutTheText = new Set([400, 409, 413, 415, 422])

/** Converts an error of one text to its answer. Throws other errors. */
function answerFromError(error: unknown): Answer {
  const status = error instanceof WbError ? Number(error.facts.wireStatus ?? error.status) : 0
  if (!(error instanceof WbError) || !aboutTheText.has(status)) throw error
  return { error: { status, code: error.code, message: error.message } }
}

function ids({ workspaceId, knowledgeBaseId }: Target['base']) {
  return { workspaceId, knowledgeBaseId }
}

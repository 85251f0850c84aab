import type { Client } from '../../client/client.ts'
import { Unreachable } from '../../client/unreachable.ts'
import { type Document, documents } from '../../contract/documents.ts'
import { WbError } from '../../contract/errors.ts'
import type { Job } from '../../contract/jobs.ts'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import { isLarge } from './batches.ts'
import type { Source } from './found.ts'

/** What became of a source. */
export type Outcome =
  | { readonly result: 'added' | 'replaced' | 'unchanged' }
  | { readonly result: 'queued'; readonly as: 'added' | 'replaced'; readonly job: Job }
  | { readonly result: 'duplicate'; readonly sameAs: string }
  | { readonly result: 'failed'; readonly status: number; readonly code: string; readonly message: string }

export interface Target {
  readonly client: Client
  readonly base: Pick<KnowledgeBase, 'workspaceId' | 'knowledgeBaseId'>
  readonly signal: AbortSignal
  /** Leave the work to jobs. */
  readonly byJobs?: boolean
  /** Told how much of a large text has left. */
  readonly onUpload?: (upload: Upload) => void
}

/** A large text on its way. */
export interface Upload {
  readonly source: Source
  readonly sentBytes: number
  /** No less than `sentBytes`; the same when all has left, and when the request has ended. */
  readonly totalBytes: number
}

/** Sends sources of one group, and tells of each what became of it. */
export type Send = (batch: readonly Source[], overwrite: boolean) => AsyncGenerator<[Source, Answer]>

/** What the runtime says of one text. */
type Answer =
  | { readonly document: Document; readonly outcome?: 'duplicate' | 'name_conflict'; readonly job?: Job }
  | { readonly error: { readonly status: number; readonly code: string; readonly message: string } }

/**
 * Send sources, and again with the leave to overwrite those whose file name holds another text: so that what is
 * replaced can be told from what is new. A text that is there under this name has its metadata brought up to date.
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

/** Bring the fields that we send up to date; those that others set stay. */
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

/** Tells how much of a request has left, where it is that of one large text and somebody wants to know. */
class Uploading {
  readonly onSent: ((bytes: number) => void) | undefined
  readonly end: () => void = () => {}

  constructor([source, ...more]: readonly Source[], tell: Target['onUpload']) {
    if (!tell || !source || more.length > 0 || !isLarge(source)) return
    // What travels beside the text is nothing to it.
    const totalBytes = Buffer.byteLength(JSON.stringify(source.body.text))
    this.onSent = bytes => tell({ source, sentBytes: Math.min(bytes, totalBytes), totalBytes })
    this.end = () => tell({ source, sentBytes: totalBytes, totalBytes })
  }
}

/** Groups as one stream of lines each. */
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
        if (!source) throw cutShort()
        answered++
        yield [source, answer]
      }
    } catch (error) {
      if (isBroken(error)) throw cutShort(error)
      if (batch.length > 1 || answered > 0) throw error
      yield [batch[0]!, ofOneText(error)]
      return
    } finally {
      upload.end()
    }
    if (answered < batch.length) throw cutShort()
  }
}

async function* linesOf(batch: readonly Source[], overwriteOnNameConflict: boolean) {
  for (const { body } of batch) yield { ...body, overwriteOnNameConflict }
}

function cutShort(cause?: unknown): Unreachable {
  return new Unreachable(
    'the runtime stopped answering in the middle of the work',
    'Type the same line again; what is stored is left as it is.',
    { cause },
  )
}

/** True of what a socket throws when it breaks while an answer is read. */
function isBroken(error: unknown): boolean {
  return error instanceof Error && 'code' in error && !(error instanceof WbError)
}

/** One request a source, for a runtime that takes no batches, and for jobs. */
export function singleSend({ client, base, signal, byJobs, onUpload }: Target): Send {
  const query = byJobs ? ({ async: 'true' } as const) : {}
  return async function* (batch, overwriteOnNameConflict) {
    for (const source of batch) {
      const body = { ...source.body, overwriteOnNameConflict }
      const upload = new Uploading([source], onUpload)
      const answer = await client
        .call(documents.ingest, { params: ids(base), query, body }, { signal, onSent: upload.onSent })
        .catch(ofOneText)
        .finally(() => upload.end())
      yield [source, answer]
    }
  }
}

/** Statuses that speak of the text, not of the knowledge base, the caller or the runtime. */
const aboutTheText = new Set([400, 409, 413, 415, 422])

/** A refusal of one text as its answer; any other error ends the whole. */
function ofOneText(error: unknown): Answer {
  const status = error instanceof WbError ? Number(error.facts.wireStatus ?? error.status) : 0
  if (!(error instanceof WbError) || !aboutTheText.has(status)) throw error
  return { error: { status, code: error.code, message: error.message } }
}

function ids({ workspaceId, knowledgeBaseId }: Target['base']) {
  return { workspaceId, knowledgeBaseId }
}

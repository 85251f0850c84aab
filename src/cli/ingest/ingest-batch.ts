import type { Client } from '../../client/client.ts'
import { Unreachable } from '../../client/unreachable.ts'
import { type Document, documents } from '../../contract/documents.ts'
import { WbError } from '../../contract/errors.ts'
import type { Job } from '../../contract/jobs.ts'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import { isLarge } from './batches.ts'
import { type FileSource, type IngestSource, nameOf, type TextSource } from './ingest-item.ts'
import { readBytes } from './read-text.ts'
import { streamWithCapacity, waitForCapacity } from './wait-for-capacity.ts'

/** Result of ingesting a source. */
export type IngestOutcome =
  | { readonly result: 'added' | 'replaced' | 'unchanged' }
  | { readonly result: 'queued'; readonly resultOnSuccess: 'added' | 'replaced'; readonly job: Job }
  | { readonly result: 'duplicate'; readonly sameAs: string }
  | {
      readonly result: 'failed'
      /** HTTP status; 0 if the file could not be read. */
      readonly status: number
      readonly code: string
      readonly message: string
    }

export interface IngestTarget {
  readonly client: Client
  readonly base: Pick<KnowledgeBase, 'workspaceId' | 'knowledgeBaseId'>
  readonly signal: AbortSignal
  /** True to process each text in a background job of the runtime. */
  readonly usesJobs: boolean
  /** Called with the progress of a large upload. */
  readonly onUpload?: (upload: UploadProgress) => void
}

/** Progress of a large upload. */
export interface UploadProgress {
  readonly source: IngestSource
  readonly sentBytes: number
  /** Larger than `sentBytes` until the whole text is sent or the request has ended; then equal to it. */
  readonly totalBytes: number
}

/** Sends a batch and yields the response for each source. */
export type SendBatch = (
  batch: readonly IngestSource[],
  overwrite: boolean,
) => AsyncGenerator<[IngestSource, TextResponse]>

/** Response of the runtime for one text. */
type TextResponse =
  | { readonly document: Document; readonly outcome?: 'duplicate' | 'name_conflict'; readonly job?: Job }
  | { readonly error: { readonly status: number; readonly code: string; readonly message: string } }

/** Returns the sources of a batch that are not stored yet, or that have changed. */
export type ChangeCheck = (batch: readonly IngestSource[]) => Promise<ReadonlySet<IngestSource>>

/**
 * Sends all sources without permission to overwrite documents. If a document with the same file name has another text,
 * sends the source again with this permission. These two steps distinguish replaced documents from new ones. If a
 * document with the same file name has the same text, only its metadata is updated. Files that have not changed are not sent.
 */
export async function* ingestBatch(
  target: IngestTarget,
  send: SendBatch,
  batch: readonly IngestSource[],
  findChanged: ChangeCheck,
): AsyncGenerator<[IngestSource, IngestOutcome]> {
  const changed = await findChanged(batch)
  for (const source of batch) if (!changed.has(source)) yield [source, { result: 'unchanged' }]
  const conflictingSources: IngestSource[] = []
  for await (const [source, response] of send([...changed], false)) {
    if ('outcome' in response && response.outcome === 'name_conflict') conflictingSources.push(source)
    else yield [source, await toOutcome(target, source, response, 'added')]
  }
  if (conflictingSources.length === 0) return
  for await (const [source, response] of send(conflictingSources, true))
    yield [source, await toOutcome(target, source, response, 'replaced')]
}

async function toOutcome(
  target: IngestTarget,
  source: IngestSource,
  response: TextResponse,
  resultOnSuccess: 'added' | 'replaced',
): Promise<IngestOutcome> {
  if ('error' in response) return { result: 'failed', ...response.error }
  const { document, outcome, job } = response
  if (job) return { result: 'queued', resultOnSuccess, job }
  if (outcome === undefined) return { result: resultOnSuccess }
  if (document.sourceFilename !== nameOf(source))
    return { result: 'duplicate', sameAs: document.sourceFilename ?? document.documentId }
  const metadata = 'file' in source ? source.file.fields?.metadata : source.body.metadata
  return (await updateMetadata(target, document, metadata ?? {}))
    ? { result: 'replaced' }
    : { result: 'unchanged' }
}

/** Adds or updates the metadata fields in `changes`. Returns false if nothing changed. */
async function updateMetadata(
  { client, base, signal }: IngestTarget,
  document: Document,
  changes: Document['metadata'],
): Promise<boolean> {
  const existing = document.metadata
  if (Object.entries(changes).every(([key, value]) => existing[key] === value)) return false
  const params = { ...baseParams(base), documentId: document.documentId }
  await client.call(documents.update, { params, body: { metadata: { ...existing, ...changes } } }, { signal })
  return true
}

/** Reports the upload progress of a request with a single large text. */
class UploadReporter {
  readonly onSent: ((bytes: number) => void) | undefined
  readonly end: () => void = () => {}

  constructor([source, ...otherSources]: readonly IngestSource[], onUpload: IngestTarget['onUpload']) {
    if (!onUpload || !source || otherSources.length > 0 || !isLarge(source)) return
    // Measure only the text or file, because the rest of the request is small.
    const totalBytes =
      'file' in source ? source.file.sizeBytes : Buffer.byteLength(JSON.stringify(source.body.text))
    this.onSent = bytes => onUpload({ source, sentBytes: Math.min(bytes, totalBytes), totalBytes })
    this.end = () => onUpload({ source, sentBytes: totalBytes, totalBytes })
  }
}

/** Returns a sender that streams the texts of a batch in one request, and sends each file in a separate one. */
export function createBatchSender(target: IngestTarget): SendBatch {
  const sendTexts = createTextSender(target)
  return async function* (batch, overwrite) {
    const texts = batch.filter((source): source is TextSource => !('file' in source))
    if (texts.length > 0) yield* sendTexts(texts, overwrite)
    for (const source of batch)
      if ('file' in source) yield [source, await sendFile(target, source, overwrite)]
  }
}

const changedFile = { code: 'extraction_failed', message: 'it changed while it was ingested' }

/** Sends a file, which the runtime converts to text. Reads it again, because it may have changed in the meantime. */
export async function sendFile(
  { client, base, signal, usesJobs, onUpload }: IngestTarget,
  source: FileSource,
  overwrite: boolean,
): Promise<TextResponse> {
  const { content, follow = false, name, type, fields = {} } = source.file
  const read = typeof content === 'string' ? await readBytes(content, { follow }) : { bytes: content }
  if ('failure' in read) {
    const { code, message } = read.failure === 'system' ? read : changedFile
    return { error: { status: 0, code, message } }
  }
  const body = new FormData()
  body.set('overwriteOnNameConflict', String(overwrite))
  const { metadata, visibleTo, ownerPrincipalId } = fields
  if (metadata) body.set('metadata', JSON.stringify(metadata))
  if (visibleTo !== undefined) body.set('visibleTo', JSON.stringify(visibleTo))
  if (typeof ownerPrincipalId === 'string') body.set('ownerPrincipalId', ownerPrincipalId)
  body.set('file', new File([read.bytes], name, { type }))
  const upload = new UploadReporter([source], onUpload)
  const request = { params: baseParams(base), query: usesJobs ? { async: 'true' as const } : {}, body }
  const send = () => client.call(documents.ingestFile, request, { signal, onSent: upload.onSent })
  return waitForCapacity(signal, send)
    .catch(error => withHint(responseFromError(error), error))
    .finally(() => upload.end())
}

/** Adds the hint of the error, which depends on the file, to the message. */
function withHint(response: TextResponse, { facts }: WbError): TextResponse {
  if (!('error' in response) || typeof facts.hint !== 'string') return response
  return { error: { ...response.error, message: `${response.error.message}. ${facts.hint}` } }
}

function createTextSender({ client, base, signal, onUpload }: IngestTarget) {
  return async function* (
    batch: readonly TextSource[],
    overwrite: boolean,
  ): AsyncGenerator<[IngestSource, TextResponse]> {
    const upload = new UploadReporter(batch, onUpload)
    const open = () =>
      client.stream(
        documents.ingestBatch,
        { params: baseParams(base), body: requestLines(batch, overwrite) },
        { signal, onSent: upload.onSent },
      )
    let responseCount = 0
    try {
      for await (const line of streamWithCapacity(signal, open)) {
        const { line: lineNumber, status, ...rest } = line as { line: number; status: number } & TextResponse
        const response = 'error' in rest ? { error: { ...rest.error, status } } : rest
        const source = batch[lineNumber - 1]
        if (!source) throw connectionLostError()
        responseCount++
        yield [source, response]
      }
    } catch (error) {
      if (isSocketError(error)) throw connectionLostError(error)
      if (batch.length > 1 || responseCount > 0) throw error
      yield [batch[0]!, responseFromError(error)]
      return
    } finally {
      upload.end()
    }
    if (responseCount < batch.length) throw connectionLostError()
  }
}

async function* requestLines(batch: readonly TextSource[], overwriteOnNameConflict: boolean) {
  for (const { body } of batch) yield { ...body, overwriteOnNameConflict }
}

function connectionLostError(cause?: unknown): Unreachable {
  return new Unreachable(
    'the connection to the runtime was lost during the ingest',
    'Run the command again; documents that are already stored are skipped.',
    { cause },
  )
}

/** Returns true for a socket error that occurred while a response was read. */
function isSocketError(error: unknown): boolean {
  return error instanceof Error && 'code' in error && !(error instanceof WbError)
}

/** Returns a sender that sends one request per source, for jobs and for runtimes without batches. */
export function createSingleSender(target: IngestTarget): SendBatch {
  const { client, base, signal, usesJobs, onUpload } = target
  const query = usesJobs ? ({ async: 'true' } as const) : {}
  return async function* (batch, overwriteOnNameConflict) {
    for (const source of batch) {
      if ('file' in source) {
        yield [source, await sendFile(target, source, overwriteOnNameConflict)]
        continue
      }
      const body = { ...source.body, overwriteOnNameConflict }
      const upload = new UploadReporter([source], onUpload)
      const request = { params: baseParams(base), query, body }
      const send = () => client.call(documents.ingest, request, { signal, onSent: upload.onSent })
      const response = await waitForCapacity(signal, send)
        .catch(responseFromError)
        .finally(() => upload.end())
      yield [source, response]
    }
  }
}

/** HTTP statuses caused by the text, not by the knowledge base, the caller or the runtime. */
const statusesCausedByText = new Set([400, 409, 413, 415, 422])

/** Converts an error to a response if it was caused by the text. Throws other errors again. */
function responseFromError(error: unknown): TextResponse {
  const status = error instanceof WbError ? Number(error.facts.wireStatus ?? error.status) : 0
  if (!(error instanceof WbError) || !statusesCausedByText.has(status)) throw error
  return { error: { status, code: error.code, message: error.message } }
}

function baseParams({ workspaceId, knowledgeBaseId }: IngestTarget['base']) {
  return { workspaceId, knowledgeBaseId }
}

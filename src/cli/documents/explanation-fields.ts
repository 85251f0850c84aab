import type { Document } from '../../contract/documents.ts'
import type { DocumentExplanation, DocumentIngestReport, IngestStage } from '../../contract/ingest-report.ts'
import { builtInProvider } from '../../contract/providers.ts'
import { documentName, type Fields } from '../fields/resources.ts'
import { formatJobProgress } from '../find/job.ts'
import { formatElapsed } from '../ingest/summary.ts'
import { formatByteSize } from '../terminal/byte-size.ts'
import { formatCount, formatCounted } from '../terminal/output.ts'

/** Stages as the end of "failed while …". */
const activities: Readonly<Record<IngestStage, string>> = {
  queued: 'waiting for a worker',
  extracting: 'extracting its text',
  chunking: 'splitting it into chunks',
  embedding: 'embedding its chunks',
  writing: 'storing its chunks',
}

/** Returns the fields of a document that explain how it was ingested. */
export function explanationFields(
  document: Document,
  { status, report, job }: DocumentExplanation,
  nowMs: number,
): Fields {
  return {
    document: documentName(document),
    id: document.documentId,
    status: job ? `${status}, ${describeJob(job)}` : status,
    error: document.errorMessage,
    ...(report && reportFields(report, document, nowMs)),
  }
}

function describeJob(job: NonNullable<DocumentExplanation['job']>): string {
  if (job.status === 'pending') return 'waiting for a worker'
  const progress = formatJobProgress(job)
  return progress === '' ? 'a job is running' : `a job has embedded ${progress} chunks`
}

function reportFields(report: DocumentIngestReport, { fileSize }: Document, nowMs: number): Fields {
  const { startedAt, endedAt, attempts, parser, textBytes, chunker, chunks, embedding, failure } = report
  const stage = (name: IngestStage) => describeStage(report, name, nowMs)
  const elapsedMs = (endedAt === null ? nowMs : Date.parse(endedAt)) - Date.parse(startedAt)
  return {
    failed: failure && describeFailure(failure),
    'next step': failure?.hint,
    received: { time: startedAt },
    took: `${endedAt === null ? 'so far ' : ''}${formatTime(elapsedMs)}`,
    attempts: attempts > 1 ? `${attempts}, because the runtime stopped during the earlier ones` : undefined,
    queued: stage('queued'),
    extracted:
      parser &&
      joined(describeParser(parser), fileSize && `from ${formatByteSize(fileSize)}`, stage('extracting')),
    text: formatByteSize(textBytes),
    split: joined(chunker && describeChunks(chunks ?? 0, chunker), stage('chunking')),
    embedded: joined(...(embedding ? describeEmbedding(embedding) : []), stage('embedding')),
    stored: stage('writing'),
  }
}

function describeFailure({ stage, code, message }: NonNullable<DocumentIngestReport['failure']>): string {
  const reason = code === null ? message : `${message} (${code})`
  return stage === null ? reason : `while ${activities[stage]}: ${reason}`
}

function describeParser({ name, version }: NonNullable<DocumentIngestReport['parser']>): string {
  return version === null ? `by the ${name} parser` : `by the ${name} parser (${version})`
}

function describeChunks(
  chunks: number,
  { id, unit, maxChars, overlapChars }: NonNullable<DocumentIngestReport['chunker']>,
): string {
  const overlap =
    overlapChars > 0 && chunks > 1 ? `, ${formatCount(overlapChars)} of them shared with the next chunk` : ''
  return `${formatCounted(chunks, 'chunk')} of up to ${formatCount(maxChars)} ${unit}${overlap} (${id})`
}

function describeEmbedding({
  provider,
  modelName,
  dimension,
  tokens,
  requests,
  reused,
}: NonNullable<DocumentIngestReport['embedding']>): string[] {
  return [
    `about ${formatCounted(tokens, 'token')}`,
    provider === builtInProvider
      ? 'with the built-in embedder'
      : `with ${modelName} of ${provider} (${formatCounted(dimension, 'dimension')})`,
    ...(requests > 0 ? [`in ${formatCounted(requests, 'request')}`] : []),
    ...(reused > 0 ? [`${formatCounted(reused, 'vector')} reused`] : []),
  ]
}

/** Returns the duration of a stage; undefined if it has not started. */
function describeStage(
  { stages }: DocumentIngestReport,
  name: IngestStage,
  nowMs: number,
): string | undefined {
  const stage = stages.find(one => one.name === name)
  if (!stage) return undefined
  if (stage.ms === null) return `running for ${formatTime(nowMs - Date.parse(stage.startedAt))}`
  return formatTime(stage.ms)
}

/** Formats a duration as `340 ms` or `2.1 s`. The clocks of client and server can differ, so it may be below 0. */
function formatTime(ms: number): string {
  return ms < 1_000 ? `${Math.max(0, ms)} ms` : formatElapsed(ms)
}

function joined(...parts: (string | 0 | null | undefined)[]): string {
  return parts.filter(part => part).join(', ')
}

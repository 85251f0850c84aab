import { presentableMessage } from '../base/redact.ts'
import { WbError } from '../contract/errors.ts'
import type { DocumentIngestReport, IngestStage } from '../contract/ingest-report.ts'

export type IngestFailure = Omit<NonNullable<DocumentIngestReport['failure']>, 'stage'>

/** Returns the report of an ingest that starts now. `stages` are those that have already ended. */
export function newIngestReport(
  nowMs: number,
  textBytes: number,
  { parser, stages }: Pick<DocumentIngestReport, 'parser' | 'stages'> = { parser: null, stages: [] },
): DocumentIngestReport {
  const startedAt = stages[0]?.startedAt ?? toTimestamp(nowMs)
  return {
    startedAt,
    endedAt: null,
    attempts: 1,
    stages,
    parser,
    textBytes,
    chunker: null,
    chunks: null,
    embedding: null,
    failure: null,
  }
}

/** Ends the current stage, and starts another one. */
export function enterStage(
  report: DocumentIngestReport,
  name: IngestStage,
  nowMs: number,
): DocumentIngestReport {
  const stage = { name, startedAt: toTimestamp(nowMs), ms: null }
  return { ...report, stages: [...endStage(report.stages, nowMs), stage] }
}

/** Starts an attempt of a job: the stages of an earlier attempt are removed. */
export function startAttempt(report: DocumentIngestReport, nowMs: number): DocumentIngestReport {
  const isRepeated = report.stages.some(({ name }) => name === 'chunking')
  const stages = report.stages.filter(({ name }) => name === 'queued' || name === 'extracting')
  return { ...report, attempts: report.attempts + (isRepeated ? 1 : 0), stages: endStage(stages, nowMs) }
}

/** Ends the report of a document that is ready. Its last stage ends when the report is written. */
export function endReport(report: DocumentIngestReport, nowMs: number): DocumentIngestReport {
  return { ...report, endedAt: toTimestamp(nowMs), stages: endStage(report.stages, nowMs) }
}

/** Describes an error without internal details and secrets, in short texts. */
export function describeFailure(
  error: unknown,
  unknownReason = 'the text could not be ingested',
): IngestFailure {
  const known = error instanceof WbError && error.code !== 'internal_error' ? error : undefined
  return {
    code: known?.code ?? null,
    message: presentableMessage(known?.message ?? unknownReason),
    hint: known ? presentableMessage(known.hint) : null,
  }
}

/** Ends the report of an ingest that failed in its current stage. */
export function failReport(
  report: DocumentIngestReport,
  failure: IngestFailure,
  nowMs: number,
): DocumentIngestReport {
  const stage = report.stages.at(-1)?.name ?? null
  return { ...endReport(report, nowMs), failure: { ...failure, stage } }
}

function endStage(stages: DocumentIngestReport['stages'], nowMs: number): DocumentIngestReport['stages'] {
  return stages.map(stage =>
    stage.ms === null ? { ...stage, ms: Math.max(0, nowMs - Date.parse(stage.startedAt)) } : stage,
  )
}

function toTimestamp(ms: number): string {
  return new Date(ms).toISOString()
}

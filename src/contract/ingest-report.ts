import { z } from 'zod'
import { isoTimestamp } from './fields.ts'
import { Job } from './jobs.ts'

/** Stages of an ingest, in order. */
export const ingestStages = ['queued', 'extracting', 'chunking', 'embedding', 'writing'] as const
export type IngestStage = (typeof ingestStages)[number]

/** Record of the last ingest of a document. It is stored with the document, so its size is limited. */
export const DocumentIngestReport = z
  .object({
    startedAt: isoTimestamp.meta({ description: 'time at which the runtime received the text' }),
    endedAt: isoTimestamp
      .nullable()
      .meta({ description: 'time of the end; null while the ingest is running' }),
    attempts: z.int().min(1).meta({
      description: 'number of times that the work was started; a job is started again after a crash',
    }),
    stages: z
      .array(
        z.object({
          name: z.enum(ingestStages).meta({ description: 'name of the stage' }),
          startedAt: isoTimestamp.meta({ description: 'time at which the stage started' }),
          ms: z.int().min(0).nullable().meta({ description: 'duration in milliseconds; null until it ends' }),
        }),
      )
      .meta({ description: 'stages of the last attempt, in order' }),
    parser: z
      .object({
        name: z.string().meta({ description: 'name of the parser' }),
        version: z.string().nullable().meta({ description: 'version of its library; null if it uses none' }),
      })
      .nullable()
      .meta({ description: 'parser that extracted the text; null if the client sent text' }),
    textBytes: z.int().min(0).meta({ description: 'size of the text in UTF-8' }),
    chunker: z
      .object({
        id: z.string().meta({ description: 'name and version of the chunker' }),
        unit: z.enum(['characters', 'tokens']).meta({ description: 'unit of the sizes' }),
        maxChars: z.int().meta({ description: 'maximum length of a chunk' }),
        minChars: z.int().meta({ description: 'minimum length of a chunk' }),
        overlapChars: z.int().meta({ description: 'maximum overlap of neighboring chunks' }),
      })
      .nullable()
      .meta({ description: 'chunker and its sizes; null until the text is split into chunks' }),
    chunks: z.int().min(0).nullable().meta({
      description: 'number of chunks; null until the text is split into chunks',
    }),
    embedding: z
      .object({
        provider: z.string().meta({ description: 'provider of the embedding service' }),
        modelName: z.string().meta({ description: 'model of the embedding service' }),
        dimension: z.int().meta({ description: 'numbers per vector' }),
        tokens: z.int().min(0).meta({
          description: 'estimated number of tokens of all chunks with their titles, at 4 bytes per token',
        }),
        requests: z.int().min(0).meta({
          description: 'number of requests to the provider in the last attempt, without retries',
        }),
        reused: z.int().min(0).meta({
          description:
            'number of chunks whose vectors were reused from an earlier attempt, version or request',
        }),
      })
      .nullable()
      .meta({ description: 'how the chunks were embedded; null until the text is split into chunks' }),
    failure: z
      .object({
        stage: z.enum(ingestStages).nullable().meta({ description: 'stage that failed; null if not known' }),
        code: z
          .string()
          .nullable()
          .meta({ description: 'error code; null if the job was cancelled or crashed' }),
        message: z.string().meta({ description: 'description of the problem' }),
        hint: z.string().nullable().meta({ description: 'what to do next' }),
      })
      .nullable()
      .meta({ description: 'reason for the failure; null if there was none' }),
  })
  .meta({ id: 'DocumentIngestReport' })
export type DocumentIngestReport = z.output<typeof DocumentIngestReport>

/** How a document was ingested. */
export const DocumentExplanation = z
  .object({
    documentId: z.uuid(),
    status: z.string(),
    report: DocumentIngestReport.nullable().meta({
      description:
        'record of the last ingest; null if the document has no text, or if an earlier version of the runtime ingested it',
    }),
    job: Job.nullable().meta({
      description: 'job that is ingesting the document; null if no job is running',
    }),
  })
  .meta({ id: 'DocumentExplanation' })
export type DocumentExplanation = z.output<typeof DocumentExplanation>

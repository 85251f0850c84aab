import { z } from 'zod'
import { needs } from './access.ts'
import { fileParser } from './documents.ts'
import { withErrorCode } from './fields.ts'
import { limits } from './limits.ts'
import { route } from './route.ts'
import { ChunkingCreate } from './services.ts'

/** Fields of a chunking service that determine how a text is split. */
const PreviewedChunker = ChunkingCreate.pick({
  engine: true,
  strategy: true,
  chunkUnit: true,
  maxChunkSize: true,
  minChunkSize: true,
  overlapSize: true,
})

const ChunkPreviewForm = z.object({
  parser: fileParser,
  chunkers: withErrorCode(
    z.array(PreviewedChunker).min(1).max(limits.previewedChunkers),
    'invalid_chunker',
  ).meta({
    type: 'array',
    description: `JSON array of 1 to ${limits.previewedChunkers} chunkers, with the fields of chunking services`,
  }),
})
export type ChunkPreviewForm = z.output<typeof ChunkPreviewForm>

const PreviewedChunk = z
  .object({
    start: z.int().nonnegative().meta({ description: 'offset of the chunk in `text`' }),
    end: z.int().positive().meta({ description: 'offset of the end of the chunk in `text`' }),
    tokens: z.int().nonnegative().meta({
      description: 'number of tokens of the built-in sentence model, which reads at most 254 with the title',
    }),
    section: z
      .string()
      .nullable()
      .meta({ description: 'headings above the first text that the chunk before does not contain' }),
    tableHeads: z
      .string()
      .nullable()
      .meta({ description: 'column headers of the table in which the chunk starts' }),
    page: z
      .int()
      .nullable()
      .meta({ description: 'page of the file of the first text that the chunk before does not contain' }),
    slide: z.int().nullable().meta({ description: 'slide of that text' }),
    sheet: z.string().nullable().meta({ description: 'worksheet of that text' }),
  })
  .meta({ id: 'PreviewedChunk' })
export type PreviewedChunk = z.output<typeof PreviewedChunk>

export const ChunkPreview = z
  .object({
    text: z.string().meta({ description: 'text that was extracted from the file' }),
    title: z.string().nullable().meta({ description: 'title that the file declares' }),
    previews: z
      .array(
        z.object({
          chunkerId: z.string().meta({ description: 'ID of the chunker, as in `GET /api/v1/chunkers`' }),
          chunkTotal: z.int().nonnegative().meta({ description: 'number of all chunks' }),
          chunks: z
            .array(PreviewedChunk)
            .meta({ description: `the first ${limits.previewedChunks} chunks, in order` }),
        }),
      )
      .meta({ description: 'chunks by each chunker, in the order of the request' }),
  })
  .meta({ id: 'ChunkPreview' })
export type ChunkPreview = z.output<typeof ChunkPreview>

export const chunkPreview = {
  create: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/chunk-preview',
    summary: 'Preview the chunks of a file',
    description:
      'Extracts the text of a file and splits it with one or more chunkers, to compare them. Send the file, with its name, in the form part `file`. Stores nothing.',
    access: needs('write:ingest'),
    body: {
      kind: 'multipart',
      schema: ChunkPreviewForm,
      json: ['chunkers'],
      limitBytes: limits.attachmentBodyBytes,
    },
    replies: { 200: ChunkPreview },
    errors: [
      'workspace_not_found',
      'invalid_multipart',
      'missing_file',
      'empty_file',
      'invalid_parser',
      'invalid_chunker',
      'unsupported_file_type',
      'extraction_failed',
      'empty_document',
      'docling_unavailable',
    ],
  }),
}

import { z } from 'zod'
import { member, needs } from './access.ts'
import {
  contentErrors,
  embeddingErrors,
  knowledgeBaseErrors,
  knowledgeBasePath,
  lenientJsonBody,
} from './content-routes.ts'
import {
  boundedText,
  isoTimestamp,
  metadata,
  optionalTextUpTo,
  timestampInput,
  visibleTo,
  withErrorCode,
} from './fields.ts'
import { DocumentExplanation } from './ingest-report.ts'
import { Job } from './jobs.ts'
import { limits } from './limits.ts'
import { limitParameter, pageOfItems, pageQuery } from './page.ts'
import { route } from './route.ts'

/** Metadata field with the ID of the folder that a document is synced with. */
export const folderKey = 'syncFolder'
/** Metadata key with the SHA-256 of the file of a document. */
export const fileHashKey = 'fileHash'

const status = z.enum(['pending', 'chunking', 'embedding', 'writing', 'ready', 'failed'])

export const Document = z
  .object({
    workspaceId: z.uuid(),
    knowledgeBaseId: z.uuid(),
    documentId: z.uuid(),
    sourceDocId: z.string().nullable(),
    sourceFilename: z.string().nullable(),
    fileType: z.string().nullable(),
    fileSize: z.int().nullable(),
    contentHash: z.string().nullable(),
    chunkTotal: z.int().nullable(),
    ingestedAt: isoTimestamp.nullable(),
    updatedAt: isoTimestamp,
    status,
    errorMessage: z.string().nullable(),
    metadata: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])),
    visibleTo: z.array(z.string()).nullable(),
    ownerPrincipalId: z.string().nullable(),
  })
  .meta({ id: 'Document' })
export type Document = z.output<typeof Document>

const sourceDocId = optionalTextUpTo(limits.nameChars)
const sourceFilename = optionalTextUpTo(limits.pathChars)
const fileType = optionalTextUpTo(limits.nameChars)
const ownerPrincipalId = optionalTextUpTo(limits.subjectChars)

const fields = {
  sourceDocId,
  sourceFilename,
  fileType,
  fileSize: z.int().nonnegative().nullable(),
  contentHash: optionalTextUpTo(limits.nameChars),
  chunkTotal: z.int().nonnegative().nullable(),
  ingestedAt: timestampInput.nullable(),
  status,
  errorMessage: optionalTextUpTo(limits.descriptionChars),
  metadata,
  visibleTo: visibleTo.nullable(),
  ownerPrincipalId,
}

const DocumentCreate = z.object({ documentId: z.uuid(), ...fields }).partial()
export const DocumentFields = z.object(fields)
const DocumentPatch = DocumentFields.partial()
export type DocumentFields = z.output<typeof DocumentPatch>
export type DocumentCreate = z.output<typeof DocumentCreate>

export const Chunk = z
  .object({
    id: z.string(),
    chunkIndex: z.int().nullable(),
    text: z.string().nullable(),
    payload: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'Chunk' })
export type Chunk = z.output<typeof Chunk>

const chunker = z.object({
  maxChars: z.int().positive().optional(),
  minChars: z.int().nonnegative().optional(),
  overlapChars: z.int().nonnegative().optional(),
})

/** Settings for splitting the text of a document, in addition to those of the chunking service. */
export const DocumentChunking = z.object({
  /** Sizes that the ingest requested instead of those of the chunking service. */
  override: chunker.optional(),
  /** True if the text is Markdown, whose headings are its sections. */
  isMarkdown: z.boolean(),
})
export type DocumentChunking = z.output<typeof DocumentChunking>

export const Ingest = z.object({
  text: boundedText(limits.ingestTextChars),
  documentId: z.uuid().optional(),
  sourceDocId: sourceDocId.default(null),
  sourceFilename: sourceFilename.default(null),
  fileType: fileType.default(null),
  fileSize: z.int().nonnegative().nullable().default(null),
  contentHash: z
    .string()
    .nullable()
    .optional()
    .meta({ description: 'ignored, because the runtime computes the hash' }),
  metadata: metadata.default({}),
  chunker: chunker.optional(),
  overwriteOnNameConflict: z.boolean().default(false),
  visibleTo: visibleTo.nullable().optional(),
  ownerPrincipalId: ownerPrincipalId.optional(),
})
export type Ingest = z.output<typeof Ingest>
export type IngestInput = z.input<typeof Ingest>

const parsers = ['auto', 'native', 'docling'] as const

export const fileParser = withErrorCode(z.enum(parsers), 'invalid_parser')
  .default('auto')
  .meta({ type: 'string', enum: [...parsers], default: 'auto' })

const sha256Hex = z.string().regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 hash in lowercase hexadecimal')

/** Files to compare with the stored documents. */
const FileCheck = z.object({
  files: z
    .array(
      z.object({
        sourceFilename: boundedText(limits.pathChars).meta({ description: 'file name of the document' }),
        fileHash: sha256Hex.meta({ description: 'SHA-256 of the bytes of the file' }),
      }),
    )
    .min(1)
    .max(limits.filesPerCheck)
    .meta({ description: 'files to compare' }),
})
export type FileCheck = z.output<typeof FileCheck>

const fileStates = ['new', 'changed', 'unchanged'] as const
export type FileState = (typeof fileStates)[number]

/**
 * Text fields of a file upload, in the order in which they are validated.
 *
 * @see docs/ingesting.md#files-over-http
 */
const IngestForm = z.object({
  parser: fileParser,
  metadata: metadata.default({}),
  chunker: withErrorCode(chunker, 'invalid_chunker').optional().meta({
    type: 'object',
    description: 'JSON object with `maxChars`, `minChars` and `overlapChars`, as in a JSON ingest',
  }),
  visibleTo: z
    .preprocess(value => (value === '*' ? ['*'] : value), visibleTo.nullable())
    .optional()
    .meta({
      type: 'array',
      items: { type: 'string' },
      description: 'JSON array of principal IDs, or `*` for everyone',
    }),
  documentId: z.uuid().optional(),
  sourceDocId: z.string().nullable().default(null),
  ownerPrincipalId: z.string().nullable().optional(),
  overwriteOnNameConflict: z
    .string()
    .default('')
    .transform(text => text === 'true')
    .meta({
      description: '`true` to replace a document with the same file name; any other value means false',
    }),
})
export type IngestForm = z.output<typeof IngestForm>

const IngestResult = z.object({ document: Document, chunks: z.int(), astraQueries: z.array(z.unknown()) })
const QueuedIngest = z.object({ job: Job, document: Document, astraQueries: z.array(z.unknown()) })
const ExistingDocument = z.object({ document: Document, outcome: z.enum(['duplicate', 'name_conflict']) })

const asyncQuery = z.object({
  async: z.enum(['true', 'false']).optional().meta({
    description: '`true` to ingest the text in a background job; the response then contains the job',
  }),
})

const documentListQuery = pageQuery.extend({
  own: z.enum(['true', 'false']).optional().meta({
    description:
      '`true` to list only the documents that belong to your principal; without row-level access, it has no effect',
  }),
})
export type DocumentListQuery = z.output<typeof documentListQuery>

export const documents = {
  list: route({
    method: 'GET',
    path: `${knowledgeBasePath}/documents`,
    summary: 'List documents',
    access: member('read:content'),
    query: documentListQuery,
    replies: { 200: pageOfItems(Document) },
    errors: [...knowledgeBaseErrors, 'invalid_cursor', 'policy_principal_required'],
  }),
  create: route({
    method: 'POST',
    path: `${knowledgeBasePath}/documents`,
    summary: 'Register a document without content',
    access: needs('write:ingest'),
    body: { ...lenientJsonBody, schema: DocumentCreate },
    replies: { 201: Document },
    errors: [...knowledgeBaseErrors, 'conflict', 'invalid_metadata', 'invalid_visible_to'],
  }),
  show: route({
    method: 'GET',
    path: `${knowledgeBasePath}/documents/:documentId`,
    summary: 'Show a document',
    access: member('read:content'),
    replies: { 200: Document },
    errors: [...knowledgeBaseErrors, 'document_not_found', 'policy_principal_required'],
  }),
  explain: route({
    method: 'GET',
    path: `${knowledgeBasePath}/documents/:documentId/explain`,
    summary: 'Explain how a document was ingested',
    description:
      'Returns a report of the last ingest of the document: its stages with their times, the parser and the chunker, sizes, requests to the provider of the embedding service, and the reason for a failure. For a document that is being ingested, it also returns the job. A file whose text could not be extracted has no document.',
    access: member('read:content'),
    replies: { 200: DocumentExplanation },
    errors: [...knowledgeBaseErrors, 'document_not_found', 'policy_principal_required'],
  }),
  update: route({
    method: 'PATCH',
    path: `${knowledgeBasePath}/documents/:documentId`,
    summary: 'Change a document',
    access: needs('write:ingest'),
    body: { ...lenientJsonBody, schema: DocumentPatch },
    replies: { 200: Document },
    errors: [
      ...knowledgeBaseErrors,
      ...contentErrors,
      ...embeddingErrors,
      'document_not_found',
      'invalid_metadata',
      'invalid_visible_to',
      'list_records_not_supported',
      'conflict',
      'policy_denied',
    ],
  }),
  delete: route({
    method: 'DELETE',
    path: `${knowledgeBasePath}/documents/:documentId`,
    summary: 'Delete a document and its chunks',
    access: needs('write:ingest'),
    query: z.object({
      permanently: z.enum(['true', 'false']).optional().meta({
        description:
          '`true` to delete the document permanently; otherwise, it can be restored from the trash',
      }),
    }),
    replies: { 204: null },
    errors: [...knowledgeBaseErrors, ...contentErrors, 'document_not_found', 'conflict', 'policy_denied'],
    audit: 'document.delete',
  }),
  bulkDelete: route({
    method: 'POST',
    path: `${knowledgeBasePath}/documents/bulk-delete`,
    summary: 'Delete several documents',
    access: needs('write:ingest'),
    body: {
      ...lenientJsonBody,
      schema: z.object({
        documentIds: z.array(z.uuid()).min(1).max(limits.documentsPerBulkDelete),
        permanently: z.boolean().default(false),
        deletionId: z.uuid().optional(),
      }),
    },
    replies: {
      200: z.object({
        deleted: z.array(z.string()),
        failed: z.array(z.object({ documentId: z.string(), code: z.string(), message: z.string() })),
      }),
    },
    errors: [...knowledgeBaseErrors, ...contentErrors],
    audit: 'document.delete',
  }),
  chunks: route({
    method: 'GET',
    path: `${knowledgeBasePath}/documents/:documentId/chunks`,
    summary: 'List the chunks of a document',
    description:
      'Returns chunks in document order. If there are more, the response header `X-Next-Cursor` contains the cursor of the next page. A page can be shorter than `limit` if its chunks are very large.',
    access: member('read:content'),
    query: z.object({
      limit: limitParameter(limits.chunkPageMax, limits.chunkPageMax),
      cursor: z.string().min(1).optional(),
    }),
    replies: { 200: z.array(Chunk) },
    errors: [
      ...knowledgeBaseErrors,
      ...contentErrors,
      'document_not_found',
      'invalid_cursor',
      'list_records_not_supported',
      'policy_principal_required',
    ],
  }),
  ingest: route({
    method: 'POST',
    path: `${knowledgeBasePath}/ingest`,
    summary: 'Ingest a text',
    access: needs('write:ingest'),
    query: asyncQuery,
    body: { ...lenientJsonBody, schema: Ingest, limitBytes: limits.ingestBodyBytes },
    replies: { 201: IngestResult, 202: QueuedIngest, 200: ExistingDocument },
    errors: [
      ...knowledgeBaseErrors,
      ...contentErrors,
      ...embeddingErrors,
      'conflict',
      'invalid_metadata',
      'invalid_visible_to',
      'invalid_chunker',
    ],
  }),
  ingestFile: route({
    method: 'POST',
    path: `${knowledgeBasePath}/ingest/file`,
    summary: 'Ingest a file',
    description:
      'Extracts the text of a file and ingests it. Send the file, with its name, in the form part `file`. The parts `metadata`, `chunker` and `visibleTo` contain JSON.',
    access: needs('write:ingest'),
    query: z.object({
      async: z.string().optional().meta({
        description:
          '`true` to ingest the file in a background job; the response then contains the job. With any other value, the request waits for the result.',
      }),
    }),
    body: {
      kind: 'multipart',
      schema: IngestForm,
      json: ['metadata', 'chunker', 'visibleTo'],
      limitBytes: limits.ingestBodyBytes,
    },
    replies: { 201: IngestResult, 202: QueuedIngest, 200: ExistingDocument },
    errors: [
      ...knowledgeBaseErrors,
      ...contentErrors,
      ...embeddingErrors,
      'invalid_multipart',
      'missing_file',
      'empty_file',
      'invalid_parser',
      'unsupported_file_type',
      'extraction_failed',
      'empty_document',
      'docling_unavailable',
      'invalid_metadata',
      'invalid_chunker',
      'invalid_visible_to',
      'conflict',
    ],
  }),
  checkFiles: route({
    method: 'POST',
    path: `${knowledgeBasePath}/ingest/check`,
    summary: 'Compare files with the stored documents',
    description:
      'Returns the state of each file, in the same order: `unchanged` if a document with this file name was ingested from the same bytes, `changed` if there is one with other bytes, and `new` for other files. Changes nothing. With row-level access, compares only with documents that the caller may see and replace.',
    access: needs('write:ingest'),
    body: { ...lenientJsonBody, schema: FileCheck },
    replies: {
      200: z.object({
        states: z
          .array(z.enum(fileStates))
          .meta({ description: 'state of each file, in the order of the request' }),
      }),
    },
    errors: [...knowledgeBaseErrors, ...contentErrors, 'policy_principal_required'],
  }),
  ingestBatch: route({
    method: 'POST',
    path: `${knowledgeBasePath}/ingest/batch`,
    summary: 'Ingest many texts in one stream',
    description:
      'Each line of the request is the body of one ingest request. The response has one line per text, in the same order: the line number (`line`), the HTTP status (`status`), and the fields that a single ingest request returns.',
    access: needs('write:ingest'),
    body: { kind: 'ndjson', schema: Ingest, limitBytes: limits.ingestBodyBytes },
    replies: { 200: 'application/x-ndjson' },
    errors: [...knowledgeBaseErrors, ...contentErrors],
  }),
}

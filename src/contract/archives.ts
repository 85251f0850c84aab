import { z } from 'zod'
import { DocumentChunking, DocumentFields } from './documents.ts'
import { metadata, payload, placesPayloadKey, reservedPayloadKeys } from './fields.ts'
import { ArchivedFolders } from './folder-description.ts'
import { limits } from './limits.ts'

/** Version of the lines of an exported knowledge base. */
export const archiveVersion = 1
export const archiveFormat = 'workbase-knowledge-base'

const readers = z.array(z.string().min(1).max(limits.subjectChars)).max(limits.visibleToEntries).nullable()
const owner = z.string().max(limits.subjectChars).nullable()
/** 32-bit floats, little-endian, in base64. */
const encodedVector = z.base64().max(Math.ceil((limits.vectorLength * 4) / 3) * 4 + 4)

/** First line: the settings of the knowledge base. Services are described, and have no IDs, addresses or secrets. */
export const ArchiveHeader = z.object({
  format: z.literal(archiveFormat),
  version: z.int(),
  createdAt: z.string(),
  name: z.string(),
  description: z.string().nullable(),
  status: z.enum(['active', 'draft', 'deprecated']),
  language: z.string().nullable(),
  lexical: z.object({
    enabled: z.boolean(),
    analyzer: z.string().nullable(),
    options: z.record(z.string(), z.string()),
  }),
  semantic: z.boolean().optional(),
  folders: ArchivedFolders.optional(),
  /** True if the workspace had row-level access. */
  rowAccess: z.boolean(),
  policyDsl: z.string().nullable(),
  policyEnabled: z.boolean(),
  embedding: z.object({
    name: z.string(),
    provider: z.string(),
    modelName: z.string(),
    embeddingDimension: z.int(),
    distanceMetric: z.enum(['cosine', 'dot', 'euclidean']),
  }),
  chunking: z.object({ name: z.string(), engine: z.string(), strategy: z.string().nullable() }),
  reranking: z.object({ name: z.string(), provider: z.string(), modelName: z.string() }).nullable(),
})
export type ArchiveHeader = z.output<typeof ArchiveHeader>

const archivedDocument = DocumentFields.extend({
  documentId: z.uuid(),
  status: z.enum(['pending', 'ready', 'failed']),
  metadata,
  visibleTo: readers,
  ownerPrincipalId: owner,
  /** True if the text of the document is not ingested again. */
  isIngested: z.boolean(),
})
  .required()
  .extend({ chunking: DocumentChunking.optional() })
export type ArchivedDocument = z.output<typeof archivedDocument>

const identityKeys = new Set(['knowledgeBaseId', 'documentId', 'chunkIndex', 'chunkText', 'visible_to'])
const filePlace = z.strictObject({
  start: z.int().nonnegative(),
  page: z.int().optional(),
  slide: z.int().optional(),
  sheet: z.string().max(limits.metadataChars).optional(),
})
/** Fields of a chunk that its document does not have. */
const chunkFields = z
  .record(
    z.string(),
    z.union([
      z.string().max(limits.ingestTextChars),
      z.number(),
      z.array(filePlace).max(limits.placesPerChunk),
    ]),
  )
  .refine(fields => Object.keys(fields).every(isChunkField), 'has an unknown key')
  .refine(
    fields =>
      Object.entries(fields).every(([key, value]) => Array.isArray(value) === (key === placesPayloadKey)),
    'has a value of the wrong type',
  )

/** Returns true for a payload key that belongs to a chunk, and not to its document. */
export function isChunkField(key: string): boolean {
  const isInherited = ['$owner', '$source', '$status'].includes(key)
  return reservedPayloadKeys.has(key) && !identityKeys.has(key) && !isInherited
}

const archivedChunk = z.object({
  index: z.int().nonnegative(),
  /** Lines that the vector contains besides the title and the text; absent for none. */
  context: z.string().optional(),
  text: z.string().nullable(),
  fields: chunkFields,
  /** Absent if the runtime fits the vectors. */
  vector: encodedVector.optional(),
})
export type ArchivedChunk = z.output<typeof archivedChunk>

const archivedRecord = z.object({
  id: z.string().min(1),
  text: z.string().nullable(),
  payload,
  visibleTo: readers,
  ownerPrincipalId: owner,
  vector: encodedVector.optional(),
})
export type ArchivedRecord = z.output<typeof archivedRecord>

const archiveEnd = z.object({
  documents: z.int(),
  records: z.int(),
  /** Hash of all earlier lines, see `chainHash`. */
  sha256: z.string(),
})

/** A line after the header. A document is followed by its chunks. The last line is `end`. */
export const ArchiveLine = z.union([
  z.strictObject({ document: archivedDocument }),
  z.strictObject({ chunk: archivedChunk }),
  z.strictObject({ record: archivedRecord }),
  z.strictObject({ end: archiveEnd }),
])
export type ArchiveLine = z.output<typeof ArchiveLine>

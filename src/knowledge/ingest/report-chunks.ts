import type { DocumentIngestReport } from '../../contract/ingest-report.ts'
import { type ChunkedText, passagesOf } from '../chunk-text.ts'
import type { BaseContext } from '../knowledge-bases.ts'
import { toModelText } from '../vector-space.ts'

/** Number of UTF-8 bytes that count as one token. Tokenizers need about four for English text. */
const bytesPerToken = 4

/** Adds the chunks of a text to a report, and how they are to be embedded. */
export function reportChunks(
  report: DocumentIngestReport,
  { embedding }: Pick<BaseContext, 'embedding'>,
  { chunkerId, chunkOptions, chunkUnit, chunks, title }: ChunkedText & { readonly title: string | null },
): DocumentIngestReport {
  const { maxChars, minChars, overlapChars } = chunkOptions
  const { provider, modelName, embeddingDimension: dimension } = embedding
  const bytes = passagesOf(title, chunks).reduce(
    (sum, passage) => sum + Buffer.byteLength(toModelText(passage)),
    0,
  )
  const tokens = Math.ceil(bytes / bytesPerToken)
  return {
    ...report,
    chunker: { id: chunkerId, unit: chunkUnit, maxChars, minChars, overlapChars },
    chunks: chunks.length,
    embedding: { provider, modelName, dimension, tokens, requests: 0, reused: 0 },
  }
}

/** Counts a request to the provider. */
export function reportRequest(report: DocumentIngestReport): DocumentIngestReport {
  const { embedding } = report
  return embedding ? { ...report, embedding: { ...embedding, requests: embedding.requests + 1 } } : report
}

/** Counts chunks whose vectors an earlier attempt had stored. */
export function reportReused(report: DocumentIngestReport, chunks: number): DocumentIngestReport {
  const { embedding } = report
  return embedding ? { ...report, embedding: { ...embedding, reused: embedding.reused + chunks } } : report
}

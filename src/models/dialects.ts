import type { ProviderName } from '../contract/providers.ts'
import type { EmbeddingService } from '../contract/services.ts'
import type { EmbeddingPurpose } from './embedder.ts'
import { fieldOfUntrusted } from './provider/provider-failure.ts'

/** Request and response format of an embedding provider. */
export interface Dialect {
  /** Path below the base URL. */
  readonly path: string
  /** Maximum number of texts per request. */
  readonly textsMax: number
  body(service: EmbeddingService, texts: readonly string[], purpose: EmbeddingPurpose): object
  /**
   * Returns the vectors of a response in the order of the texts, without checking them; undefined if the response
   * does not have the expected format.
   */
  vectors(response: unknown): unknown[] | undefined
}

/** @see https://platform.openai.com/docs/api-reference/embeddings/create */
const openai: Dialect = {
  path: '/embeddings',
  textsMax: 2_048,
  body: ({ modelName, embeddingDimension }, texts) => ({
    model: modelName,
    input: texts,
    encoding_format: 'float',
    ...(/(?:^|\/)text-embedding-3/.test(modelName) ? { dimensions: embeddingDimension } : {}),
  }),
  vectors(response) {
    const data = fieldOfUntrusted(response, 'data')
    if (!Array.isArray(data)) return undefined
    const vectors: unknown[] = new Array(data.length).fill(undefined)
    for (const [at, entry] of data.entries()) {
      const index = fieldOfUntrusted(entry, 'index') ?? at
      if (typeof index !== 'number' || !(index in vectors)) return undefined
      vectors[index] = fieldOfUntrusted(entry, 'embedding')
    }
    return vectors
  },
}

/** @see https://docs.cohere.com/reference/embed */
const cohere: Dialect = {
  path: '/embed',
  textsMax: 96,
  body: ({ modelName, embeddingDimension }, texts, purpose) => ({
    model: modelName,
    texts,
    input_type: purpose === 'query' ? 'search_query' : 'search_document',
    embedding_types: ['float'],
    ...(/(?:^|\/)embed-v4/.test(modelName) ? { output_dimension: embeddingDimension } : {}),
  }),
  vectors(response) {
    const vectors = fieldOfUntrusted(fieldOfUntrusted(response, 'embeddings'), 'float')
    return Array.isArray(vectors) ? vectors : undefined
  },
}

export const dialects: Record<ProviderName, Dialect> = { openai, openrouter: openai, ollama: openai, cohere }

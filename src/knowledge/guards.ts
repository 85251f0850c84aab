import { WbError } from '../contract/errors.ts'
import type { KnowledgeBase } from '../contract/knowledge.ts'
import type { Collection } from '../storage/content.ts'

/** @throws dimension_mismatch */
export function requireFieldDimension(field: string, length: number, dimension: number): void {
  if (length !== dimension)
    throw new WbError(
      'dimension_mismatch',
      `${field}: has ${length} numbers, but the collection has ${dimension} dimensions`,
    )
}

/**
 * Rejects a vector from a client if the collection has no vectors, or if the runtime fits the space. Vectors of other
 * models have no meaning in a fitted space.
 *
 * @throws vector_collection_not_allowed
 */
export function rejectRawVector(
  field: string,
  { isFittedByRuntime, collection }: { isFittedByRuntime: boolean; collection: Collection },
): void {
  if (isFittedByRuntime)
    throw new WbError(
      'vector_collection_not_allowed',
      `${field}: the runtime computes the vectors of this knowledge base`,
      {
        hint: 'Send text instead, or create a knowledge base with an embedding service of another provider.',
      },
    )
  if (collection.dimension === 0)
    throw new WbError(
      'vector_collection_not_allowed',
      `${field}: the collection '${collection.name}' has no vectors`,
    )
}

/** @throws vector_collection_required  the collection has no vectors */
export function requireVectors({ name, dimension }: Collection): void {
  if (dimension === 0)
    throw new WbError('vector_collection_required', `the collection '${name}' has no vectors`, {
      hint: 'Search by words only, with hybrid=true and lexicalWeight=1, or use a knowledge base with vectors.',
    })
}

/** @throws conflict  the knowledge base has not been imported completely */
export function requireImported({ importing, name }: KnowledgeBase): void {
  if (importing) throw new WbError('conflict', `knowledge base '${name}' has not been imported completely`)
}

/**
 * Returns undefined if the error means that a knowledge base was deleted.
 *
 * @throws the error otherwise
 */
export function undefinedIfDeleted(error: unknown): undefined {
  if (!(error instanceof WbError) || error.code !== 'knowledge_base_not_found') throw error
}

/** Creates the error for a knowledge base whose collection is missing. */
export function baseCollectionMissing({ name }: KnowledgeBase): WbError {
  return new WbError('collection_unavailable', `the collection of '${name}' no longer exists`)
}

/** Creates the error for a write that failed in every attempt because of concurrent changes. */
export function concurrentChange(): WbError {
  return new WbError('conflict', 'other requests kept changing the same data; nothing was written')
}

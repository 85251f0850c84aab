import { WbError } from '../contract/errors.ts'
import type { KnowledgeBase } from '../contract/knowledge.ts'

/** @throws dimension_mismatch */
export function requireDimension(field: string, found: number, dimension: number): void {
  if (found !== dimension)
    throw new WbError(
      'dimension_mismatch',
      `${field}: has ${found} numbers, the collection ${dimension} dimensions`,
    )
}

/**
 * A fitted space changes whenever it is refitted, so nobody else's vector means anything in it.
 *
 * @throws vector_collection_not_allowed
 */
export function rejectRawVector(field: string): never {
  throw new WbError(
    'vector_collection_not_allowed',
    `${field}: the runtime makes the vectors of this knowledge base`,
    {
      hint: 'Send text instead, or bind an embedding service of your own in a new knowledge base.',
    },
  )
}

/** The knowledge base is there, and what held its content is not. */
export function collectionGone({ name }: KnowledgeBase): WbError {
  return new WbError('collection_unavailable', `the collection of '${name}' is gone`)
}

import { WbError } from '../contract/errors.ts'

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

import { WbError } from '../contract/errors.ts'
import {
  type Collection,
  type ContentStore,
  type FittedSpaces,
  isDefaultSpace,
  type LexicalSearch,
  type RawCommands,
  type RecordListing,
  type SpaceKey,
  type VectorSpaces,
} from './content.ts'

/** Creates the error for a collection or a vector space that does not exist. */
export function collectionMissing({ name, space }: SpaceKey): WbError {
  const subject = space === undefined ? '' : `vector space '${space}' of `
  return new WbError('collection_unavailable', `${subject}collection '${name}' does not exist`)
}

/**
 * Checks that a vector space can be searched.
 *
 * @param current   current generation of the space
 * @param expected  generation that the vector of the query was computed for, if it is known
 * @throws collection_unavailable  the space has never been swapped, or the generations differ; in the second case, the
 *                                 error has the fact `stale`
 */
export function requireSearchableSpace(key: SpaceKey, current: number, expected: number | undefined): void {
  if (!isDefaultSpace(key) && current === 0)
    throw new WbError(
      'collection_unavailable',
      `vector space '${key.space}' of collection '${key.name}' is not complete yet`,
    )
  if (expected !== undefined && expected !== current) throw spaceChanged()
}

/** Creates the error for an operation on a vector space that another one has replaced. It has the fact `stale`. */
export function spaceChanged(): WbError {
  return new WbError('collection_unavailable', 'the vector space of the collection has just changed', {
    hint: 'Retry the request.',
    stale: true,
  })
}

/**
 * Returns the lexical search of a store.
 *
 * @throws hybrid_not_supported  the store has no lexical search, or the collection was created without it
 */
export function requireLexical(store: ContentStore, collection: Pick<Collection, 'lexical'>): LexicalSearch {
  if (!store.lexical)
    throw new WbError('hybrid_not_supported', `the ${store.name} store does not support lexical search`)
  if (!collection.lexical)
    throw new WbError('hybrid_not_supported', 'the knowledge base was created without lexical search', {
      hint: 'Send hybrid=false, or create a knowledge base with lexical.enabled.',
    })
  return store.lexical
}

/** @throws list_records_not_supported  the store cannot read records in order */
export function requireListing(store: ContentStore): RecordListing {
  if (!store.listing)
    throw new WbError('list_records_not_supported', `the ${store.name} store cannot list records`)
  return store.listing
}

/** @throws driver_unavailable  the store does not support several vector spaces */
export function requireSpaces(store: ContentStore): VectorSpaces {
  if (!store.spaces)
    throw new WbError('driver_unavailable', `the ${store.name} store has only one vector space`)
  return store.spaces
}

/** @throws driver_unavailable  the store does not support vector spaces that the runtime fits */
export function requireFittedSpaces(store: ContentStore): FittedSpaces {
  if (!store.fitted)
    throw new WbError(
      'driver_unavailable',
      `the ${store.name} store does not support the built-in embedder`,
      {
        hint: 'Use an embedding service with another provider.',
      },
    )
  return store.fitted
}

/** @throws driver_unavailable  the store does not support commands */
export function requireCommands(store: ContentStore): RawCommands {
  if (!store.commands)
    throw new WbError('driver_unavailable', `the ${store.name} store does not support commands`)
  return store.commands
}

/** @throws dimension_mismatch  the length of the vector is not the dimension of the space */
export function requireVectorDimension(
  { dimension }: { readonly dimension: number },
  vector: Float32Array,
): void {
  if (vector.length !== dimension)
    throw new WbError(
      'dimension_mismatch',
      `the vector has ${vector.length} numbers, but the collection requires ${dimension}`,
    )
}

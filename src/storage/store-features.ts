import { WbError } from '../contract/errors.ts'
import type {
  Collection,
  CollectionKey,
  ContentStore,
  FittedSpaces,
  LexicalSearch,
  RawCommands,
  RecordListing,
} from './content.ts'

/** Creates the error for a collection that does not exist. */
export function collectionMissing({ name }: CollectionKey): WbError {
  return new WbError('collection_unavailable', `collection '${name}' does not exist`)
}

/**
 * Returns the lexical search of a store.
 *
 * @throws hybrid_not_supported  the store has no lexical search, or the collection was created without it
 */
export function requireLexical(store: ContentStore, collection: Pick<Collection, 'lexical'>): LexicalSearch {
  if (!store.lexical)
    throw new WbError('hybrid_not_supported', `the ${store.name} store cannot search by words`)
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

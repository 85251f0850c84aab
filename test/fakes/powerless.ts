import type { ContentStore } from '../../src/storage/content.ts'

/** A driver with the required verbs only, as a remote service may turn out to be. */
export function withoutPowers({ collection, write, nearest, read, owners }: ContentStore): ContentStore {
  return { name: 'powerless', collection, write, nearest, read, owners }
}

import type { ContentStore } from '../../src/storage/content.ts'

/** Returns a driver with the required methods only, like that of a limited remote service. */
export function withoutOptionalFeatures({
  collection,
  stats,
  storedBytes,
  write,
  nearest,
  read,
  owners,
}: ContentStore): ContentStore {
  return { name: 'powerless', collection, stats, storedBytes, write, nearest, read, owners }
}

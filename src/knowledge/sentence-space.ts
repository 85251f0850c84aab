import type { CollectionKey, SpaceKey } from '../storage/content.ts'

/** Name of the vector space of the built-in sentence model. */
export const sentenceSpace = 'sentences'

export function sentenceSpaceOf({ workspaceId, name }: CollectionKey): SpaceKey {
  return { workspaceId, name, space: sentenceSpace }
}

/** Progress of the sentence vectors of a collection. */
export interface SentenceProgress {
  readonly records: number
  readonly embedded: number
}

import type { ThreadOperations } from '../base/threads.ts'
import type { EncodedText, SentenceEncoder } from './sentence-encoder.ts'

/** Operations of a worker of the sentence model. */
export interface SentenceOperations extends ThreadOperations {
  embed(texts: readonly string[]): Float32Array[]
  encode(texts: readonly string[]): EncodedText[]
}

export function createSentenceOperations(encoder: SentenceEncoder): SentenceOperations {
  return { embed: texts => encoder.embed(texts), encode: texts => encoder.encode(texts) }
}

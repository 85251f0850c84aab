import type { ThreadOperations } from '../base/threads.ts'
import type { EncodedText } from './encoded-text.ts'
import type { FastestEncoder, SentenceEngine } from './fastest-encoder.ts'

/** Operations of a worker of the sentence model. */
export interface SentenceOperations extends ThreadOperations {
  embed(texts: readonly string[]): Promise<Float32Array[]>
  encode(texts: readonly string[]): Promise<EncodedText[]>
  engine(input: undefined): SentenceEngine
}

export function createSentenceOperations(encoder: FastestEncoder): SentenceOperations {
  return {
    embed: texts => encoder.embed(texts),
    encode: texts => encoder.encode(texts),
    engine: () => encoder.engine,
  }
}

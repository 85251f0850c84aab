import type { Log } from '../../base/log.ts'
import { WbError } from '../../contract/errors.ts'
import type { SentenceModel } from '../../sentence-model/sentence-model.ts'
import type { ScoredRecord, SearchConstraints } from '../../storage/content.ts'
import type { BaseContext } from '../knowledge-bases.ts'
import { sentenceSpaceOf } from '../sentence-space.ts'

/** Embeds a question; returns undefined if the model failed. */
type EmbedQuestion = (text: string, signal: AbortSignal) => Promise<Float32Array | undefined>

export interface SentenceRanking {
  /** The nearest passages, best first. */
  readonly list: ScoredRecord[]
  /** Highest number of a record with a sentence vector. Records up to it have a vector. */
  readonly vectorsThrough: number
}

/** Ranks passages by the similarity of their meaning to a question, with the built-in sentence model. */
export class SentenceSearch {
  readonly #embed: EmbedQuestion

  private constructor(embed: EmbedQuestion) {
    this.#embed = embed
  }

  static open({ model, log }: { model: Pick<SentenceModel, 'embed'>; log: Log }): SentenceSearch {
    return new SentenceSearch(async (text, signal) => {
      try {
        const [vector] = await model.embed([text], { priority: 'query', signal })
        return vector
      } catch (error) {
        signal.throwIfAborted()
        log.error({ error }, 'the sentence model failed; a search did not use it')
        return undefined
      }
    })
  }

  /** Returns a search that embeds its first question only once, for the same question in several knowledge bases. */
  forOneQuestion(): SentenceSearch {
    let vector: ReturnType<EmbedQuestion> | undefined
    return new SentenceSearch((text, signal) => {
      vector ??= this.#embed(text, signal)
      return vector
    })
  }

  /** Returns undefined if the knowledge base has no sentence vectors, or if the model failed. */
  async rank(
    { store, key, base }: BaseContext,
    text: string,
    { limit, constraints }: { limit: number; constraints: SearchConstraints },
    signal: AbortSignal,
  ): Promise<SentenceRanking | undefined> {
    if (base.semantic === false || !store.spaces) return undefined
    const space = sentenceSpaceOf(key)
    const collection = await store.collection(space)
    if (!collection?.vectorsThrough) return undefined
    const vector = await this.#embed(text, signal)
    const list =
      vector && (await store.nearest(space, { vector, limit, ...constraints }).catch(undefinedIfMissing))
    return list && { list, vectorsThrough: collection.vectorsThrough }
  }
}

/** Handles the error of a space that is missing or was deleted, which is possible at any time. Throws other errors. */
export function undefinedIfMissing(error: unknown): undefined {
  if (!(error instanceof WbError) || error.code !== 'collection_unavailable') throw error
}

import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { unitVector } from '../base/unit-vector.ts'
import { SENTENCE_DIMENSION } from './sentence-encoder.ts'
import type { SentenceModel } from './sentence-model.ts'

/** Bytes of the digest of a text. */
const digestBytes = 16
/** A digest, followed by the numbers of the vector as signed bytes. */
const entryBytes = digestBytes + SENTENCE_DIMENSION
const byteMax = 127

/** Sentence vectors that were computed before, in 8 bits per number, by the digest of their text. */
export class KnownVectors {
  readonly #entries: ReadonlyMap<string, Int8Array>

  private constructor(entries: ReadonlyMap<string, Int8Array>) {
    this.#entries = entries
  }

  /** Reads the vectors of a file; there are none if it is missing. */
  static read(path: string): KnownVectors {
    const entries = new Map<string, Int8Array>()
    if (existsSync(path)) {
      const bytes = readFileSync(path)
      for (let at = 0; at + entryBytes <= bytes.length; at += entryBytes) {
        const numbers = bytes.subarray(at + digestBytes, at + entryBytes)
        entries.set(
          bytes.toString('hex', at, at + digestBytes),
          new Int8Array(numbers.buffer, numbers.byteOffset, numbers.length),
        )
      }
    }
    return new KnownVectors(entries)
  }

  get(text: string): Float32Array | undefined {
    const numbers = this.#entries.get(digest(text).toString('hex'))
    return numbers && unitVector(numbers)
  }
}

/** Returns the contents of a file for {@link KnownVectors.read}, with its entries in order. */
export function encodeVectors(vectors: ReadonlyMap<string, Float32Array>): Buffer {
  const entries = Array.from(vectors, ([text, vector]) => {
    const max = vector.reduce((highest, number) => Math.max(highest, Math.abs(number)), 0)
    const numbers = Int8Array.from(vector, number => Math.round((number * byteMax) / max))
    return Buffer.concat([digest(text), Buffer.from(numbers.buffer)])
  })
  return Buffer.concat(entries.sort(Buffer.compare))
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest().subarray(0, digestBytes)
}

/** Returns a model that computes only the vectors of passages that are not known. The file is read when it is first needed. */
export function withKnownVectors(
  model: Pick<SentenceModel, 'embed'>,
  path: string,
): Pick<SentenceModel, 'embed'> {
  let known: KnownVectors | undefined
  return {
    async embed(texts, options) {
      if (options.priority === 'query') return model.embed(texts, options)
      known ??= KnownVectors.read(path)
      const found = texts.map(text => known!.get(text))
      const computed = await model.embed(
        texts.filter((_, index) => !found[index]),
        options,
      )
      let next = 0
      return found.map(vector => vector ?? computed[next++]!)
    },
  }
}

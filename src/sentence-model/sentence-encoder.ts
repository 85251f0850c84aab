import { join } from 'node:path'
import { packageRoot } from '../base/package.ts'
import { createEncodedText, type EncodedText, meanOfRows } from './encoded-text.ts'
import {
  createEncoderMemory,
  type EncoderKernels,
  type EncoderMemory,
  openEncoderKernels,
} from './kernels.ts'
import { ModelFile } from './model-file.ts'
import { TOKENS_MAX, WordPieceTokenizer } from './word-piece-tokenizer.ts'

/** Dimension of all vectors. */
export const SENTENCE_DIMENSION = 384

export const LAYERS = 6
export const HEADS = 12
const HEAD_WIDTH = SENTENCE_DIMENSION / HEADS
/** Width of queries, keys and values in one row. */
export const PROJECTION_WIDTH = 3 * SENTENCE_DIMENSION
/** Width between the two linear layers that follow the attention. */
export const EXPANSION_WIDTH = 1_536

export const PANEL_COLUMNS = 16
/** Bytes of two inputs of a panel of i16. */
const PAIR_BYTES = 64

/** Largest integers of a row for which no sum of products with weights of i8 overflows. */
const LIMIT = 32_767
const LIMIT_OF_EXPANSION = 11_008
/** Largest integer of queries and keys, of which 32 products are added. */
const LIMIT_OF_HEAD = 8_191

/** Addresses of a linear layer. */
interface Linear {
  readonly weight: number
  readonly scale: number
  readonly bias: number
  readonly inputs: number
  readonly outputs: number
}

/** Addresses of the parameters of a normalization. */
interface Norm {
  readonly weight: number
  readonly bias: number
}

interface Layer {
  readonly projection: Linear
  readonly attention: Linear
  readonly attentionNorm: Norm
  readonly expansion: Linear
  readonly contraction: Linear
  readonly norm: Norm
}

/** Addresses of rows and of other intermediate values. */
interface Buffers {
  /** f32[rows][384], the values between the layers. */
  readonly hidden: number
  /** f32[rows][384], what a part of a layer adds to `hidden`. */
  readonly addends: number
  /** f32[rows][1152] */
  readonly projections: number
  /** f32[rows][1536] */
  readonly expanded: number
  /** i16[rows][1536], the input of a linear layer. */
  readonly input: number
  readonly inputScales: number
  /** A panel of i16 with 1,536 inputs. */
  readonly widened: number
  /** i16[rows][32] of one head. */
  readonly queries: number
  readonly queryScales: number
  readonly keys: number
  readonly keyScales: number
  readonly values: number
  readonly valueScales: number
  /** f32[rows][rows] of one head. */
  readonly scores: number
  /** i16[rows][rows] of one head. */
  readonly shares: number
  readonly shareScales: number
  readonly zeros: number
  /** One quantized row of one head. */
  readonly row: number
}

/** Returns the path of the model of this package. */
export function packagedModel(): string {
  return join(packageRoot(), 'dist', 'all-minilm-l6-v2.safetensors')
}

/**
 * The sentence model all-MiniLM-L6-v2 on the calling thread: returns vectors of texts. Texts with the same meaning have similar
 * vectors, also if their words differ. The model knows English only.
 *
 * Weights are 8-bit integers, and the inputs of each matrix product are 16-bit integers with a scale per row. Everything
 * else is f32. A result depends on the text only, not on the other texts of a call.
 */
export class SentenceEncoder {
  readonly #tokenizer: WordPieceTokenizer
  readonly #memory: EncoderMemory
  readonly #kernels: EncoderKernels
  readonly #layers: readonly Layer[]
  readonly #embeddings: { words: number; scale: number; positions: number; norm: Norm }
  readonly #buffers: Buffers

  /** @throws Error  the model or the kernels are missing or damaged */
  constructor(path: string = packagedModel()) {
    const file = new ModelFile(path)
    try {
      const space = new AddressSpace()
      const data = space.reserve(file.dataBytes)
      const addressOf = (name: string) => data + file.offsetOf(name)
      this.#layers = Array.from({ length: LAYERS }, (_, index) => layerAt(`layers.${index}`, addressOf))
      this.#embeddings = {
        words: addressOf('embeddings.words'),
        scale: addressOf('embeddings.words.scale'),
        positions: addressOf('embeddings.positions'),
        norm: normAt('embeddings.norm', addressOf),
      }
      this.#buffers = reserveBuffers(space)
      this.#memory = createEncoderMemory(space.end)
      file.readData(new Uint8Array(this.#memory.buffer, data, file.dataBytes))
      const vocabulary = new Uint8Array(
        this.#memory.buffer,
        addressOf('vocabulary'),
        file.bytesOf('vocabulary'),
      )
      this.#tokenizer = new WordPieceTokenizer(new TextDecoder().decode(vocabulary).split('\n'))
      this.#kernels = openEncoderKernels(this.#memory)
    } finally {
      file.close()
    }
  }

  /** Returns the vector of each text, of 384 dimensions and length 1. Text beyond 256 tokens is ignored. */
  embed(texts: readonly string[]): Float32Array[] {
    return this.#encode(texts, (_, rows) => meanOfRows(rows, SENTENCE_DIMENSION))
  }

  /** Like {@link embed}, but also returns the vectors of the tokens. */
  encode(texts: readonly string[]): EncodedText[] {
    return this.#encode(texts, createEncodedText)
  }

  /** @param read  receives the tokens of a text, and the rows of the last layer, which are valid during the call */
  #encode<T>(texts: readonly string[], read: (tokens: Uint16Array, rows: Float32Array) => T): T[] {
    const results: T[] = []
    let batch: Uint16Array[] = []
    let rows = 0
    const finish = () => {
      this.#compute(batch)
      let from = 0
      for (const tokens of batch) {
        const size = tokens.length * SENTENCE_DIMENSION
        results.push(read(tokens, this.#floats(this.#buffers.hidden).subarray(from, from + size)))
        from += size
      }
      batch = []
      rows = 0
    }
    for (const text of texts) {
      const tokens = Uint16Array.from(this.#tokenizer.encode(text))
      if (rows + tokens.length > TOKENS_MAX) finish()
      batch.push(tokens)
      rows += tokens.length
    }
    if (rows > 0) finish()
    return results
  }

  #floats(address: number): Float32Array {
    return new Float32Array(this.#memory.buffer, address)
  }

  /** Computes the last layer of texts with at most 256 tokens in total. Writes it to `hidden`, one row per token. */
  #compute(batch: readonly Uint16Array[]): void {
    const { hidden, addends, projections, expanded } = this.#buffers
    const rows = this.#embedTokens(batch)
    for (const layer of this.#layers) {
      this.#multiply(hidden, rows, layer.projection, LIMIT, projections)
      let from = 0
      for (const { length } of batch) {
        this.#attend(from, length)
        from += length
      }
      this.#multiply(addends, rows, layer.attention, LIMIT, addends)
      this.#addAndNormalize(hidden, addends, rows, layer.attentionNorm)
      this.#multiply(hidden, rows, layer.expansion, LIMIT, expanded)
      this.#kernels.gelu(expanded, rows * EXPANSION_WIDTH)
      this.#multiply(expanded, rows, layer.contraction, LIMIT_OF_EXPANSION, addends)
      this.#addAndNormalize(hidden, addends, rows, layer.norm)
    }
  }

  /** Writes the embeddings of tokens to `hidden`. Returns the number of rows. */
  #embedTokens(batch: readonly Uint16Array[]): number {
    const { words, scale, positions, norm } = this.#embeddings
    const weights = new Int8Array(this.#memory.buffer, words)
    const scales = new DataView(this.#memory.buffer, scale)
    const hidden = this.#floats(this.#buffers.hidden)
    let row = 0
    for (const tokens of batch) {
      const first = row
      for (const token of tokens) {
        const factor = scales.getFloat32(token * 4, true)
        const from = token * SENTENCE_DIMENSION
        const to = row * SENTENCE_DIMENSION
        for (let at = 0; at < SENTENCE_DIMENSION; at++) hidden[to + at] = weights[from + at]! * factor
        row++
      }
      this.#addAndNormalize(
        this.#buffers.hidden + first * SENTENCE_DIMENSION * 4,
        positions,
        tokens.length,
        norm,
      )
    }
    return row
  }

  /** Writes the product of rows with the weights of a layer, plus its bias. `from` and `out` may be the same. */
  #multiply(from: number, rows: number, linear: Linear, limit: number, out: number): void {
    const { input, inputScales, widened } = this.#buffers
    const { inputs, outputs, weight, scale, bias } = linear
    this.#kernels.quantizeRows(from, inputs * 4, rows, inputs, limit, input, inputs * 2, inputScales)
    this.#kernels.linear(
      input,
      inputs * 2,
      rows,
      inputScales,
      weight,
      inputs / 2,
      outputs / PANEL_COLUMNS,
      scale,
      bias,
      widened,
      out,
      outputs * 4,
    )
  }

  #addAndNormalize(rows: number, addends: number, count: number, { weight, bias }: Norm): void {
    this.#kernels.addAndNormalize(rows, addends, count, SENTENCE_DIMENSION, weight, bias)
  }

  /** Writes the attention of the tokens of one text to `addends`, head by head. */
  #attend(firstRow: number, rows: number): void {
    const buffers = this.#buffers
    const { queries, queryScales, keys, keyScales, values, valueScales } = buffers
    const { scores, shares, shareScales, zeros } = buffers
    const stride = PROJECTION_WIDTH * 4
    const width = Math.ceil(rows / PANEL_COLUMNS) * PANEL_COLUMNS
    const headBytes = HEAD_WIDTH * 4
    for (let head = 0; head < HEADS; head++) {
      const query = buffers.projections + firstRow * stride + head * headBytes
      const key = query + SENTENCE_DIMENSION * 4
      const value = key + SENTENCE_DIMENSION * 4
      const out = buffers.addends + firstRow * SENTENCE_DIMENSION * 4 + head * headBytes
      const { quantizeRows, packKeys, packValues, multiply, softmax } = this.#kernels
      quantizeRows(query, stride, rows, HEAD_WIDTH, LIMIT_OF_HEAD, queries, HEAD_WIDTH * 2, queryScales)
      packKeys(key, stride, rows, LIMIT_OF_HEAD, 1 / Math.sqrt(HEAD_WIDTH), buffers.row, keys, keyScales)
      multiply(
        queries,
        HEAD_WIDTH * 2,
        rows,
        queryScales,
        keys,
        HEAD_WIDTH / 2,
        width / PANEL_COLUMNS,
        keyScales,
        zeros,
        scores,
        width * 4,
      )
      softmax(scores, rows, rows, width, shares, shareScales)
      packValues(value, stride, rows, width / 2, values, valueScales)
      multiply(
        shares,
        width * 2,
        rows,
        shareScales,
        values,
        width / 2,
        HEAD_WIDTH / PANEL_COLUMNS,
        valueScales,
        zeros,
        out,
        SENTENCE_DIMENSION * 4,
      )
    }
  }
}

/** Reserves addresses one after another. */
class AddressSpace {
  /** Bytes that are reserved. The first are unused. */
  end = 64

  /** Returns the address of so many bytes, a multiple of 64. */
  reserve(bytes: number): number {
    const address = this.end
    this.end += Math.ceil(bytes / 64) * 64
    return address
  }
}

function reserveBuffers(space: AddressSpace): Buffers {
  // Kernels process two rows at a time, and may therefore write one more.
  const rows = TOKENS_MAX + 1
  const floats = (width: number) => space.reserve(rows * width * 4)
  const integers = (width: number) => space.reserve(rows * width * 2)
  return {
    hidden: floats(SENTENCE_DIMENSION),
    addends: floats(SENTENCE_DIMENSION),
    projections: floats(PROJECTION_WIDTH),
    expanded: floats(EXPANSION_WIDTH),
    input: integers(EXPANSION_WIDTH),
    inputScales: floats(1),
    widened: space.reserve((EXPANSION_WIDTH / 2) * PAIR_BYTES),
    queries: integers(HEAD_WIDTH),
    queryScales: floats(1),
    keys: integers(HEAD_WIDTH),
    keyScales: floats(1),
    values: integers(HEAD_WIDTH),
    valueScales: space.reserve(HEAD_WIDTH * 4),
    scores: floats(TOKENS_MAX),
    shares: integers(TOKENS_MAX),
    shareScales: floats(1),
    zeros: space.reserve(PAIR_BYTES),
    row: space.reserve(HEAD_WIDTH * 2),
  }
}

function layerAt(name: string, addressOf: (name: string) => number): Layer {
  const linear = (part: string, inputs: number, outputs: number): Linear => ({
    weight: addressOf(`${name}.${part}.weight`),
    scale: addressOf(`${name}.${part}.scale`),
    bias: addressOf(`${name}.${part}.bias`),
    inputs,
    outputs,
  })
  return {
    projection: linear('projection', SENTENCE_DIMENSION, PROJECTION_WIDTH),
    attention: linear('attention', SENTENCE_DIMENSION, SENTENCE_DIMENSION),
    attentionNorm: normAt(`${name}.attention.norm`, addressOf),
    expansion: linear('expansion', SENTENCE_DIMENSION, EXPANSION_WIDTH),
    contraction: linear('contraction', EXPANSION_WIDTH, SENTENCE_DIMENSION),
    norm: normAt(`${name}.norm`, addressOf),
  }
}

function normAt(name: string, addressOf: (name: string) => number): Norm {
  return { weight: addressOf(`${name}.weight`), bias: addressOf(`${name}.bias`) }
}

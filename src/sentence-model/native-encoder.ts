import { createEncodedText, type EncodedText, meanOfRows } from './encoded-text.ts'
import { ModelFile } from './model-file.ts'
import { type NativeRuntime, type NativeSession, sessionOptions } from './native-runtime.ts'
import { packagedModel, SENTENCE_DIMENSION } from './sentence-encoder.ts'
import { createSentenceGraph, graphInput, graphOutput } from './sentence-graph.ts'
import { WordPieceTokenizer } from './word-piece-tokenizer.ts'

/** Embeddings of tokens and positions, which are added before the first layer. */
interface Embeddings {
  /** i8[words][384] */
  readonly words: Int8Array
  /** Scale of each word. */
  readonly scales: Float32Array
  /** f32[256][384] */
  readonly positions: Float32Array
}

/**
 * The sentence model all-MiniLM-L6-v2, computed by ONNX Runtime on the calling thread. Unlike `SentenceEncoder`, it quantizes
 * the inputs of each matrix product to 8 bits. Vectors of both are similar enough to be compared.
 */
export class NativeEncoder {
  private constructor(
    private readonly runtime: NativeRuntime,
    private readonly session: NativeSession,
    private readonly tokenizer: WordPieceTokenizer,
    private readonly embeddings: Embeddings,
  ) {}

  /** @throws Error  the model is missing or damaged, or the runtime does not support it */
  static async open(runtime: NativeRuntime, path: string = packagedModel()): Promise<NativeEncoder> {
    const file = new ModelFile(path)
    try {
      const data = new Uint8Array(file.dataBytes)
      file.readData(data)
      const session = await runtime.InferenceSession.create(createSentenceGraph(file, data), sessionOptions)
      // Copies, so that the memory of the other weights is free.
      const bufferOf = (name: string) => {
        const from = file.offsetOf(name)
        return data.buffer.slice(from, from + file.bytesOf(name))
      }
      const vocabulary = new TextDecoder().decode(bufferOf('vocabulary')).split('\n')
      return new NativeEncoder(runtime, session, new WordPieceTokenizer(vocabulary), {
        words: new Int8Array(bufferOf('embeddings.words')),
        scales: new Float32Array(bufferOf('embeddings.words.scale')),
        positions: new Float32Array(bufferOf('embeddings.positions')),
      })
    } finally {
      file.close()
    }
  }

  /** Returns the vector of each text, of 384 dimensions and length 1. Text beyond 256 tokens is ignored. */
  async embed(texts: readonly string[]): Promise<Float32Array[]> {
    return this.#encode(texts, (_, rows) => meanOfRows(rows, SENTENCE_DIMENSION))
  }

  /** Like {@link embed}, but also returns the vectors of the tokens. */
  async encode(texts: readonly string[]): Promise<EncodedText[]> {
    return this.#encode(texts, createEncodedText)
  }

  async close(): Promise<void> {
    await this.session.release()
  }

  /** Encodes one text at a time, so that the vector of a text does not depend on others. */
  async #encode<T>(
    texts: readonly string[],
    read: (tokens: Uint16Array, rows: Float32Array) => T,
  ): Promise<T[]> {
    const results: T[] = []
    for (const text of texts) {
      const tokens = Uint16Array.from(this.tokenizer.encode(text))
      const shape = [1, tokens.length, SENTENCE_DIMENSION]
      const input = new this.runtime.Tensor('float32', this.#embedTokens(tokens), shape)
      const outputs = await this.session.run({ [graphInput]: input })
      results.push(read(tokens, outputs[graphOutput]!.data as Float32Array))
    }
    return results
  }

  #embedTokens(tokens: Uint16Array): Float32Array {
    const { words, scales, positions } = this.embeddings
    const rows = positions.slice(0, tokens.length * SENTENCE_DIMENSION)
    for (const [row, token] of tokens.entries()) {
      const scale = scales[token]!
      const from = token * SENTENCE_DIMENSION
      const to = row * SENTENCE_DIMENSION
      for (let at = 0; at < SENTENCE_DIMENSION; at++) rows[to + at]! += words[from + at]! * scale
    }
    return rows
  }
}
